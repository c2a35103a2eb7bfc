"""Which schedules programs have declared, in SQL."""

from duly.domain.declarations import Declaration
from duly.domain.ids import Owner, ScheduleId
from duly.storage.executor import Executor, Row


class SqlDeclarations:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def get(self, schedule_id: ScheduleId) -> Declaration | None:
        for row in await self._x.fetch("declaration_of", schedule_id=schedule_id):
            return _declaration_from_row(row)
        return None

    async def of_program(self, owner: Owner, program: str) -> list[Declaration]:
        rows = await self._x.fetch("declarations_of_program", owner=owner, program=program)
        return [_declaration_from_row(row) for row in rows]

    async def save(self, declaration: Declaration) -> None:
        await self._x.fetch(
            "save_declaration",
            schedule_id=declaration.schedule_id,
            owner=declaration.owner,
            program=declaration.program,
        )

    async def forget(self, schedule_id: ScheduleId) -> None:
        await self._x.fetch("forget_declaration", schedule_id=schedule_id)


def _declaration_from_row(row: Row) -> Declaration:
    return Declaration(schedule_id=row[0], owner=row[1], program=row[2])
