"""What a database says of itself, for whoever looks after it."""

from dataclasses import dataclass

from duly.domain.instants import Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFacts:
    """`schema_found` is 0 if nothing was migrated. The last ones are known of a SQLite file only."""

    engine: str
    version: str
    schema_found: int
    schema_known: int
    clock_offset: Micros | None = None
    path: str | None = None
    journal_mode: str | None = None
    may_lose_a_reset_log: bool = False
    file_bytes: int | None = None
    log_bytes: int | None = None

    @property
    def is_current(self) -> bool:
        return self.schema_found == self.schema_known
