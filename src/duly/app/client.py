"""What a program asks of its queue every day, by function or by name; everything else is on the queue itself."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

from duly.app.declared import Params, require_params
from duly.app.direct import called
from duly.app.durations import Duration, ms_of
from duly.app.register import Register
from duly.app.results import Awaited, end_of_group, job_id_of, result_of
from duly.app.templates import Asked, member_of
from duly.application.jobs import Jobs
from duly.bootstrap import DirectCalls, Queue
from duly.domain.errors import InvalidInput
from duly.domain.explanations import Explained, Explanation
from duly.domain.groups import Group, GroupMode, NewGroup
from duly.domain.ids import JobKey, Lane
from duly.domain.instants import Instant, instant_of
from duly.domain.jobs import Job, Put
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


class FromOptions(TypedDict, total=False):
    """What one put can say beside its template."""

    lane: str | None
    run_at: RunAt | None
    priority: int | None


class GroupOptions(TypedDict, total=False):
    """`sequential`: one after the other; it stops at a failure unless `stop_on_failure` is False."""

    sequential: bool
    stop_on_failure: bool | None
    name: str
    webhook_url: str | None


@dataclass(frozen=True, slots=True)
class Client:
    queue: Queue
    register: Register
    owner: str
    calls: DirectCalls = field(init=False)

    def __post_init__(self) -> None:
        calls = self.queue.direct_calls(handlers=lambda: self.register.handlers, name=f"{self.owner} direct")
        object.__setattr__(self, "calls", calls)

    async def close(self) -> None:
        """Direct calls that run may go on for the grace."""
        await self.calls.close(grace=self.queue.settings.grace)
        await self.queue.close()

    async def direct(self, job: Named, params: Params | None = None, *, timeout: Duration | float | None = None) -> Any:  # noqa: ASYNC109 - one time for place and run
        """What a template's handler answers, or a job's of this program, run here and now, ahead of the queue."""
        return await called(self.calls, self.register, job, params, owner=self.owner, timeout=timeout)

    async def put(
        self,
        job: Named,
        params: Params | None = None,
        *,
        key: str | None = None,
        connection: object | None = None,
        **options: Unpack[PutOptions],
    ) -> Put:
        declared = self.register.job(job)
        declared.require_fit(params)
        return await self._jobs(connection).put(declared.new(params, key=key, **self._asked(options)))

    async def put_many(
        self,
        job: Named,
        params: Iterable[Params],
        *,
        connection: object | None = None,
        **options: Unpack[PutOptions],
    ) -> list[Put]:
        """The same job for each of many params: all or none of them, in one transaction."""
        declared = self.register.job(job)
        every = list(params)
        for each in every:
            declared.require_fit(each)
        return await self._jobs(connection).put_alike(
            declared.new(None, **self._asked(options)), [dict(each) for each in every]
        )

    async def put_from(
        self, template: str, params: Params | None = None, *, key: str | None = None, **options: Unpack[FromOptions]
    ) -> Put:
        """A snapshot of a template, of this program or of another with the same owner."""
        require_params(params)
        lane = options.get("lane")
        return await self.queue.jobs.put_from(
            template,
            params,
            owner=self.owner,
            key=None if key is None else JobKey(key),
            lane=None if lane is None else Lane(lane),
            priority=options.get("priority"),
            run_at=self._instant(options.get("run_at")),
        )

    async def group(self, members: Iterable[Asked], **options: Unpack[GroupOptions]) -> Group:
        """Each member is a job or a template, alone or with params as a pair; all are right, or nothing is written."""
        mode = GroupMode.SEQUENTIAL if options.get("sequential") else GroupMode.PARALLEL
        asked = NewGroup(
            members=[member_of(self.register, each) for each in members],
            mode=mode,
            stop_on_failure=options.get("stop_on_failure"),
            name=options.get("name", ""),
            webhook_url=options.get("webhook_url"),
        )
        return await self.queue.groups.create(asked, owner=self.owner)

    async def group_ended(self, group: str | Group, *, timeout: Duration | float | None = None) -> Group:  # noqa: ASYNC109 - one time for all looks
        """The group once all its members have ended; raises GroupRunning when time is up."""
        named = group.id if isinstance(group, Group) else group
        return await end_of_group(self.queue, named, self.owner, timeout_s=seconds_of(timeout, field="timeout"))

    async def retry(self, job: Awaited, *, key: str | None = None) -> Put:
        """Tries an ended job again, as often as its policy allows; the same key answers the same attempt."""
        return await self.queue.jobs.retry(job_id_of(job), key=key)

    async def edit(self, job: Awaited, params: Params) -> Job:
        """Other params for a job that nobody has yet; from its dispatch on they are fixed."""
        require_params(params)
        return await self.queue.jobs.edit_params(job_id_of(job), params)

    async def result(self, job: Awaited, *, timeout: Duration | float | None = None) -> Any:  # noqa: ASYNC109 - one time for all looks
        """What the job's handler answered, when it has; `timeout` is in seconds, or a text such as "30s"."""
        return await result_of(self.queue, job, timeout_s=seconds_of(timeout, field="timeout"))

    async def why(self, asked: Awaited | Group) -> Explanation | Explained:
        """Why a schedule, run, job, group or run of a workflow is as it is, by its id or what was answered for it."""
        named = asked.id if isinstance(asked, Group | Run) else asked.job_id if isinstance(asked, Put) else asked
        return await self.queue.why.of(named)

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

    def _jobs(self, connection: object | None) -> Jobs:
        return self.queue.jobs if connection is None else self.queue.within(connection)

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
