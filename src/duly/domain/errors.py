"""The five families every error of Duly belongs to; concrete errors live with their noun."""

from typing import ClassVar


class DulyError(Exception):
    """Root of everything Duly raises on purpose; `code` is stable and safe to match on."""

    code: ClassVar[str] = "error"

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross process borders whole, whatever their constructors take."""
        return _restored, (type(self), self.args, self.__dict__)


class InvalidInput(DulyError, ValueError):
    """What was given cannot mean anything: names the field, the reason and the fix."""

    code: ClassVar[str] = "invalid_input"

    def __init__(self, field: str, reason: str, *, fix: str | None = None, position: int | None = None) -> None:
        self.field = field
        self.reason = reason
        self.fix = fix
        self.position = position
        where = field if position is None else f"{field}, position {position}"
        super().__init__(f"{where}: {reason}" + (f" ({fix})" if fix else ""))


class NotFound(DulyError):
    """The named thing does not exist, or not for this caller."""

    code: ClassVar[str] = "not_found"


class Conflict(DulyError):
    """The thing exists, but not in a state that allows this."""

    code: ClassVar[str] = "conflict"


class Refused(DulyError):
    """A policy, a grant or a budget says no."""

    code: ClassVar[str] = "refused"


class Unavailable(DulyError):
    """The store or a peer cannot answer now; nothing was acknowledged, so trying again is safe."""

    code: ClassVar[str] = "unavailable"


def _restored(kind: type[DulyError], args: tuple[object, ...], facts: dict[str, object]) -> DulyError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error
