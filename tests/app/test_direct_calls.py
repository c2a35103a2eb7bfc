"""Direct calls: an answer now, from a handler in the caller's own process, ahead of the queue and without a job."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from duly.bootstrap import Queue, Settings
from duly.domain.errors import InvalidInput
from duly.domain.ids import Lane, PoolName, Token
from duly.domain.instants import SECOND, Micros
from duly.domain.jobs import COMPLETED, FinishedJob, JobStatus, NewJob
from duly.domain.pools import Pool, PoolDraining, UnknownPool
from duly.domain.retries import RetryPolicy
from duly.domain.sessions import ClaimedJob, Report, Wanted
from duly.domain.templates import NewTemplate, UnknownTemplate
from duly.domain.tickets import Deadline, DirectFailed, DirectStopped, NoHandler, PoolPaused
from duly.worker.coroutines import in_loop
from duly.worker.direct_calls import DirectCalls
from duly.worker.handlers import Handler
from duly.worker.isolation import isolated
from duly.worker.threads import in_thread

ONE, MORE = PoolName("one"), PoolName("more")
LONG = Micros(60 * SECOND)
SOON = Micros(SECOND // 20)


class Hand:
    """A worker, a step at a time."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.token = 0

    async def exchange(self, *done: ClaimedJob, start: int = 1) -> list[ClaimedJob]:
        if not self.token:
            self.session = await self.queue.sessions.open(name="hand")
        self.token += 1
        exchange = await self.queue.sessions.exchange(
            self.session.id,
            token=Token(self.token),
            reports=[Report(job, COMPLETED) for job in done],
            wanted={ONE: Wanted(start)} if start else {},
        )
        return list(exchange.started)


class Desk:
    """A process that takes direct calls; `inside` are those that run, `done` those that ended, in order."""

    def __init__(self, queue: Queue) -> None:
        self.inside: list[int] = []
        self.done: list[int] = []
        self.entered = asyncio.Event()
        self.go_on = asyncio.Event()
        self.calls = queue.direct_calls(handlers=lambda: self.handlers, name="desk")

    @property
    def handlers(self) -> dict[str, Handler]:
        return {"hold": self._hold, "double": _double, "break": _break, **_FITTED}

    async def _hold(self, job: Any) -> dict[str, int]:
        n = int(job.payload.partition(":")[2].rstrip("}"))
        self.inside.append(n)
        self.entered.set()
        try:
            await self.go_on.wait()
        finally:
            self.inside.remove(n)
        self.done.append(n)
        return {"n": n}

    def call(self, name: str, wait: Micros = LONG, **params: Any) -> "asyncio.Task[Any]":
        return asyncio.create_task(self.calls.call(name, params, owner="ann", wait=wait))


async def _double(job: Any) -> dict[str, int]:
    return {"twice": 2 * int(job.payload.partition(":")[2].rstrip("}"))}


def _break(job: Any) -> None:
    raise ValueError("as asked")


async def _add(a: int, b: int = 1) -> int:
    RAN.append(a)
    return a + b


def _add_in_thread(a: int, b: int = 1) -> int:
    RAN.append(a)
    return a + b


RAN: list[int] = []
_FITTED = {
    "add": in_loop(_add),
    "add-in-thread": in_thread(_add_in_thread),
    "add-apart": isolated(_add_in_thread),
}


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Queue]:
    queue = await Queue.open(Settings(database_url=url))
    try:
        yield queue
    finally:
        await queue.close()


@asynccontextmanager
async def _desk(queue: Queue) -> AsyncIterator[Desk]:
    desk = Desk(queue)
    try:
        yield desk
    finally:
        await desk.calls.close()


@asynccontextmanager
async def _prepared(url: str) -> AsyncIterator[tuple[Queue, Desk]]:
    async with _opened(url) as queue:
        await queue.pools.define(Pool(name=ONE, slots=1))
        for kind in ("hold", "double", "break", "unheard"):
            await queue.templates.create(NewTemplate(name=kind, kind=kind, pool=ONE), owner="ann")
        async with _desk(queue) as desk:
            yield queue, desk
        assert (await queue.health.census()).sessions == 0
        assert await _places(queue) == (0, 0)


async def _places(queue: Queue) -> tuple[int, int]:
    """Those that are used, and tickets that wait."""
    pool = await queue.pools.get(ONE)
    return pool.used, pool.tickets


async def _until_places(queue: Queue, used: int, tickets: int) -> None:
    while await _places(queue) != (used, tickets):  # noqa: ASYNC110 - what is waited for is in the store
        await asyncio.sleep(0.005)


@pytest.mark.req("DEC-004")
async def test_an_idle_pool_answers_at_once_and_nothing_is_left_of_the_call(database_url: str) -> None:
    async with _prepared(database_url) as (queue, desk):
        assert await desk.call("double", n=21) == {"twice": 42}

        assert await _places(queue) == (0, 0)
        assert not await queue.jobs.list(owner=None)
        assert not await queue.jobs.ended(owner=None)


