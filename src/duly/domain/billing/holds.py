"""Holds: money reserved before a run, once for each of its attempts; the first end stands."""

from dataclasses import dataclass
from enum import StrEnum

from duly.domain.amounts import Amount
from duly.domain.errors import Conflict, NotFound
from duly.domain.ids import AccountId, ScheduleId, VirtualKeyId
from duly.domain.instants import SECOND, Instant, Micros

HOLD_LEASE = Micros(120 * SECOND)


class HoldState(StrEnum):
    HELD = "held"
    SETTLED = "settled"  # what its receipts say was charged, the rest came back
    RELEASED = "released"  # nothing was spent
    LAPSED = "lapsed"  # as settled: whoever held it was gone for longer than its lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """`spent` is what its receipts sum up to, also of those that came after its end; `unmetered` have no figures.

    Budgets count it in the window of `counted_at`, which is when it was made, or later if the clock was behind.
    """

    run_id: str
    attempt: int
    account_id: AccountId
    virtual_key_id: VirtualKeyId
    schedule_id: ScheduleId | None = None
    amount: Amount
    state: HoldState = HoldState.HELD
    spent: int = 0
    unmetered: int = 0
    era: str
    expires_at: Micros
    held_at: Instant
    counted_at: Instant
    ended_at: Instant | None = None

    @property
    def is_open(self) -> bool:
        return self.state is HoldState.HELD

    def has_run_out(self, *, era: str, lease_now: Micros) -> bool:
        """Readings of two eras say nothing about each other, and nobody survives its era."""
        return self.era != era or self.expires_at <= lease_now


class UnknownHold(NotFound):
    code = "unknown_hold"

    def __init__(self, run_id: str, attempt: int) -> None:
        super().__init__(f"there is no hold for attempt {attempt} of run {run_id!r}")
        self.run_id = run_id
        self.attempt = attempt


class HoldEnded(Conflict):
    """The attempt's hold has ended, and is not given again."""

    code = "hold_ended"

    def __init__(self, hold: Hold) -> None:
        super().__init__(f"the hold for attempt {hold.attempt} of run {hold.run_id!r} has {hold.state}")
        self.run_id = hold.run_id
        self.attempt = hold.attempt
        self.state = hold.state


class HoldDiffers(Conflict):
    """The attempt has a hold of another amount, account or schedule."""

    code = "hold_differs"

    def __init__(self, hold: Hold) -> None:
        super().__init__(f"attempt {hold.attempt} of run {hold.run_id!r} holds something else already")
        self.run_id = hold.run_id
        self.attempt = hold.attempt
