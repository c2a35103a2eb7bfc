"""Which schedules programs have declared, as a store keeps it."""

from typing import Protocol

from duly.domain.declarations import Declaration
from duly.domain.ids import Owner, ScheduleId


class DeclarationStore(Protocol):
    async def get(self, schedule_id: ScheduleId) -> Declaration | None: ...

    async def of_program(self, owner: Owner, program: str) -> list[Declaration]:
        """In order of id."""

    async def save(self, declaration: Declaration) -> None: ...

    async def forget(self, schedule_id: ScheduleId) -> None: ...