@pytest.mark.req("DEC-004")
async def test_a_call_comes_after_what_runs_and_before_the_queue(database_url: str) -> None:
    async with _prepared(database_url) as (queue, desk):
        hand = Hand(queue)
        await queue.jobs.put(NewJob(kind="running", pool=ONE))
        (running,) = await hand.exchange()
        await queue.jobs.put(NewJob(kind="queued", pool=ONE, priority=32_767))

        call = desk.call("hold", n=1)
        await _until_places(queue, 1, 1)
        assert not desk.entered.is_set(), "nothing is preempted"
        assert await hand.exchange(running) == [], "the place is kept free"
        await desk.entered.wait()
        assert await hand.exchange() == [], "the call has it"
        desk.go_on.set()
        assert await call == {"n": 1}
        (queued,) = await hand.exchange()
        assert queued.kind == "queued"
        await hand.exchange(queued, start=0)
        await queue.sessions.close(hand.session.id)


@pytest.mark.req("DEC-004")
async def test_calls_of_several_processes_are_served_in_the_order_in_which_they_came(database_url: str) -> None:
    served: list[int] = []
    async with _prepared(database_url) as (queue, here), _opened(database_url) as other, _desk(other) as there:
        for desk in (here, there):
            desk.done = served
        calls: list[asyncio.Task[Any]] = []
        for n in range(6):
            calls.append((here, there)[n % 2].call("hold", n=n))
            await _until_places(queue, 1, n)
        here.go_on.set()
        there.go_on.set()
        await asyncio.gather(*calls)
    assert served == list(range(6))


@pytest.mark.req("DEC-004", error=True)
async def test_a_call_whose_time_is_up_leaves_no_ticket_and_enters_no_handler(database_url: str) -> None:
    async with _prepared(database_url) as (queue, desk):
        first = desk.call("hold", n=1)
        await desk.entered.wait()

        with pytest.raises(Deadline, match="no place of its pool became free"):
            await desk.call("hold", wait=SOON, n=2)

        assert await _places(queue) == (1, 0)
        desk.go_on.set()
        await first
        assert desk.done == [1]


@pytest.mark.req("DEC-004", error=True)
async def test_a_handler_whose_time_is_up_is_cancelled_and_its_place_given_back(database_url: str) -> None:
    async with _prepared(database_url) as (queue, desk):
        said = ""
        while not desk.entered.is_set():  # on a slow machine its time is up before its turn
            with pytest.raises(Deadline) as late:
                await desk.call("hold", wait=Micros(SECOND), n=1)
            said = str(late.value)

        assert "it did not end in time" in said
        assert (desk.inside, desk.done, await _places(queue)) == ([], [], (0, 0))
        assert await desk.call("double", n=1) == {"twice": 2}


@pytest.mark.req("DEC-004")
@pytest.mark.parametrize("when", ["waiting", "running"])
async def test_a_caller_that_leaves_takes_its_call_along(database_url: str, when: str) -> None:
    async with _prepared(database_url) as (queue, desk):
        leaving = first = desk.call("hold", n=1)
        await desk.entered.wait()
        if when == "waiting":
            leaving = desk.call("hold", n=2)
            await _until_places(queue, 1, 1)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving

        assert desk.inside == ([1] if when == "waiting" else [])
        assert await _places(queue) == (len(desk.inside), 0)
        desk.go_on.set()
        await asyncio.gather(first, return_exceptions=True)


@pytest.mark.req("DEC-004")
async def test_the_place_of_a_process_that_died_in_a_call_is_free_after_its_lease(database_url: str) -> None:
    async with _prepared(database_url) as (queue, desk):
        dead = await queue.sessions.open(name="dead", lease=Micros(SECOND))
        for _ in range(2):
            await queue.tickets.request(ONE, session=dead.id, wait=LONG)
        assert await _places(queue) == (1, 1)

        assert await desk.call("double", n=4) == {"twice": 8}, "the heart of whoever waits takes over"


@pytest.mark.req("DEC-004", error=True)
async def test_a_session_that_ran_out_stops_its_calls_and_the_next_call_has_another(database_url: str) -> None:
    async with _prepared(database_url) as (queue, desk):
        call = desk.call("hold", n=1)
        await desk.entered.wait()
        waiting = desk.call("hold", n=2)
        await _until_places(queue, 1, 1)
        assert desk.calls._opening is not None
        await queue.sessions.close(desk.calls._opening.result().session.id)

        for stopped in (waiting, call):
            with pytest.raises(DirectStopped, match="ran out"):
                await stopped
        assert desk.inside == []
        assert await desk.call("double", n=5) == {"twice": 10}


@pytest.mark.req("DEC-004")
async def test_a_process_that_stops_lets_what_runs_end_and_refuses_what_waits(database_url: str) -> None:
    async with _prepared(database_url) as (queue, desk):
        running = desk.call("hold", n=1)
        await desk.entered.wait()
        waiting = desk.call("hold", n=2)
        await _until_places(queue, 1, 1)
        closing = asyncio.create_task(desk.calls.close(grace=LONG))

        with pytest.raises(DirectStopped, match="its process stops"):
            await waiting
        with pytest.raises(DirectStopped, match="its process stops"):
            await desk.call("double", n=1)
        assert not closing.done()
        desk.go_on.set()
        assert await running == {"n": 1}
        await closing


