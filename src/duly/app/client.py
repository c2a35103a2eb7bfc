"""What a program asks of its queue every day, by function or by name; everything else is on the queue itself."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

from duly.app.declared import Params
from duly.app.durations import Duration, ms_of
from duly.app.register import Register
from duly.app.results import Awaited, result_of
from duly.bootstrap import Queue
from duly.domain.errors import InvalidInput
from duly.domain.instants import Instant, instant_of
from duly.domain.jobs import Put
from duly.domain.retries import DAY_MS
from duly.domain.runs import Run
from duly.domain.schedules import Schedule
from duly.domain.webhooks.endpoints import Endpoint

Named = str | Callable[..., Any]
RunAt = datetime | str | timedelta

_PAGE = 1_000
_YEAR_MS = 366 * DAY_MS


class PutOptions(TypedDict, total=False):
    """What one put can say; the rest is as the job was declared. `run_at` is an instant, or a text such as "in 5m"."""

    lane: str | None
    run_at: RunAt | None
    priority: int | None
    pool: str | None
    resources: Sequence[str]


@dataclass(frozen=True, slots=True)
class Client:
    queue: Queue
    register: Register
    owner: str

    async def put(
        self, job: Named, params: Params | None = None, *, key: str | None = None, **options: Unpack[PutOptions]
    ) -> Put:
        declared = self.register.job(job)
        declared.require_fit(params)
        return await self.queue.jobs.put(declared.new(params, key=key, **self._asked(options)))

    async def put_many(self, job: Named, params: Iterable[Params], **options: Unpack[PutOptions]) -> list[Put]:
        """The same job for each of many params: all or none of them, in one transaction."""
        declared = self.register.job(job)
        every = list(params)
        for each in every:
            declared.require_fit(each)
        return await self.queue.jobs.put_alike(
            declared.new(None, **self._asked(options)), [dict(each) for each in every]
        )

    async def result(self, job: Awaited, *, timeout: Duration | float | None = None) -> Any:  # noqa: ASYNC109 - one time for all looks
        """What the job's handler answered, when it has; `timeout` is in seconds, or a text such as "30s"."""
        return await result_of(self.queue, job, timeout_s=seconds_of(timeout, field="timeout"))

    async def trigger(self, schedule: Named, *, key: str | None = None) -> Run:
        """A run by hand, now; the same key again answers the same run."""
        return await self.queue.schedules.run_now(self.register.schedule_id(schedule), owner=self.owner, key=key)

    async def pause(self, schedule: Named) -> Schedule:
        """Opens no more slots of it, in this and every later run of the program, until it is resumed."""
        return await self.queue.schedules.pause(self.register.schedule_id(schedule), owner=self.owner)

    async def resume(self, schedule: Named) -> Schedule:
        return await self.queue.schedules.resume(self.register.schedule_id(schedule), owner=self.owner)

    async def add_webhook(
        self, url: str, *, events: Sequence[str] = ("*",), everything: bool = True
    ) -> tuple[Endpoint, str]:
        """Who is told of what ends, and the secret that it is signed with, shown this once.

        Jobs that a program puts have no owner, so they are among `everything`.
        """
        return await self.queue.webhooks.create(url, owner=self.owner, events=events, everything=everything)

    async def schedules(self) -> list[Schedule]:
        """All that have the program's owner, declared or not."""
        found: list[Schedule] = []
        while page := await self.queue.schedules.list(
            owner=self.owner, after=found[-1].id if found else None, most=_PAGE
        ):
            found += page
        return found

    def _asked(self, options: PutOptions) -> Any:
        """As a job says it, in which an instant is an instant."""
        return {**options, "run_at": self._instant(options.get("run_at"))}

    def _instant(self, run_at: RunAt | None) -> Instant | None:
        if run_at is None or isinstance(run_at, datetime):
            return None if run_at is None else instant_of(run_at, field="run_at")
        if isinstance(run_at, str):
            if not run_at.startswith("in "):
                raise InvalidInput(
                    "run_at", f"{run_at[:40]!r} is no instant", fix="pass a datetime, or text as 'in 5m'"
                )
            run_at = run_at.removeprefix("in ")
        wait_ms = ms_of(run_at, field="run_at", least=0, most=_YEAR_MS)
        return Instant(self.queue.storage.clock.now() + wait_ms * 1_000)


def seconds_of(duration: Duration | float | None, *, field: str) -> float | None:
    if duration is None or isinstance(duration, (int, float)):
        return duration
    return ms_of(duration, field=field, least=0, most=_YEAR_MS) / 1_000
