"""Nothing is destroyed, and nothing costly begun, unless somebody said yes."""

import sys

from duly.cli import exits
from duly.cli.output import note
from duly.cli.parser import Options
from duly.domain.errors import InvalidInput


def is_agreed(options: Options, question: str) -> bool:
    """Asked on a terminal; where nobody can be asked, `--yes` must have been said."""
    if options.yes:
        return True
    if not is_somebody_there():
        raise InvalidInput("--yes", f"is missing, and nobody is there to ask: {question}", fix="add --yes")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return True
    note("nothing was changed")
    return False


def is_dry_run(options: Options, what: str) -> bool:
    """Whether saying what would be done was all."""
    if options.dry_run:
        note(f"dry run: would {what}; nothing was changed")
    return bool(options.dry_run)


def held_back(options: Options, what: str, question: str) -> int | None:
    """What the command ends with if nothing is done: it was a dry run, or somebody said no."""
    if is_dry_run(options, what):
        return exits.OK
    return None if is_agreed(options, question) else exits.FAILED


def is_somebody_there() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()