async def test_a_call_that_is_stopped_when_its_turn_has_just_come_enters_no_handler(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_turn = DirectCalls._wait_for_turn

    async def stopped_at_the_last_moment(calls: DirectCalls, call: Any) -> None:
        await wait_for_turn(calls, call)
        call.stop("its process stops")

    monkeypatch.setattr(DirectCalls, "_wait_for_turn", stopped_at_the_last_moment)
    async with _prepared(database_url) as (_, desk):
        with pytest.raises(DirectStopped, match="its process stops"):
            await desk.call("double", n=1)


@pytest.mark.req("DEC-004")
async def test_what_a_template_needs_besides_is_held_with_it(database_url: str) -> None:
    async with _prepared(database_url) as (queue, desk):
        await queue.pools.define(Pool(name=MORE, slots=1))
        template = NewTemplate(name="both", kind="hold", pool=ONE, resources=(MORE,))
        await queue.templates.create(template, owner="ann")
        call = desk.call("both", n=1)
        await desk.entered.wait()
        assert ((await queue.pools.get(MORE)).used, (await queue.pools.get(ONE)).used) == (1, 1)
        desk.go_on.set()
        await call
        assert ((await queue.pools.get(MORE)).used, (await queue.pools.get(ONE)).used) == (0, 0)


@pytest.mark.req("DEC-004", error=True)
async def test_what_cannot_be_called_is_refused_with_its_reason(database_url: str) -> None:
    async with _prepared(database_url) as (queue, desk):
        lane = NewTemplate(name="in-lane", kind="double", pool=ONE, lane=Lane("l"))
        await queue.templates.create(lane, owner="ann")
        with pytest.raises(UnknownTemplate):
            await desk.call("nothing")
        with pytest.raises(UnknownTemplate):
            await desk.calls.call("double", {"n": 1}, owner="bob")
        with pytest.raises(NoHandler, match="'unheard'"):
            await desk.call("unheard")
        with pytest.raises(InvalidInput, match="has a lane"):
            await desk.call("in-lane")
        with pytest.raises(DirectFailed, match="ValueError: as asked"):
            await desk.call("break")
        await queue.pools.pause(ONE)
        with pytest.raises(PoolPaused, match="'one' is paused"):
            await desk.call("double", n=1)
        await queue.pools.drain(ONE)
        with pytest.raises(PoolDraining):
            await desk.call("double", n=1)
        await queue.pools.remove(ONE)
        with pytest.raises(UnknownPool):
            await desk.call("double", n=1)
        await queue.pools.define(Pool(name=ONE, slots=1))


@pytest.mark.req("DEC-004", error=True)
@pytest.mark.parametrize("kind", _FITTED)
@pytest.mark.parametrize(
    ("params", "named"),
    [({}, "missing a required argument: 'a'"), ({"a": 1, "c": 2}, "unexpected keyword argument 'c'")],
)
async def test_params_that_the_function_does_not_take_are_refused_before_anybody_waits(
    database_url: str, kind: str, params: dict[str, Any], named: str
) -> None:
    async with _prepared(database_url) as (queue, desk):
        await queue.templates.create(NewTemplate(name=kind, kind=kind, pool=ONE), owner="ann")
        # Whoever waited for its turn would wait until its time is up.
        held = desk.call("hold", n=1)
        await desk.entered.wait()
        RAN.clear()

        with pytest.raises(InvalidInput, match=f"params: do not fit '{kind}': .*{named}") as refused:
            await desk.call(kind, Micros(5 * SECOND), **params)

        assert (refused.value.field, RAN) == ("params", [])
        desk.go_on.set()
        assert await held == {"n": 1}


async def test_params_that_fit_with_the_templates_own_are_taken(database_url: str) -> None:
    async with _prepared(database_url) as (queue, desk):
        await queue.templates.create(NewTemplate(name="add", kind="add", pool=ONE, params={"b": 2}), owner="ann")

        assert await desk.call("add", a=1) == 3


@pytest.mark.req("DEC-007", error=True)
async def test_a_queued_job_whose_params_do_not_fit_fails_once_and_is_not_tried_again(database_url: str) -> None:
    async with _prepared(database_url) as (queue, _):
        retry = RetryPolicy(max_attempts=3, backoff_ms=1)
        put = await queue.jobs.put(NewJob(kind="add", pool=ONE, retry=retry))
        worker = queue.worker(handlers=_FITTED, pools={ONE: 1}, name="hand")
        working = asyncio.create_task(worker.run())
        try:
            while not isinstance(job := await queue.jobs.get(put.job_id), FinishedJob):  # noqa: ASYNC110 - it is in the store
                await asyncio.sleep(0.01)
        finally:
            worker.stop()
            await working

        assert (job.status, job.retryable) == (JobStatus.FAILED, False)
        assert "the params do not fit the function: missing a required argument: 'a'" in str(job.error)
        assert len(await queue.jobs.chain(put.job_id)) == 1
