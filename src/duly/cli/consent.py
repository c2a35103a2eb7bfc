"""Nothing is destroyed, and nothing costly begun, unless somebody said yes."""

import sys

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


def is_somebody_there() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()
