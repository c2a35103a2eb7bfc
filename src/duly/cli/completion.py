"""`duly completion`: the script by which a shell completes commands and options, made from the commands themselves."""

from collections.abc import Callable, Mapping, Sequence

from duly.cli.output import say
from duly.cli.parser import Options, Parser
from duly.cli.tree import Leaf, leaves


def define(parser: Parser) -> None:
    parser.add_argument("shell", choices=list(_SCRIPTS), help="bash, zsh or fish")
    parser.set_defaults(run=completion)


def completion(options: Options) -> None:
    say(_SCRIPTS[options.shell](_words(list(leaves()))))


def _words(found: Sequence[Leaf]) -> dict[str, list[str]]:
    """By the words that were typed, the words that can follow."""
    words: dict[str, list[str]] = {"": []}
    for leaf in found:
        for depth, name in enumerate(leaf.path):
            typed = words.setdefault(" ".join(leaf.path[:depth]), [])
            if name not in typed:
                typed.append(name)
        own = words.setdefault(" ".join(leaf.path), [])
        for argument in leaf.arguments:
            own += argument.names or argument.choices
    return words


def _bash(words: Mapping[str, Sequence[str]]) -> str:
    cases = "\n".join(f'    "{typed}") follow="{" ".join(follow)}" ;;' for typed, follow in words.items())
    return f"""_duly() {{
  local typed follow current=${{COMP_WORDS[COMP_CWORD]}}
  typed="${{COMP_WORDS[*]:1:$((COMP_CWORD > 3 ? 2 : COMP_CWORD - 1))}}"
  while :; do
    case "$typed" in
{_indented(cases)}
      *) [[ $typed == *" "* ]] && typed=${{typed% *}} && continue ;;
    esac
    break
  done
  COMPREPLY=($(compgen -W "$follow" -- "$current"))
}}
complete -o default -F _duly duly"""


def _zsh(words: Mapping[str, Sequence[str]]) -> str:
    cases = "\n".join(f'  "{typed}") follow=({" ".join(follow)}) ;;' for typed, follow in words.items())
    return f"""#compdef duly
_duly() {{
  local typed
  local -a follow
  typed="${{(j: :)words[2,$((CURRENT > 4 ? 3 : CURRENT - 1))]}}"
  while :; do
    case "$typed" in
{_indented(cases)}
      *) [[ $typed == *" "* ]] && typed=${{typed% *}} && continue ;;
    esac
    break
  done
  compadd -- $follow || _files
}}
compdef _duly duly"""


def _fish(words: Mapping[str, Sequence[str]]) -> str:
    lines = ["complete -c duly -f -n __fish_use_subcommand -a '" + " ".join(words[""]) + "'"]
    for typed, follow in words.items():
        seen = " ".join(f"; and __fish_seen_subcommand_from {word}" for word in typed.split())
        for word in follow if typed else ():
            is_option = word.startswith("--")
            lines.append(f"complete -c duly -n '{seen[6:]}' " + (f"-l {word[2:]}" if is_option else f"-a {word}"))
    return "\n".join(lines)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


_SCRIPTS: Mapping[str, Callable[[Mapping[str, Sequence[str]]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
