"""Where jobs came from, in SQL."""

from collections.abc import Sequence

from duly.domain.ids import JobId
from duly.domain.templates import Origin
from duly.storage.executor import Executor


class SqlOrigins:
    __slots__ = ("_x",)

    def __init__(self, executor: Executor) -> None:
        self._x = executor

    async def get(self, chain: JobId) -> Origin | None:
        for owner, template, version, schema, webhook_url in await self._x.fetch("origin_of", chain=chain):
            return Origin(
                owner=owner, template=template, template_version=version, schema=schema, webhook_url=webhook_url
            )
        return None

    async def save(self, origins: Sequence[tuple[JobId, Origin]]) -> None:
        rows = [
            (chain, origin.owner, origin.template, origin.template_version, origin.schema, origin.webhook_url)
            for chain, origin in origins
        ]
        await self._x.each("save_origins", rows)
