"""A run's row follows its job: it runs when the job does and ends when the chain of its attempts has ended."""

import pytest

from duly.domain.ids import JobId
from duly.domain.instants import Instant
from duly.domain.jobs import Ending, JobStatus, PutOutcome
from duly.domain.retries import NO_RETRY, RetryPolicy
from duly.domain.runs import Run, RunStatus
from duly.domain.schedules import ScheduleState
from tests.contracts.clocks import MORNING
from tests.contracts.plans import MINUTE, launched, launched_together, planned, revised, row_of, run
from tests.contracts.points import stop_after
from tests.contracts.world import FAILED, World

JOB = JobId("job of run")
AT_ONCE = RetryPolicy(max_attempts=2, backoff_ms=0)


def _facts(row: Run) -> tuple[str, int, Instant | None, Instant | None]:
    return (row.status, row.attempt_count, row.started_at, row.completed_at)


@pytest.mark.req("GRAPH-19")
async def test_a_run_waits_runs_and_succeeds_with_its_job(world: World) -> None:
    await planned(world)
    await launched(world)
    hand = await world.hand()
    assert _facts(await row_of(world)) == ("pending", 0, None, None)
    world.clock.advance(5)
    began = world.clock.now()

    (job,) = await hand.claim()

    assert job.ledger_run == "run"
    assert _facts(await row_of(world)) == ("running", 1, began, None)
    await world.keeps_the_laws()
    world.clock.advance(5)

    await hand.finish(job)

    assert _facts(await row_of(world)) == ("success", 1, began, world.clock.now())
    assert (await world.ended(JOB)).ledger_run == "run"


@pytest.mark.req("GRAPH-19")
@pytest.mark.parametrize(
    ("ending", "status", "error", "detail"),
    [
        (FAILED, "error", "as asked", None),
        (Ending(status=JobStatus.CANCELLED, error="stopped"), "cancelled", None, "stopped"),
        (Ending(status=JobStatus.SKIPPED, error="nothing new"), "skipped", None, "nothing new"),
        (Ending(status=JobStatus.COMPLETED, exit_code=0), "success", None, None),
    ],
    ids=["failed", "cancelled", "skipped", "completed"],
)
async def test_a_run_ends_as_its_job_did(
    world: World, ending: Ending, status: str, error: str | None, detail: str | None
) -> None:
    await planned(world)
    await launched(world, retry=NO_RETRY)
    await launched(world, "other", slot=1)
    hand = await world.hand()
    job, other = await hand.claim(2)

    await hand.finish(job, ending=ending)

    row = await row_of(world)
    assert (row.status, row.error_message, row.detail) == (status, error, detail)
    assert (await row_of(world, "other")).status is RunStatus.RUNNING
    await hand.finish(other)


@pytest.mark.req("GRAPH-19")
async def test_a_held_job_waits_until_it_is_started(world: World) -> None:
    await planned(world)
    await launched(world)
    hand = await world.hand()
    (held,) = await hand.hold()
    assert (await row_of(world)).status is RunStatus.PENDING

    await hand.exchange(starting=[held])

    assert _facts(await row_of(world)) == ("running", 1, MORNING, None)


@pytest.mark.req("GRAPH-19")
async def test_a_job_that_needs_a_resource_runs_when_it_has_it(world: World) -> None:
    await planned(world)
    await launched(world, resources=["ollama"])
    await launched(world, "other", slot=1, resources=["ollama"])
    hand = await world.hand()

    (first,) = await hand.claim(2)

    assert [(await row_of(world, name)).status for name in ("run", "other")] == ["running", "pending"]
    await hand.finish(first)
    assert len(await hand.claim()) == 1
    assert [(await row_of(world, name)).status for name in ("run", "other")] == ["success", "running"]


