"""How often a failed job is tried again, and how long it waits in between."""

from dataclasses import dataclass

from duly.domain.instants import Micros
from duly.domain.texts import whole_number_of

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """`max_attempts` counts the first one; the wait doubles from `backoff_ms` up to `backoff_cap_ms`."""

    max_attempts: int = 3
    backoff_ms: int = 2_000
    backoff_cap_ms: int = 3_600_000

    def __post_init__(self) -> None:
        whole_number_of(self.max_attempts, field="max_attempts", least=1, most=1_000)
        whole_number_of(self.backoff_ms, field="backoff_ms", least=0, most=DAY_MS)
        whole_number_of(self.backoff_cap_ms, field="backoff_cap_ms", least=0, most=30 * DAY_MS)

    def wait_after(self, attempt: int, *, fraction: float) -> Micros:
        """The wait before attempt + 1: less up to a tenth, by chance, so that a crowd returns one by one."""
        doubled = self.backoff_ms << min(attempt - 1, 32)
        wait_ms = min(doubled, self.backoff_cap_ms)
        return Micros(int(wait_ms * 1000 * (1 - fraction / 10)))


DEFAULT_RETRY = RetryPolicy()
NO_RETRY = RetryPolicy(max_attempts=1)
