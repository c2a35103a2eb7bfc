"""Every command and its options as data, for the reference and for shells that complete them."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from duly.cli.commands import COMMANDS, define
from duly.cli.parser import Parser


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """`names` is empty for one that is known by its place; `takes` is what stands for its value."""

    names: tuple[str, ...]
    takes: str
    choices: tuple[str, ...]
    means: str
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A command that runs: its words after `duly`, what it is for, and what it takes."""

    path: tuple[str, ...]
    means: str
    arguments: tuple[Argument, ...]


def leaves() -> Iterator[Leaf]:
    for name, summary in COMMANDS.items():
        parser = Parser(prog=f"duly {name}", description=summary)
        define(name, parser)
        yield from _below((name,), summary, parser)


def _below(path: tuple[str, ...], summary: str, parser: argparse.ArgumentParser) -> Iterator[Leaf]:
    for action in parser._actions:  # noqa: SLF001 - argparse shows its arguments nowhere else
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            helps = {choice.dest: choice.help for choice in action._choices_actions}  # noqa: SLF001
            for name, means in helps.items():
                yield from _below((*path, name), str(means), action.choices[name])
            return
    yield Leaf(path=path, means=summary, arguments=tuple(map(_argument, _shown(parser))))


def _shown(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.dest != "help" and action.help != argparse.SUPPRESS]  # noqa: SLF001


def _argument(action: argparse.Action) -> Argument:
    choices = tuple(map(str, action.choices or ()))
    takes = "" if action.nargs == 0 else str(action.metavar or "|".join(choices) or action.dest.upper())
    required = action.required if action.option_strings else action.nargs not in ("?", "*")
    return Argument(
        names=tuple(action.option_strings), takes=takes, choices=choices, means=action.help or "", required=required
    )
