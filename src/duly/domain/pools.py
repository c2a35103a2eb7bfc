"""A pool: a resource with a limit, in which jobs have their order."""

from dataclasses import dataclass
from enum import StrEnum

from duly.domain.errors import Conflict, InvalidInput, NotFound, Refused
from duly.domain.ids import PoolName
from duly.domain.texts import name_of, whole_number_of

DEFAULT_POOL = PoolName("default")
MOST_SLOTS = 1_000_000


class PoolMode(StrEnum):
    OPEN = "open"
    PAUSED = "paused"  # takes new jobs, starts none
    DRAINING = "draining"  # takes no new jobs, runs those it has


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """`slots` is the limit, `used` what runs or is claimed under it, `tickets` the direct calls waiting for a place.

    With `ageing_ms` set, a job gains one priority for every such span it has waited; `None` keeps priorities fixed.
    With `per_owner` set, no owner's jobs have more places than that at once, however many are ready.
    """

    name: PoolName
    slots: int
    mode: PoolMode = PoolMode.OPEN
    prefetch: int = 0
    ageing_ms: int | None = None
    used: int = 0
    tickets: int = 0
    per_owner: int | None = None

    def __post_init__(self) -> None:
        name_of(self.name, field="pool")
        try:
            object.__setattr__(self, "mode", PoolMode(self.mode))
        except ValueError:
            modes = ", ".join(PoolMode)
            raise InvalidInput("mode", f"{str(self.mode)[:40]!r} is no mode", fix=f"use one of {modes}") from None
        whole_number_of(self.slots, field="slots", least=0, most=MOST_SLOTS)
        whole_number_of(self.prefetch, field="prefetch", least=0, most=1_000)
        if self.ageing_ms is not None:
            whole_number_of(self.ageing_ms, field="ageing_ms", least=1, most=86_400_000)
        if self.per_owner is not None:
            whole_number_of(self.per_owner, field="per_owner", least=1, most=MOST_SLOTS)

    @property
    def has_room(self) -> bool:
        """Room for one more from the queue: tickets that wait come first."""
        return self.mode is not PoolMode.PAUSED and self.used + self.tickets < self.slots

    @property
    def standstill(self) -> str | None:
        """Why none of its jobs can start, if so."""
        if self.mode is PoolMode.PAUSED:
            return f"pool {self.name!r}, which is paused"
        return f"pool {self.name!r} ({self.used} of {self.slots} in use)" if self.used >= self.slots else None


BUILT_IN_POOLS = (
    Pool(name=DEFAULT_POOL, slots=1),
    Pool(name=PoolName("graphs"), slots=16),
    Pool(name=PoolName("flows"), slots=16),
    Pool(name=PoolName("webhooks"), slots=32),
    Pool(name=PoolName("ollama"), slots=1),
)


class UnknownPool(NotFound, InvalidInput):
    """A job or a command names a pool that nobody defined."""

    code = "unknown_pool"

    def __init__(self, name: str, *, field: str = "pool") -> None:
        InvalidInput.__init__(self, field, f"there is no pool named {name!r}", fix="define it first, with its limit")
        self.name = name


class PoolDraining(Refused):
    """The pool takes no new jobs until it is opened again."""

    code = "pool_draining"

    def __init__(self, name: str) -> None:
        super().__init__(f"pool {name!r} is draining and takes no new jobs; open it, or name another pool")
        self.name = name


class PoolInUse(Conflict):
    """A pool with live jobs or tickets cannot be removed."""

    code = "pool_in_use"

    def __init__(self, name: str) -> None:
        super().__init__(f"pool {name!r} still has jobs or tickets; drain it first")
        self.name = name
