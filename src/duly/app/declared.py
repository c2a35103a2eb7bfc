"""What a program declares: jobs with their options, and the schedules that run them. What is wrong is refused here."""

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from duly.app.durations import Duration, ms_of
from duly.app.graphs import POOL, RETRY
from duly.bootstrap import Call, Handler
from duly.domain.cadence import Cadence
from duly.domain.declarations import Declared
from duly.domain.errors import InvalidInput
from duly.domain.executions import GRAPH_RUN
from duly.domain.ids import JobKey, Lane, PoolName
from duly.domain.instants import Instant
from duly.domain.jobs import NewJob
from duly.domain.policies import LONGEST_JITTER_MS, Policies
from duly.domain.pools import DEFAULT_POOL
from duly.domain.retries import DAY_MS, RetryPolicy
from duly.domain.schedules import LONGEST_ID, Target
from duly.domain.texts import name_of, text_of, whole_number_of

MOST_RETRIES = 999
_DEFAULT_RETRIES = 2
_DEFAULT_BACKOFF = "2s"

Params = Mapping[str, Any]


class JobOptions(TypedDict, total=False):
    """What can be said of any job.

    `schedule` is a cadence; `schedule_id` its id (the job's name, unless given), `params` what its runs are given.
    `overlap`, `catch_up`, `catch_up_cap` and `jitter` are its policies. `retries` is how many more tries follow the
    first, `backoff` the first pause between them, which doubles; `timeout` ends a run that takes longer.
    """

    schedule: Cadence | None
    schedule_id: str | None
    params: Params | None
    overlap: str | None
    catch_up: str | None
    catch_up_cap: int | None
    jitter: Duration | int | None
    retries: int
    backoff: Duration
    timeout: Duration | None
    pool: str
    priority: int
    lane: str | None


class GraphOptions(TypedDict, total=False):
    """What can be said of a graph's schedule, as of a job's."""

    schedule: Cadence | None
    schedule_id: str | None
    overlap: str | None
    catch_up: str | None
    catch_up_cap: int | None
    jitter: Duration | int | None
    priority: int


_OF_SCHEDULES = ("schedule_id", "params", "overlap", "catch_up", "catch_up_cap", "jitter")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredJob:
    """A job by its name: how it is run, and what a put that says nothing else asks for."""

    name: str
    handler: Handler
    call: Call | None
    retry: RetryPolicy
    timeout_ms: int | None
    pool: PoolName
    priority: int
    lane: Lane | None

    def new(
        self,
        params: Params | None,
        *,
        key: str | None = None,
        lane: str | None = None,
        run_at: Instant | None = None,
        priority: int | None = None,
        pool: str | None = None,
        resources: Sequence[str] = (),
    ) -> NewJob:
        return NewJob(
            kind=self.name,
            params=None if params is None else dict(params),
            key=None if key is None else JobKey(key),
            lane=self.lane if lane is None else Lane(lane),
            pool=self.pool if pool is None else PoolName(pool),
            resources=_names(resources),
            priority=self.priority if priority is None else priority,
            run_at=run_at,
            retry=self.retry,
            timeout_ms=self.timeout_ms,
        )

    def require_fit(self, params: Params | None, *, has_slot: bool = False) -> None:
        """Before anything is put: what does not fit now would fail when it runs."""
        require_params(params)
        misfit = self.call and self.call.misfit(params or {}, has_slot=has_slot)
        if misfit:
            raise InvalidInput(
                "params", f"do not fit {self.name!r}: {misfit}", fix="name its parameters, and only those"
            )


def require_params(params: object) -> None:
    if params is not None and not isinstance(params, Mapping):
        raise InvalidInput("params", f"is a {type(params).__name__}", fix="pass a dict, a parameter's name a key")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSchedule:
    """`given` are the policies it names; the others are the settings' own."""

    id: str
    cadence: Cadence
    target: Target
    given: Mapping[str, Any]

    def declared(self, defaults: Policies) -> Declared:
        return Declared(id=self.id, cadence=self.cadence, target=self.target, policies=replace(defaults, **self.given))


