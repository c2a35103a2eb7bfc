"""Templates as a store keeps them."""

from typing import Protocol

from duly.domain.ids import Owner
from duly.domain.instants import Instant
from duly.domain.templates import NewTemplate, Template


class TemplateStore(Protocol):
    async def add(self, asked: NewTemplate, owner: Owner, now: Instant) -> bool:
        """At version 1; False if the name is taken."""

    async def get(self, name: str) -> Template | None: ...

    async def lock(self, name: str) -> Template | None:
        """Kept from changing until commit."""

    async def update(self, asked: NewTemplate, now: Instant) -> None:
        """At the next version."""

    async def delete(self, name: str) -> None: ...

    async def listed(self, owner: Owner | None, *, after: str | None, most: int) -> list[Template]:
        """In order of name; everybody's if no owner is named."""
