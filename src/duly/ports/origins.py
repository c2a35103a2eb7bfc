"""Where jobs came from, as a store keeps it: by chain, for those that came from a template or a group."""

from collections.abc import Sequence
from typing import Protocol

from duly.domain.ids import JobId
from duly.domain.templates import Origin


class OriginStore(Protocol):
    async def get(self, chain: JobId) -> Origin | None: ...

    async def save(self, origins: Sequence[tuple[JobId, Origin]]) -> None:
        """The last that was said of a chain stands."""
