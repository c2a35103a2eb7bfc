"""Control over schedules, whoever keeps their time: the embedded timekeeper, or an engine elsewhere."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from duly.domain.amounts import Amount
from duly.domain.cadence import Cadence
from duly.domain.policies import Policies
from duly.domain.runs import Run
from duly.domain.schedules import Schedule, Target


class ScheduleControl(Protocol):
    """Every call names its caller, who sees only its own schedules; an operator, who names nobody, sees all."""

    async def create(
        self,
        *,
        owner: str,
        cadence: Cadence,
        target: Target,
        policies: Policies | None = None,
        schedule_id: str | None = None,
        enabled: bool = True,
    ) -> Schedule: ...

    async def update(
        self,
        schedule_id: str,
        *,
        owner: str | None,
        cadence: Cadence | None = None,
        target: Target | None = None,
        policies: Policies | None = None,
        enabled: bool | None = None,
        expected_revision: int | None = None,
        withdraw: bool = False,
    ) -> Schedule: ...

    async def pause(
        self, schedule_id: str, *, owner: str | None, expected_revision: int | None = None, withdraw: bool = False
    ) -> Schedule: ...

    async def resume(
        self, schedule_id: str, *, owner: str | None, expected_revision: int | None = None
    ) -> Schedule: ...

    async def trigger(self, schedule_id: str, *, owner: str | None, key: str | None = None) -> Run: ...

    async def backfill(
        self,
        schedule_id: str,
        *,
        owner: str | None,
        start: datetime,
        end: datetime,
        cap: int = 100,
        max_cost: Amount | None = None,
        expected_revision: int | None = None,
        key: str | None = None,
    ) -> Sequence[Run]: ...

    async def delete(
        self, schedule_id: str, *, owner: str | None, expected_revision: int | None = None, withdraw: bool = False
    ) -> Schedule: ...

    async def describe(self, schedule_id: str, *, owner: str | None) -> Schedule: ...

    async def list(self, *, owner: str | None, after: str | None = None, most: int = 100) -> Sequence[Schedule]: ...
