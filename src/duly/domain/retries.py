"""How often a failed job is tried again, and how long it waits in between."""

from dataclasses import dataclass
from typing import Self

from duly.domain.instants import Micros
from duly.domain.texts import whole_number_of

DAY_MS = 86_400_000
MOST_ATTEMPTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """`max_attempts` counts the first one; the wait doubles from `backoff_ms` up to `backoff_cap_ms`."""

    max_attempts: int = 3
    backoff_ms: int = 2_000
    backoff_cap_ms: int = 3_600_000

    def __post_init__(self) -> None:
        whole_number_of(self.max_attempts, field="max_attempts", least=1, most=MOST_ATTEMPTS)
        whole_number_of(self.backoff_ms, field="backoff_ms", least=0, most=DAY_MS)
        whole_number_of(self.backoff_cap_ms, field="backoff_cap_ms", least=0, most=30 * DAY_MS)

    @classmethod
    def of_chain(cls, *, max_attempts: int, backoff_ms: int, backoff_cap_ms: int) -> Self:
        """Counted along a whole chain: every retry by hand renews what a policy allows, beyond any bound."""
        policy = cls(
            max_attempts=min(max_attempts, MOST_ATTEMPTS), backoff_ms=backoff_ms, backoff_cap_ms=backoff_cap_ms
        )
        object.__setattr__(policy, "max_attempts", max_attempts)
        return policy

    def wait_after(self, attempt: int, *, fraction: float) -> Micros:
        """The wait before attempt + 1: less up to a tenth, by chance, so that a crowd returns one by one."""
        doubled = self.backoff_ms << min(attempt - 1, 32)
        wait_ms = min(doubled, self.backoff_cap_ms)
        return Micros(int(wait_ms * 1000 * (1 - fraction / 10)))


DEFAULT_RETRY = RetryPolicy()
NO_RETRY = RetryPolicy(max_attempts=1)
