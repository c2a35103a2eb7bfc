"""What money should do, in plain dicts: no rule of it is shared with what is tested."""

from dataclasses import dataclass, field

Key = tuple[str, int]


class Refusal(Exception):
    """Its text is the code of the error that is expected."""


@dataclass
class HoldModel:
    amount: int
    schedule: str | None
    day: int
    state: str = "held"
    expires: int = 0


@dataclass
class MoneyModel:
    """One account, one schedule with a daily budget; time is whole seconds, and days begin with the model."""

    lease: int
    limit: int
    now: int = 0
    credits: dict[str, int] = field(default_factory=dict)
    holds: dict[Key, HoldModel] = field(default_factory=dict)
    receipts: dict[tuple[str, int, str], int | None] = field(default_factory=dict)

    @property
    def day(self) -> int:
        return self.now // 86_400

    def spent(self, key: Key) -> int:
        return sum(amount or 0 for (run, attempt, _), amount in self.receipts.items() if (run, attempt) == key)

    def has_receipts(self, key: Key) -> bool:
        return any((run, attempt) == key for run, attempt, _ in self.receipts)

    def figures(self) -> tuple[int, int, int, int, int]:
        granted = sum(self.credits.values())
        held = sum(hold.amount for hold in self.holds.values() if hold.state == "held")
        used = sum(self.spent(key) for key, hold in self.holds.items() if hold.state != "held")
        left = granted - held - used
        return granted, max(left, 0), held, used - max(-left, 0), max(-left, 0)

    def used_of_budget(self) -> int:
        return sum(
            hold.amount if hold.state == "held" else self.spent(key)
            for key, hold in self.holds.items()
            if hold.schedule is not None and hold.day == self.day
        )

    def credit(self, key: str, amount: int) -> None:
        if self.credits.setdefault(key, amount) != amount:
            raise Refusal("credit_key_reused")

    def hold(self, key: Key, amount: int, schedule: str | None) -> str:
        known = self.holds.get(key)
        if known is None:
            if amount > self.figures()[1]:
                raise Refusal("insufficient_credit")
            if schedule is not None and amount and self.used_of_budget() + amount > self.limit:
                raise Refusal("over_budget")
            self.holds[key] = HoldModel(amount, schedule, self.day, expires=self.now + self.lease)
            return "held"
        if (known.amount, known.schedule) != (amount, schedule):
            raise Refusal("hold_differs")
        if known.state != "held":
            raise Refusal("hold_ended")
        return "held"

    def renew(self, key: Key) -> str:
        hold = self._known(key)
        if hold.state != "held":
            raise Refusal("hold_ended")
        hold.expires = self.now + self.lease
        return "held"

    def receipt(self, key: Key, unit: str, amount: int | None) -> int | None:
        self._known(key)
        if self.receipts.setdefault((*key, unit), amount) != amount:
            raise Refusal("receipt_differs")
        return amount

    def settle(self, key: Key) -> str:
        return self._end(key, "settled")

    def release(self, key: Key) -> str:
        return self._end(key, "settled" if self.has_receipts(key) else "released")

    def lapse(self) -> list[Key]:
        gone = [key for key, hold in self.holds.items() if hold.state == "held" and hold.expires <= self.now]
        for key in gone:
            self.holds[key].state = "lapsed"
        return gone

    def _end(self, key: Key, state: str) -> str:
        hold = self._known(key)
        if hold.state == "held":
            hold.state = state
        return hold.state

    def _known(self, key: Key) -> HoldModel:
        if key not in self.holds:
            raise Refusal("unknown_hold")
        return self.holds[key]
