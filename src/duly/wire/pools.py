"""Pools, in JSON."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from duly.domain.pools import Pool as DomainPool
from duly.domain.pools import PoolMode
from duly.wire.shapes import Shape


class Pool(Shape):
    name: str
    slots: Annotated[int, Field(description="How many jobs may run at once.")]
    mode: PoolMode
    prefetch: int
    ageing_ms: Annotated[int | None, Field(description="A job gains one priority for every such span of waiting.")]
    used: int
    tickets: int
    per_owner: Annotated[
        int | None, Field(description="How many jobs of one owner may run at once; null: as many as there is room for.")
    ]


class PoolPatch(Shape):
    """Any of the fields; those left out stay."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"slots": 4, "mode": "open"}]})

    slots: int = 0
    mode: Annotated[PoolMode, Field(strict=False)] = PoolMode.OPEN
    prefetch: int = 0
    ageing_ms: int | None = None
    per_owner: int | None = None

    def given(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model_fields_set}


def pool_shape(pool: DomainPool) -> Pool:
    return Pool(
        name=pool.name,
        slots=pool.slots,
        mode=pool.mode,
        prefetch=pool.prefetch,
        ageing_ms=pool.ageing_ms,
        used=pool.used,
        tickets=pool.tickets,
        per_owner=pool.per_owner,
    )