@pytest.mark.req("GRAPH-19")
@pytest.mark.req("DEC-001")
async def test_a_run_goes_on_until_the_last_of_its_attempts_has_ended(world: World) -> None:
    await planned(world)
    await launched(world, retry=AT_ONCE)
    hand = await world.hand()
    (first,) = await hand.claim()
    world.clock.advance(5)

    await hand.fail(first)

    assert _facts(await row_of(world)) == ("running", 1, MORNING, None)
    await world.keeps_the_laws()
    (second,) = await hand.claim()
    assert (second.ledger_run, second.attempt) == ("run", 2)
    assert _facts(await row_of(world)) == ("running", 2, MORNING, None)

    await hand.fail(second)

    row = await row_of(world)
    assert _facts(row) == ("error", 2, MORNING, world.clock.now())
    assert row.error_message == "as asked"


@pytest.mark.req("GRAPH-19")
async def test_one_exchange_ends_some_and_leaves_to_retry_others(world: World) -> None:
    await planned(world)
    names = [f"run {n}" for n in range(6)]
    for n, name in enumerate(names):
        await launched(world, name, slot=n, retry=AT_ONCE if n % 2 else NO_RETRY)
    await world.put("other", retry=NO_RETRY)
    hand = await world.hand()

    await hand.fail(*await hand.claim(7))

    assert [(await row_of(world, name)).status for name in names] == ["error", "running"] * 3


@pytest.mark.req("GRAPH-19")
@pytest.mark.req("RISK-02")
@pytest.mark.parametrize(("retry", "status"), [(AT_ONCE, "running"), (NO_RETRY, "error")])
async def test_a_run_whose_worker_is_lost_is_retried_or_ends(world: World, retry: RetryPolicy, status: str) -> None:
    await planned(world)
    await launched(world, retry=retry)
    await launched(world, "held", slot=1)
    hand = await world.hand()
    await hand.claim()
    await hand.hold()
    world.clock.advance(31)

    await world.queue.sessions.rescue_expired(until=world.clock.lease_now())

    row = await row_of(world)
    assert row.status == status
    assert "worker lost" in (row.error_message or "worker lost")
    assert _facts(await row_of(world, "held")) == ("pending", 0, None, None)


@pytest.mark.req("GRAPH-19")
async def test_a_run_that_is_cancelled_before_it_started_never_runs(world: World) -> None:
    await planned(world)
    await launched(world)
    world.clock.advance(5)

    assert await world.queue.jobs.cancel(JOB, reason="no longer wanted")

    row = await row_of(world)
    assert _facts(row) == ("cancelled", 0, None, world.clock.now())
    assert row.detail == "no longer wanted"


@pytest.mark.req("GRAPH-19")
async def test_a_run_that_was_asked_to_stop_ends_as_cancelled(world: World) -> None:
    await planned(world)
    await launched(world, retry=AT_ONCE)
    hand = await world.hand()
    (job,) = await hand.claim()
    assert not await world.queue.jobs.cancel(JOB, reason="replaced")
    assert (await row_of(world)).status is RunStatus.RUNNING

    await hand.fail(job)

    row = await row_of(world)
    assert (row.status, row.detail, row.error_message) == ("cancelled", "replaced", None)


@pytest.mark.req("GRAPH-14")
async def test_a_run_that_does_not_stop_is_revoked(world: World) -> None:
    await planned(world)
    await launched(world, retry=AT_ONCE)
    hand = await world.hand()
    (job,) = await hand.claim()

    assert await world.transact(lambda tx: tx.sessions.revoke(JOB, reason="replaced", now=world.clock.now()))

    ended = await row_of(world)
    assert (ended.status, ended.detail) == ("cancelled", "replaced")
    assert (await hand.finish(job)).stale == [JOB]
    assert await row_of(world) == ended


@pytest.mark.req("GRAPH-19", error=True)
async def test_a_job_that_is_given_back_was_no_attempt(world: World) -> None:
    await planned(world)
    await launched(world)
    hand = await world.hand()
    (job,) = await hand.claim()

    await world.queue.sessions.give_back(hand.session, [job])
    assert _facts(await row_of(world)) == ("running", 0, MORNING, None)
    await world.keeps_the_laws()

    await hand.finish(*await hand.claim())
    assert _facts(await row_of(world)) == ("success", 1, MORNING, MORNING)


