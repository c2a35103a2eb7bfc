"""Parsers that say what is wrong in one line, and the options that many commands share."""

import argparse
import difflib
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any, NoReturn

from duly.cli import exits

Options = argparse.Namespace
Run = Callable[[Options], int | None]

# What Python and HTTP call it.
_ELSEWHERE = {
    "--timezone": ["--tz"],
    "--params": ["--input"],
    "--timeout": ["--time-limit"],
    "--limit": ["--slots", "--most"],
}
_LACKS = ("the following arguments are required", "one of the arguments")


class _Help(argparse.HelpFormatter):
    def __init__(self, prog: str, **kwargs: int | None) -> None:
        super().__init__(prog, max_help_position=28, **kwargs)  # type: ignore[arg-type]


class Parser(argparse.ArgumentParser):
    def __init__(self, *args: object, **kwargs: object) -> None:
        # An abbreviation would change its meaning when an option is added.
        super().__init__(*args, allow_abbrev=False, formatter_class=_Help, **kwargs)  # type: ignore[arg-type, misc]
        self._strange: list[str] = []

    def error(self, message: str) -> NoReturn:
        """What is misspelt is named before what is missing, which may be the same option."""
        if self._strange and message.startswith(_LACKS):
            message = self._unknown(self._strange[0])
        self.exit(exits.INVALID, f"duly: {message} (see: {self.prog} --help)\n")

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        """What nobody knows is refused by the command it was given to, which knows its own options best."""
        given = list((args[0] if args else kwargs.get("args")) or ())
        words = [word.partition("=")[0] for word in takewhile(lambda word: word != "--", given)]
        self._strange = [word for word in words if word[:2] == "--" and word not in self._option_string_actions]
        options, unknown = super().parse_known_args(*args, **kwargs)
        if unknown:
            self.error(self._unknown(unknown[0].partition("=")[0]))
        return options, unknown

    def _unknown(self, given: str) -> str:
        if not given.startswith("-"):
            return f"{given[:40]!r} is one too many"
        known = {
            name.lstrip("-"): name
            for name, action in self._option_string_actions.items()
            if action.help != argparse.SUPPRESS
        }
        elsewhere = (name for name in _ELSEWHERE.get(given, ()) if name in known.values())
        meant = next(elsewhere, None) or known.get(_near(given.lstrip("-"), known))
        return f"there is no option {given[:40]}" + (f"; did you mean {meant}?" if meant else "")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or str(value) in map(str, action.choices):
            return
        choices = [str(each) for each in shown_choices(action)]
        near = _near(str(value), choices)
        meant = f"; did you mean {near!r}?" if near else ""
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse names it nowhere else
            known = meant or f"; there are {', '.join(choices)}"
            raise argparse.ArgumentError(None, f"there is no command {str(value)[:40]!r}{known}")
        raise argparse.ArgumentError(action, f"{str(value)[:40]!r} is none of {', '.join(choices)}{meant}")


class Commands:
    """The commands below a noun, each with the function that runs it."""

    def __init__(self, parser: Parser) -> None:
        self._added = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(self, name: str, run: Run, summary: str, *, once: str | None = None) -> Parser:
        """`once` is what it was called before: still understood, and no longer shown."""
        parser = self._added.add_parser(name, help=summary, description=_sentence(summary))
        parser.set_defaults(run=run)
        if once is not None:
            self._added.choices[once] = parser
        return parser


def add_json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="for programs: JSON on one line")


def add_watch(parser: Parser) -> None:
    parser.add_argument("--watch", action="store_true", help="show it again every two seconds, until Ctrl-C")


def add_most(parser: Parser, default: int = 20) -> None:
    parser.add_argument(
        "--most", type=whole(1, 1_000), default=default, metavar="N", help=f"how many at most (default: {default})"
    )


def add_wait(parser: Parser) -> None:
    parser.add_argument("--wait", action="store_true", help="until it has ended; fails unless it succeeds")
    parser.add_argument("--timeout", metavar="SPAN", help="wait no longer than this, such as 90s or 1h")


def add_dry_run(parser: Parser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")


def add_max_cost(parser: Parser) -> None:
    parser.add_argument("--max-cost", metavar="AMOUNT", help="refuse if more would be held, such as 5.00")


def add_yes(parser: Parser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask")


def shown_choices(action: argparse.Action) -> Iterable[Any]:
    """Without the names that commands had before."""
    if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse names it nowhere else
        return [choice.dest for choice in action._choices_actions]  # noqa: SLF001
    return action.choices or ()


def whole(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = text.removeprefix("-")
        if not (number.isascii() and number.isdigit() and len(number) <= 9 and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from {least} to {most}")
        return int(text)

    return read


def _near(given: str, known: Iterable[str]) -> str:
    """What begins so, or looks alike."""
    names = list(known)
    begun = [name for name in names if given and name.startswith(given)]
    return next(iter([*begun, *difflib.get_close_matches(given, names, n=1)]), "")


def _sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}."
