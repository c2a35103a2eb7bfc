"""What callers do with templates. `owner` is the caller; an operator names none."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from duly.application.webhooks import EndpointBook, add_endpoint
from duly.domain.errors import InvalidInput
from duly.domain.ids import Owner
from duly.domain.templates import NewTemplate, Template, TemplateChanged, TemplateExists, UnknownTemplate
from duly.domain.texts import text_of, whole_number_of
from duly.ports.storage import Storage, Transaction

MOST_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class Templates:
    storage: Storage
    endpoints: EndpointBook

    async def create(self, asked: NewTemplate, *, owner: str) -> Template:
        whose = Owner(text_of(owner, field="owner"))
        now = self.storage.clock.now()
        made = Template(asked=asked, owner=whose, version=1, created_at=now, updated_at=now)
        endpoint = self.endpoints.named(asked.webhook_url, owner=whose, now=now)

        async def work(tx: Transaction) -> Template:
            await add_endpoint(tx, endpoint)
            if await tx.templates.add(asked, whose, now) or await tx.templates.get(asked.name) == made:
                return made
            raise TemplateExists(asked.name)

        return await self.storage.transact(work)

    async def update(self, asked: NewTemplate, *, owner: str | None, version: int) -> Template:
        """`version` is the one that the change was made from. Jobs that were made from it stay as they are."""
        now = self.storage.clock.now()
        endpoint = self.endpoints.named(asked.webhook_url, owner=Owner(""), now=now)

        async def work(tx: Transaction) -> Template:
            found = known(await tx.templates.lock(asked.name), asked.name, owner)
            if (found.version, found.updated_at, found.asked) == (version + 1, now, asked):
                return found  # run again after a lost answer
            _require_version(found, version)
            await add_endpoint(tx, endpoint and replace(endpoint, owner=found.owner))
            await tx.templates.update(asked, now)
            return known(await tx.templates.get(asked.name), asked.name, owner)

        return await self.storage.transact(work)

    async def delete(self, name: str, *, owner: str | None, version: int | None = None) -> None:
        """Its jobs, and groups that have it in them, run as they were put."""

        is_found = False

        async def work(tx: Transaction) -> None:
            nonlocal is_found
            template = await tx.templates.lock(name)
            # An earlier run of this work, whose answer was lost, may have deleted it.
            if is_found and template is None:
                return
            found = known(template, name, owner)
            is_found = True
            if version is not None:
                _require_version(found, version)
            await tx.templates.delete(name)

        await self.storage.transact(work)

    async def get(self, name: str, *, owner: str | None) -> Template:
        async def work(tx: Transaction) -> Template:
            return await template_known(tx, name, owner)

        return await self.storage.read(work)

    async def list(self, *, owner: str | None, after: str | None = None, most: int = 100) -> Sequence[Template]:
        """In order of name; `after` is the last name seen."""
        whole_number_of(most, field="most", least=1, most=MOST_LISTED)
        whose = None if owner is None else Owner(text_of(owner, field="owner"))

        async def work(tx: Transaction) -> Sequence[Template]:
            return await tx.templates.listed(whose, after=after, most=most)

        return await self.storage.read(work)


async def template_known(tx: Transaction, name: str, owner: str | None) -> Template:
    """Somebody else's template does not exist."""
    return known(await tx.templates.get(text_of(name, field="template")), name, owner)


def known(template: Template | None, name: str, owner: str | None) -> Template:
    if template is None or owner not in (None, template.owner):
        raise UnknownTemplate(name)
    return template


def _require_version(template: Template, version: int) -> None:
    if not isinstance(version, int) or isinstance(version, bool):
        raise InvalidInput("version", "is no number", fix="give the version that the change was made from")
    if template.version != version:
        raise TemplateChanged(template.name, version=template.version)
