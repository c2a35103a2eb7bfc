"""How the command ends: the one table that scripts can rely on."""

from duly.domain.errors import Conflict, DulyError, InvalidInput, NotFound, Refused, Unavailable
from duly.domain.tickets import Deadline, DirectFailed

OK = 0
FAILED = 1
INVALID = 2
NOT_FOUND = 3
CONFLICT = 4
REFUSED = 5
TIMED_OUT = 6
INTERRUPTED = 130

MEANINGS = {
    OK: "done",
    FAILED: "failed, or a problem was found",
    INVALID: "what was given makes no sense, or `--yes` is missing",
    NOT_FOUND: "there is no such thing",
    CONFLICT: "the thing is not in a state that allows this",
    REFUSED: "a policy says no",
    TIMED_OUT: "it did not end within `--timeout`",
    INTERRUPTED: "interrupted with Ctrl-C",
}

# The first that fits counts: an unknown pool is both invalid and not found.
_FAMILIES: tuple[tuple[type[DulyError], int], ...] = (
    (Deadline, TIMED_OUT),
    (DirectFailed, FAILED),
    (NotFound, NOT_FOUND),
    (InvalidInput, INVALID),
    (Conflict, CONFLICT),
    (Refused, REFUSED),
    (Unavailable, FAILED),
)


def exit_code_of(error: DulyError) -> int:
    return next((code for family, code in _FAMILIES if isinstance(error, family)), FAILED)
