"""Templates in SQL."""

from duly.domain.ids import Owner
from duly.domain.instants import Instant
from duly.domain.templates import NewTemplate, Template
from duly.storage.executor import Executor, Row
from duly.storage.sql.snapshots import template_from, template_text


class SqlTemplates:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def add(self, asked: NewTemplate, owner: Owner, now: Instant) -> bool:
        spec = template_text(asked)
        return bool(await self._x.fetch("insert_template", name=asked.name, owner=owner, now=now, spec=spec))

    async def get(self, name: str) -> Template | None:
        for row in await self._x.fetch("template_by_name", name=name):
            return _template_from_row(row)
        return None

    async def lock(self, name: str) -> Template | None:
        for row in await self._x.fetch("template_by_name_locked", name=name):
            return _template_from_row(row)
        return None

    async def update(self, asked: NewTemplate, now: Instant) -> None:
        await self._x.fetch("update_template", name=asked.name, now=now, spec=template_text(asked))

    async def delete(self, name: str) -> None:
        await self._x.fetch("delete_template", name=name)

    async def listed(self, owner: Owner | None, *, after: str | None, most: int) -> list[Template]:
        if owner is None:
            rows = await self._x.fetch("templates_listed", after=after or "", most=most)
        else:
            rows = await self._x.fetch("templates_listed_of_owner", owner=owner, after=after or "", most=most)
        return [_template_from_row(row) for row in rows]


def _template_from_row(row: Row) -> Template:
    name, owner, version, created_at, updated_at, spec = row
    return Template(
        asked=template_from(name, spec), owner=owner, version=version, created_at=created_at, updated_at=updated_at
    )
