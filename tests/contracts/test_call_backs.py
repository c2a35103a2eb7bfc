"""Runs that an executor elsewhere says the end of, on every store: while they wait they have nothing but their lane."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest

from duly.bootstrap import Queue, Registry
from duly.domain.amounts import UNIT
from duly.domain.executions import Execution, ExecutionStatus, WaitsFor
from duly.domain.ids import PoolName
from duly.domain.instants import SECOND, Instant
from duly.domain.jobs import Ending, JobLocked, JobState, JobStatus, Suspended
from duly.domain.payloads import Payload, value_of
from duly.domain.sessions import ClaimedJob
from duly.domain.workflows import CallBack, CalledBack, LateCallBack, Launch
from tests.contracts.graphs import PatientClock
from tests.contracts.test_order_of_locks import _deadlocks as deadlocks
from tests.contracts.world import Hand, World
from tests.receiver import Receiver, answers, never_answers, receiving

GRAPHS = PoolName("graphs")
DEADLINE_S = 600
STARTED = CallBack(CalledBack.STARTED)
SUCCESS = CallBack(CalledBack.SUCCESS, Payload('{"n":3}'))
FAILED = CallBack(CalledBack.FAILED, Payload('"no such town"'))


class Hosted(World):
    """With an executor on this machine that takes every run."""

    async def open(self) -> None:
        self._serving = AsyncExitStack()
        self.executor = await self._serving.enter_async_context(receiving(answers(202)))
        await super().open()

    async def reopen(self) -> None:
        await super().close()
        self.queue = await self.another()

    async def close(self) -> None:
        await super().close()
        await self._serving.aclose()


@pytest.fixture
def world(store: str, place: str) -> Hosted:
    world = Hosted(store, place)
    world.clock = PatientClock()
    return world


class Firm:
    """A workflow that an executor elsewhere runs, and a worker for it."""

    def __init__(self, world: World, hand: Hand, began: Instant) -> None:
        self.world = world
        self.hand = hand
        self.deadline = Instant(began + DEADLINE_S * SECOND)

    async def launch(self, key: str = "k") -> Launch:
        return await self.world.queue.launches.launch("news", owner="ann", key=key)

    async def claim(self) -> ClaimedJob:
        await self.world.queue.jobs.stage()
        (claimed,) = await self.hand.claim(pool=GRAPHS)
        return claimed

    async def handled(self, claimed: ClaimedJob, queue: Queue | None = None) -> Ending | Suspended:
        handler = (queue or self.world.queue).graph_runs(Registry())
        try:
            async with asyncio.timeout(60):
                return await handler(claimed)
        finally:
            await handler.close()

    async def until_it_waits(self, key: str = "k") -> tuple[Launch, Execution]:
        """As a worker does it: asked for, and let go of."""
        launch = await self.launch(key)
        claimed = await self.claim()
        answer = await self.handled(claimed)
        assert isinstance(answer, Suspended), answer
        await self.world.queue.sessions.suspend(self.hand.session, claimed, answer.execution)
        return launch, await self.execution(launch)

    async def execution(self, launch: Launch) -> Execution:
        found = await self.world.queue.storage.read(lambda tx: tx.executions.by_key(launch.execution_key))
        assert found is not None
        return found

    async def call_back(self, execution: Execution, said: CallBack) -> None:
        await self.world.queue.dag_runs.call_back(execution.run_id, said, owner="ann")

    async def goes_on(self) -> Ending:
        """The job that waited, once it is due again."""
        claimed = await self.claim()
        ending = await self.handled(claimed)
        assert isinstance(ending, Ending), ending
        await self.hand.finish(claimed, ending=ending)
        return ending


async def firm(world: Hosted, executor: Receiver | None = None) -> Firm:
    account = await world.queue.accounts.create(owner="ann", name="main")
    await world.queue.accounts.credit(account.id, amount=10 * UNIT, key="first")
    elsewhere = {"url": (executor or world.executor).url, "callback": True, "deadline_ms": DEADLINE_S * 1_000}
    nodes = [{"id": "a", "action": "work", "inputs": {}}]
    document = {"name": "news", "nodes": nodes, "executor": elsewhere, "max_cost": "1"}
    await world.queue.workflows.deploy(document, owner="ann", knows=["work"])
    await world.pool(GRAPHS, 1)
    return Firm(world, await world.hand(), world.clock.now())


@pytest.mark.req("CRON-10")
async def test_a_run_that_waits_for_a_call_back_has_its_lane_and_nothing_else(world: Hosted) -> None:
    home = await firm(world)
    launch, execution = await home.until_it_waits()

    assert (execution.status, execution.waits_for, execution.ok) == ("waiting", WaitsFor.CALL_BACK, None)
    assert (execution.called_back_by, execution.waiting_job) == (home.deadline, launch.job_id)
    job = await world.live(launch.job_id)  # type: ignore[arg-type]
    assert (job.state, job.session, job.attempt, job.run_at) == (JobState.BACKOFF, None, 1, home.deadline)
    assert await world.rows("SELECT used FROM pools WHERE name = 'graphs'") == [(0,)]
    assert await world.rows("SELECT busy FROM sessions") == [(0,)]
    assert await world.rows("SELECT held, available FROM billing_accounts") == [(0, 10 * UNIT)]
    assert await world.rows("SELECT * FROM reviews") == []
    with pytest.raises(JobLocked):
        await world.queue.jobs.edit_params(launch.job_id, {})  # type: ignore[arg-type]
    await home.launch("another")
    assert (await home.claim()).id != launch.job_id
    await world.keeps_the_laws()


@pytest.mark.req("CRON-10")
@pytest.mark.parametrize(
    ("said", "outcome", "status"),
    [
        (SUCCESS, (True, None, None), JobStatus.COMPLETED),
        (FAILED, (False, "executor_failed", "the executor says: no such town"), JobStatus.FAILED),
    ],
)
async def test_a_call_back_is_the_outcome_and_wakes_its_run(
    world: Hosted, said: CallBack, outcome: tuple[Any, ...], status: JobStatus
) -> None:
    home = await firm(world)
    launch, waiting = await home.until_it_waits()

    await home.call_back(waiting, STARTED)
    assert (await home.execution(launch)).status is ExecutionStatus.WAITING
    await home.call_back(waiting, said)
    await home.call_back(waiting, said)

    over = await home.execution(launch)
    assert (over.ok, over.error_code, over.error_message) == outcome
    assert over.attempt == 1
    if said is SUCCESS:
        assert value_of(over.result or Payload("null")) == {"outputs": {"n": 3}}
    for late in (STARTED, FAILED if said is SUCCESS else SUCCESS):
        with pytest.raises(LateCallBack):
            await home.call_back(waiting, late)
    assert (await home.goes_on()).status is status
    assert await world.rows("SELECT attempt, state, amount, spent FROM holds") == [(1, "settled", UNIT, 0)]
    assert len(world.executor.received) == 1


@pytest.mark.req("CRON-10")
async def test_a_call_back_needs_nobodys_money(world: Hosted) -> None:
    home = await firm(world)
    launch, waiting = await home.until_it_waits()
    account = str((await world.rows("SELECT id FROM billing_accounts"))[0][0])
    await world.queue.money.hold("another", 1, account_id=account, amount=10 * UNIT)

    await home.call_back(waiting, SUCCESS)

    assert (await home.goes_on()).status is JobStatus.COMPLETED
    assert (await home.execution(launch)).ok


@pytest.mark.req("CRON-10", error=True)
async def test_whoever_says_nothing_by_the_deadline_has_failed(world: Hosted) -> None:
    home = await firm(world)
    launch, waiting = await home.until_it_waits()

    world.clock.advance(DEADLINE_S - 1)
    await world.queue.jobs.stage()
    assert await home.hand.claim(pool=GRAPHS) == []
    world.clock.advance(1)
    ending = await home.goes_on()

    over = await home.execution(launch)
    assert (over.error_code, over.attempt) == ("no_call_back", 1)
    assert (ending.status, ending.retryable) == (JobStatus.FAILED, False)
    assert str(ending.error).startswith("no_call_back: the executor said nothing until ")
    with pytest.raises(LateCallBack):
        await home.call_back(waiting, SUCCESS)
    assert (await home.execution(launch)) == over


async def test_a_call_back_after_the_deadline_counts_if_nobody_has_looked_yet(world: Hosted) -> None:
    home = await firm(world)
    _, waiting = await home.until_it_waits()
    world.clock.advance(DEADLINE_S + 100)

    await home.call_back(waiting, SUCCESS)

    assert (await home.goes_on()).status is JobStatus.COMPLETED


async def test_a_worker_whose_clock_is_fast_lets_go_again(world: Hosted) -> None:
    home = await firm(world)
    launch, waiting = await home.until_it_waits()
    world.clock.advance(DEADLINE_S)
    claimed = await home.claim()
    world.clock.advance(-1)  # as the service sees it

    answer = await home.handled(claimed)
    assert isinstance(answer, Suspended)
    await world.queue.sessions.suspend(home.hand.session, claimed, waiting.run_id)

    job = await world.live(launch.job_id)  # type: ignore[arg-type]
    assert (job.state, job.run_at) == (JobState.BACKOFF, home.deadline)


@pytest.mark.req("CRON-10")
async def test_a_call_back_that_comes_before_the_worker_lets_go_is_not_lost(world: Hosted) -> None:
    home = await firm(world)
    launch = await home.launch()
    claimed = await home.claim()
    answer = await home.handled(claimed)
    assert isinstance(answer, Suspended)

    await home.call_back(await home.execution(launch), SUCCESS)
    await world.queue.sessions.suspend(home.hand.session, claimed, answer.execution)

    assert await world.state(launch.job_id) == "ready"  # type: ignore[arg-type]
    assert (await home.goes_on()).status is JobStatus.COMPLETED


@pytest.mark.req("CRON-10")
async def test_an_executor_that_calls_back_before_it_answers_ends_its_run(world: Hosted) -> None:
    async def calls_back_first(writer: asyncio.StreamWriter) -> None:
        run_id = executor.received[-1].told["meta"]["run_id"]
        await world.queue.dag_runs.call_back(run_id, SUCCESS, owner="ann")
        await answers(202)(writer)

    async with receiving(calls_back_first) as executor:
        home = await firm(world, executor)
        await home.launch()

        assert (await home.goes_on()).status is JobStatus.COMPLETED
    assert await world.rows("SELECT state FROM holds") == [("settled",)]


@pytest.mark.req("CRON-10")
async def test_everything_about_it_outlives_the_process(world: Hosted) -> None:
    home = await firm(world)
    launch, waiting = await home.until_it_waits()

    await world.reopen()
    home.hand = await world.hand()
    await home.call_back(waiting, SUCCESS)
    await world.reopen()
    home.hand = await world.hand()

    assert (await home.goes_on()).status is JobStatus.COMPLETED
    assert (await home.execution(launch)).run_id == waiting.run_id
    assert len(world.executor.received) == 1


@pytest.mark.req("CRON-10")
async def test_a_service_that_dies_before_it_waits_does_not_call_the_executor_again(world: Hosted) -> None:
    async with receiving(never_answers) as executor:
        home = await firm(world, executor)
        launch = await home.launch()
        claimed, other = await home.claim(), await world.another()
        dying = asyncio.create_task(home.handled(claimed, other))
        await executor.has_received.wait()
        run_id = str(json.loads(executor.received[0].body)["meta"]["run_id"])
        await other.storage.transact(lambda tx: tx.workflows.accept(run_id, world.clock.now()))
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        world.clock.advance(60)

        answer = await home.handled(claimed)

    assert (answer, len(executor.received)) == (Suspended(run_id), 1)
    waiting = await home.execution(launch)
    assert (waiting.attempt, waiting.called_back_by) == (2, home.deadline)


@pytest.mark.req("INV-001", error=True)
@pytest.mark.parametrize("is_called_back", [False, True])
async def test_the_database_fixes_the_params_of_one_that_was_handed_on(world: Hosted, is_called_back: bool) -> None:
    home = await firm(world)
    launch, waiting = await home.until_it_waits()
    if is_called_back:
        await home.call_back(waiting, SUCCESS)

    with pytest.raises(JobLocked, match="has begun"):
        await world.queue.jobs.edit_params(launch.job_id, {})  # type: ignore[arg-type]
    with pytest.raises(Exception, match="jobs_params_fixed"):
        await world.rows(f"UPDATE jobs SET payload = '{{}}' WHERE id = '{launch.job_id}'")


@pytest.mark.req("CRON-10")
async def test_cancelling_a_run_that_waits_ends_its_execution(world: Hosted) -> None:
    home = await firm(world)
    launch, waiting = await home.until_it_waits()

    await world.queue.jobs.cancel(launch.job_id, reason="no longer wanted")  # type: ignore[arg-type]

    over = await home.execution(launch)
    assert (over.error_code, over.error_message) == ("cancelled", "no longer wanted")
    assert await world.state(launch.job_id) == "CANCELLED"  # type: ignore[arg-type]
    with pytest.raises(LateCallBack):
        await home.call_back(waiting, SUCCESS)
    await world.keeps_the_laws()


async def test_cancelling_the_execution_itself_wakes_its_job(world: Hosted) -> None:
    home = await firm(world)
    launch, _ = await home.until_it_waits()
    executions = world.queue.executions(Registry())

    await executions.cancel(launch.execution_key, "no longer wanted")

    assert str((await home.goes_on()).error).startswith("cancelled: no longer wanted")


@pytest.mark.parametrize("rival", ["suspend", "cancel", "overdue"])
async def test_whoever_comes_between_a_call_back_and_its_run_leaves_neither_hanging(world: Hosted, rival: str) -> None:
    """At once, in two processes: the run goes on or has ended, and one outcome stands."""
    home, other = await firm(world), await world.another()
    for number in range(6):
        launch = await home.launch(f"k{number}")
        claimed = await home.claim()
        answer = await home.handled(claimed)
        assert isinstance(answer, Suspended)
        suspend = partial(other.sessions.suspend, home.hand.session, claimed, answer.execution)
        if rival != "suspend":
            await suspend()
        if rival == "overdue":
            world.clock.advance(DEADLINE_S)
            await world.queue.jobs.stage()
            claimed = await home.claim()
        rivals: dict[str, Callable[[], Awaitable[object]]] = {
            "suspend": suspend,
            "cancel": partial(other.jobs.cancel, launch.job_id, reason="not needed"),  # type: ignore[arg-type]
            "overdue": partial(home.handled, claimed, other),
        }

        said, ended = await asyncio.gather(
            home.call_back(await home.execution(launch), SUCCESS), rivals[rival](), return_exceptions=True
        )

        assert said is None or isinstance(said, LateCallBack), said
        over = await home.execution(launch)
        assert (over.status, over.ok) == ("done", said is None)
        if rival == "overdue":
            assert isinstance(ended, Ending)
            assert (ended.status is JobStatus.COMPLETED) == over.ok
            await home.hand.finish(claimed, ending=ended)
        else:
            await world.queue.jobs.stage()
            for again in await home.hand.claim(pool=GRAPHS):
                await home.hand.finish(again)
        assert await world.rows("SELECT id FROM jobs") == []
        await world.keeps_the_laws()


@pytest.mark.parametrize("ends", ["call_back", "cancel"])
async def test_whoever_ends_a_run_that_waits_locks_in_the_order_of_whoever_cancels_its_job(
    world: Hosted, ends: str
) -> None:
    home, other = await firm(world), await world.another()
    executions = other.executions(Registry())
    for number in range(10):
        launch, waiting = await home.until_it_waits(f"k{number}")
        rival: Awaitable[object] = (
            other.dag_runs.call_back(waiting.run_id, SUCCESS, owner="ann")
            if ends == "call_back"
            else executions.cancel(launch.execution_key, "no longer wanted")
        )
        cancelling = world.queue.jobs.cancel(launch.job_id, reason="not needed")  # type: ignore[arg-type]
        answers_ = await asyncio.gather(rival, cancelling, return_exceptions=True)
        assert not [each for each in answers_ if isinstance(each, Exception) and not isinstance(each, LateCallBack)]

    assert await deadlocks(world) == 0


@pytest.mark.req("OWN-02")
async def test_a_job_that_waits_for_a_call_back_says_that_and_no_attempt_is_called_due(world: Hosted) -> None:
    home = await firm(world)
    _, execution = await home.until_it_waits()
    assert execution.waiting_job is not None

    explained = await world.queue.why.job(execution.waiting_job)

    told = {fact.name: fact.sentence for fact in explained.facts}
    assert told["waits_for_call_back"] == "It waits until 2027-01-15T08:10:00Z for its executor to call back."
    assert not {"retry_due", "overdue"} & set(told)

    await home.call_back(execution, SUCCESS)

    told = {fact.name: fact.sentence for fact in (await world.queue.why.job(execution.waiting_job)).facts}
    assert "waits_for_call_back" not in told