@pytest.mark.req("GRAPH-19")
async def test_a_job_that_is_given_back_after_it_was_cancelled_ends_its_run(world: World) -> None:
    await planned(world)
    await launched(world)
    hand = await world.hand()
    (held,) = await hand.hold()
    await world.queue.jobs.cancel(JOB, reason="too late")

    await world.queue.sessions.give_back(hand.session, [held])

    row = await row_of(world)
    assert (row.status, row.detail) == ("cancelled", "too late")


@pytest.mark.req("GRAPH-19", error=True)
async def test_an_exchange_that_is_repeated_counts_no_attempt_twice(world: World) -> None:
    await planned(world)
    await launched(world)
    hand = await world.hand()
    (held,) = await hand.hold()
    await hand.exchange(starting=[held])

    await hand.exchange(starting=[held], again=True)

    assert (await row_of(world)).attempt_count == 1


@pytest.mark.req("GRAPH-07")
async def test_a_job_that_is_put_under_the_key_of_a_run_leaves_the_run_as_it_was_planned(world: World) -> None:
    """Or the row would say of a slot that it succeeded, when something else ran."""
    await planned(world)
    await launched(world, key="slot")

    put = await world.puts("mine", key="slot", params={"of": "today"})

    assert (put.job_id, put.outcome) == (JOB, PutOutcome.LEFT)
    hand = await world.hand()
    (job,) = await hand.claim()
    assert (job.id, job.ledger_run, job.kind) == (JOB, "run", "report")
    await hand.finish(job)
    assert (await row_of(world)).status is RunStatus.SUCCESS


@pytest.mark.req("GRAPH-19")
async def test_a_crowd_of_runs_is_put_claimed_and_ended_together(world: World) -> None:
    await planned(world)
    await launched_together(world, {f"run {n}": n for n in range(120)})
    hand = await world.hand()

    jobs = await hand.claim(120)
    assert await world.rows("SELECT status, count(*) FROM schedule_runs GROUP BY status") == [("running", 120)]
    await hand.finish(*jobs)

    assert await world.rows("SELECT status, count(*) FROM schedule_runs GROUP BY status") == [("success", 120)]


@pytest.mark.req("INV-005")
async def test_a_change_of_its_schedule_leaves_a_run_and_its_job_as_they_are(world: World) -> None:
    made = await planned(world)
    row = await launched(world, params={"of": "yesterday"})
    before = await world.live(JOB)

    changed = made.changed(at=Instant(MORNING + MINUTE), state=ScheduleState.DELETED)
    await revised(world, changed)

    assert await row_of(world) == row
    assert await world.live(JOB) == before
    hand = await world.hand()
    await hand.finish(*await hand.claim())
    assert (await row_of(world)).status is RunStatus.SUCCESS


@pytest.mark.req("GRAPH-19", error=True)
async def test_a_row_that_was_closed_meanwhile_stays_closed_when_its_job_ends(world: World) -> None:
    await planned(world)
    row = run("run", status=RunStatus.SKIPPED, completed_at=MORNING)
    await world.transact(lambda tx: tx.ledger.add([row]))
    await world.put("report")
    await world.rows("UPDATE jobs SET ledger_run = 'run'")
    hand = await world.hand()

    await hand.finish(*await hand.claim())

    assert await row_of(world) == row


@pytest.mark.store("postgres")
async def test_a_claim_of_a_run_is_still_one_statement(postgres_world: World) -> None:
    world = postgres_world
    await planned(world)
    await launched(world)
    hand = await world.hand()
    with stop_after("nothing") as point:
        await hand.claim()

    assert point.ran == {"claim_in_one_pool": 1}
    assert (await row_of(world)).status is RunStatus.RUNNING


@pytest.mark.store("postgres")
async def test_jobs_without_a_row_cost_no_statement_of_the_ledger(postgres_world: World) -> None:
    world = postgres_world
    await world.put()
    await world.put()
    hand = await world.hand()
    with stop_after("nothing") as point:
        (held,) = await hand.hold()
        await hand.exchange(starting=[held])
        await hand.finish(*await hand.claim())
        await world.queue.jobs.cancel(await world.put(), reason="unwanted")

    assert not {name for name in point.ran if "runs" in name or "attempts" in name}
