"""What a program does with what it has declared, once it is open."""

from collections.abc import Iterable, Sequence
from typing import Any, Unpack

from duly.app.client import Client, FromOptions, GroupOptions, Named, PutOptions
from duly.app.declared import Params
from duly.app.durations import Duration
from duly.app.refusals import NotOpen
from duly.app.results import Awaited
from duly.app.templates import Asked
from duly.domain.explanations import Explained, Explanation
from duly.domain.groups import Group
from duly.domain.jobs import Job, Put
from duly.domain.runs import Run
from duly.domain.schedules import Schedule
from duly.domain.webhooks.endpoints import Endpoint


class Using:
    """Each in the event loop that the app was opened in; `app.sync` is the same for code without one."""

    @property
    def _open_client(self) -> Client:
        raise NotOpen

    async def put(
        self,
        job: Named,
        params: Params | None = None,
        *,
        key: str | None = None,
        connection: object | None = None,
        **options: Unpack[PutOptions],
    ) -> Put:
        """Durable when it returns. A `key` that waits already is replaced, one that runs is left alone.

        With a `connection` of your own to the same Postgres, the job is part of its transaction: durable when that is.
        """
        return await self._open_client.put(job, params, key=key, connection=connection, **options)

    async def direct(self, job: Named, params: Params | None = None, *, timeout: Duration | float | None = None) -> Any:  # noqa: ASYNC109 - one time for place and run
        """What a template's handler answers, or a declared job's: run in this process, now or right after what runs.

        It comes before the queue and puts no job. Raises DirectFailed, or Deadline when time is up (60 s).
        """
        return await self._open_client.direct(job, params, timeout=timeout)

    async def put_many(
        self, job: Named, params: Iterable[Params], *, connection: object | None = None, **options: Unpack[PutOptions]
    ) -> list[Put]:
        """The same job for each of many params: all or none of them, in one transaction."""
        return await self._open_client.put_many(job, params, connection=connection, **options)

    async def put_from(
        self, template: str, params: Params | None = None, *, key: str | None = None, **options: Unpack[FromOptions]
    ) -> Put:
        """A job made from a template: a snapshot, with what is given here in its places, that stays as it is."""
        return await self._open_client.put_from(template, params, key=key, **options)

    async def group(self, members: Iterable[Asked], **options: Unpack[GroupOptions]) -> Group:
        """Puts jobs that belong together: each a job or a template, alone or as a pair with its params."""
        return await self._open_client.group(members, **options)

    async def group_ended(self, group: str | Group, *, timeout: Duration | float | None = None) -> Group:  # noqa: ASYNC109 - one time for all looks
        """The group once all its members have ended; raises GroupRunning when time is up."""
        return await self._open_client.group_ended(group, timeout=timeout)

    async def retry(self, job: Awaited, *, key: str | None = None) -> Put:
        """Tries an ended job again by hand; the same key answers the same attempt."""
        return await self._open_client.retry(job, key=key)

    async def edit(self, job: Awaited, params: Params) -> Job:
        """Other params for a job that nobody has yet; from its dispatch on they are fixed."""
        return await self._open_client.edit(job, params)

    async def result(self, job: Awaited, *, timeout: Duration | float | None = None) -> Any:  # noqa: ASYNC109 - one time for all looks
        """What the job's function returned, once it has; raises JobFailed, or JobNotEnded when time is up."""
        return await self._open_client.result(job, timeout=timeout)

    async def why(self, asked: Awaited | Group) -> Explanation | Explained:
        """Why a schedule, run, job, group or run of a workflow is as it is: its `answer`, and `sentences`."""
        return await self._open_client.why(asked)

    async def trigger(self, schedule: Named, *, key: str | None = None) -> Run:
        """A run by hand, now, by a schedule's id or the function it runs; the same key answers the same run."""
        return await self._open_client.trigger(schedule, key=key)

    async def pause(self, schedule: Named) -> Schedule:
        """Opens no more slots of it, in this and every later run of the program, until it is resumed."""
        return await self._open_client.pause(schedule)

    async def resume(self, schedule: Named) -> Schedule:
        return await self._open_client.resume(schedule)

    async def schedules(self) -> list[Schedule]:
        return await self._open_client.schedules()

    async def add_webhook(
        self, url: str, *, events: Sequence[str] = ("*",), everything: bool = True
    ) -> tuple[Endpoint, str]:
        """Who is told of what ends, and the secret that it is signed with, shown this once."""
        return await self._open_client.add_webhook(url, events=events, everything=everything)
