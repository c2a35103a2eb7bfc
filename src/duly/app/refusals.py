"""What an app refuses, whoever asks: it is not open, open already, or not what it says it is."""

from collections.abc import Sequence

from duly.domain.errors import Conflict


class NotOpen(Conflict):
    code = "not_open"

    def __init__(self) -> None:
        super().__init__("the app is not open here: use it inside `async with app:`, or through app.sync")


class AlreadyOpen(Conflict):
    code = "already_open"

    def __init__(self) -> None:
        super().__init__("the app is open already: leave the `async with app:` it is in first")


class ScheduleTaken(Conflict):
    """A program that does not mean what it says does not start."""

    code = "schedule_taken"

    def __init__(self, conflicts: Sequence[tuple[str, str]]) -> None:
        told = "; ".join(f"{schedule_id!r}: {reason}" for schedule_id, reason in conflicts)
        super().__init__(f"declared schedules are somebody else's: {told}; give them another schedule_id")
        self.conflicts = tuple(conflicts)


class CalledInLoop(Conflict):
    """Whoever waits in an event loop holds up everything in it."""

    code = "called_in_loop"

    def __init__(self) -> None:
        super().__init__("app.sync would hold up the event loop it is called in: write `await app.put(…)` there")
