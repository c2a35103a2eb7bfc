"""What runs that are about to be asked for will cost: what is held for them, what runs before them cost, who pays."""

from collections.abc import Iterator
from dataclasses import dataclass

from duly.domain.amounts import Amount, written_amount
from duly.domain.errors import InvalidInput
from duly.domain.ids import AccountId


@dataclass(frozen=True, slots=True, kw_only=True)
class Purse:
    """An account that pays: `held` is what all runs at its cost hold, if none of them has ended before another."""

    account_id: AccountId
    currency: str
    runs: int
    held: Amount
    available: int

    @property
    def covers(self) -> bool:
        return self.held <= self.available


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What the last `runs` of the same schedules cost, by their receipts; of some of them nobody knows it all."""

    runs: int
    spent: int
    unmetered: int
    currency: str

    @property
    def mean(self) -> Amount:
        return Amount(-(-self.spent // self.runs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Of `runs` in all. `unbounded` are graphs for which nothing is held, so that nothing says what they may cost."""

    runs: int
    unbounded: int = 0
    purses: tuple[Purse, ...] = ()
    past: tuple[Past, ...] = ()

    @property
    def free(self) -> int:
        """Those that execute nothing that costs."""
        return self.runs - self.unbounded - sum(purse.runs for purse in self.purses)

    @property
    def is_covered(self) -> bool:
        return all(purse.covers for purse in self.purses)

    @property
    def held(self) -> dict[str, int]:
        """In all, by currency."""
        sums: dict[str, int] = {}
        for purse in self.purses:
            sums[purse.currency] = sums.get(purse.currency, 0) + purse.held
        return sums

    def require_within(self, max_cost: Amount | None) -> None:
        """Refuses what may cost more, and what nobody can say of."""
        if max_cost is None:
            return
        if self.unbounded:
            why = f"nothing says what {self.unbounded} of {self.runs} runs may cost"
            raise InvalidInput("max_cost", why, fix="give them a max_cost of their own, or leave this one out")
        for currency, held in self.held.items():
            if held > max_cost:
                why = f"{written_amount(held)} {currency} would be held, more than {written_amount(max_cost)}"
                raise InvalidInput("max_cost", why, fix="choose fewer runs, or raise it")

    def fits(self, max_cost: Amount | None) -> bool:
        is_bounded = not self.unbounded and all(held <= (max_cost or 0) for held in self.held.values())
        return max_cost is None or is_bounded

    def in_words(self) -> Iterator[str]:
        """A sentence for each account, one for what is not bounded, and one for what runs before them cost."""
        if not self.purses and not self.unbounded:
            yield "It costs nothing."
        for purse in self.purses:
            held = f"{written_amount(purse.held)} {purse.currency} is held for {_runs(purse.runs)}"
            has = f"{purse.account_id} has {written_amount(purse.available)} {purse.currency} available"
            yield f"{held} at most; {has}, {'which covers it' if purse.covers else 'which does not cover it'}."
        if self.unbounded:
            yield f"For {_runs(self.unbounded)} nothing is held, and nothing says what that may cost: unmetered."
        for past in self.past:
            mean = f"{written_amount(past.mean)} {past.currency} on average, over {_runs(past.runs)}"
            unknown = (
                f"; {past.unmetered} of them used something that nobody knows the cost of" if past.unmetered else ""
            )
            yield f"Such runs have cost {mean}{unknown}."


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"