def job_of(name: str, handler: Handler, call: Call | None, options: JobOptions) -> DeclaredJob:
    _require_known(options)
    retries = whole_number_of(options.get("retries", _DEFAULT_RETRIES), field="retries", least=0, most=MOST_RETRIES)
    timeout, lane = options.get("timeout"), options.get("lane")
    job = DeclaredJob(
        name=name_of(name, field="name"),
        handler=handler,
        call=call,
        retry=RetryPolicy(
            max_attempts=retries + 1,
            backoff_ms=ms_of(options.get("backoff", _DEFAULT_BACKOFF), field="backoff", least=0, most=DAY_MS),
        ),
        timeout_ms=None if timeout is None else ms_of(timeout, field="timeout", least=1, most=30 * DAY_MS),
        pool=PoolName(options.get("pool", DEFAULT_POOL)),
        priority=options.get("priority", 0),
        lane=None if lane is None else Lane(lane),
    )
    job.new(None)  # refuses what no put could ask for
    return job


def schedule_of(job: DeclaredJob, options: JobOptions) -> DeclaredSchedule | None:
    cadence, params = options.get("schedule"), options.get("params")
    if cadence is None:
        if idle := [name for name in _OF_SCHEDULES if options.get(name) is not None]:
            raise InvalidInput(
                idle[0], "says something of a schedule, and there is none", fix="add schedule=every('1h')"
            )
        return None
    if not isinstance(cadence, Cadence):
        raise InvalidInput("schedule", f"is a {type(cadence).__name__}", fix="use cron(…), every(…) or once(…)")
    job.require_fit(params, has_slot=True)
    return DeclaredSchedule(
        id=text_of(options.get("schedule_id") or job.name, field="schedule_id", longest=LONGEST_ID),
        cadence=cadence,
        target=Target(
            kind=job.name,
            params=None if params is None else dict(params),
            pool=job.pool,
            priority=job.priority,
            retry=job.retry,
            timeout_ms=job.timeout_ms,
        ),
        given=policies_given(options),
    )


def schedule_of_graph(name: str, params: Params, options: GraphOptions) -> DeclaredSchedule | None:
    for option in options:
        if option not in GraphOptions.__annotations__:
            raise InvalidInput(option, "is no option of a graph", fix=f"use {', '.join(GraphOptions.__annotations__)}")
    job = DeclaredJob(
        name=GRAPH_RUN,
        handler=_elsewhere,
        call=None,
        retry=RETRY,
        timeout_ms=None,
        pool=POOL,
        priority=options.get("priority", 0),
        lane=None,
    )
    if options.get("schedule") is None:
        return schedule_of(job, options)  # type: ignore[arg-type] # a part of them
    return schedule_of(job, {"schedule_id": name, **options, "params": params})  # type: ignore[typeddict-item]


def _elsewhere(_: object) -> None:
    """A graph's handler comes with a queue."""


def policies_given(options: Mapping[str, Any]) -> Mapping[str, Any]:
    given: dict[str, Any] = {
        name: value for name in ("overlap", "catch_up", "catch_up_cap") if (value := options.get(name)) is not None
    }
    if (jitter := options.get("jitter")) is not None:
        given["jitter_ms"] = (
            jitter if isinstance(jitter, int) else ms_of(jitter, field="jitter", least=0, most=LONGEST_JITTER_MS)
        )
    Policies(**given)  # refuses what is none
    return given


def call_of(function: Callable[..., object]) -> Call:
    """Refuses what could not be called with a job's params, or would not be done when it returns."""
    if not callable(function) or inspect.isclass(function):
        raise InvalidInput("function", f"{str(function)[:60]} is no function", fix="decorate a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidInput("function", f"{name_for(function)} yields", fix="return one value, JSON can keep it")
    for parameter in _parameters(function):
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter.default is parameter.empty:
            raise InvalidInput(
                "function", f"its parameter {parameter.name!r} has no name to pass it by", fix="remove the / after it"
            )
    return Call(function)


def name_for(function: Callable[..., object]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _parameters(function: Callable[..., object]) -> Sequence[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:  # some functions written in C have none
        return []


def _require_known(options: JobOptions) -> None:
    known = JobOptions.__annotations__
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            fix = f"did you mean {near[0]}?" if near else f"use one of {', '.join(known)}"
            raise InvalidInput(name, "is no option of a job", fix=fix)


def _names(resources: Sequence[str]) -> tuple[PoolName, ...]:
    """One name alone would be taken for several, one a letter."""
    if isinstance(resources, str):
        raise InvalidInput("resources", "is one text, not several names", fix="pass a list of pool names")
    return tuple(map(PoolName, resources))
