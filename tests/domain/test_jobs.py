"""Jobs: snapshots of what was asked; a retry is another job of the same chain."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.domain.errors import Conflict, InvalidInput, NotFound
from duly.domain.ids import JobId, JobKey, Lane, PoolName, SessionId, Token
from duly.domain.instants import Instant
from duly.domain.jobs import (
    LOCKED_STATES,
    Ending,
    Entry,
    Job,
    JobAlreadyFinished,
    JobLocked,
    JobsApart,
    JobState,
    JobStatus,
    NewJob,
    UnknownJob,
)
from duly.domain.payloads import EMPTY
from duly.domain.retries import RetryPolicy
from duly.domain.sessions import OverCapacity, Session, SessionLost

NOW = Instant(1_000_000)


def _job(**given: Any) -> Job:
    return Job(**{"id": JobId("job_1"), "kind": "work", "run_at": NOW, "created_at": NOW, "chain": "job_1", **given})


# Order.


@pytest.mark.req("INV-004")
def test_a_job_is_before_another_by_rank_then_position_then_age_then_id() -> None:
    jobs = [
        _job(rank=-9, position=9, created_at=Instant(9), id=JobId("d")),
        _job(rank=0, position=1, created_at=Instant(9), id=JobId("c")),
        _job(rank=0, position=2, created_at=Instant(1), id=JobId("b")),
        _job(rank=0, position=2, created_at=Instant(2), id=JobId("a")),
        _job(rank=0, position=2, created_at=Instant(2), id=JobId("z")),
    ]

    jumbled = [jobs[n] for n in (3, 0, 4, 2, 1)]
    assert sorted(jumbled, key=lambda job: job.order) == jobs


@pytest.mark.req("INV-004", error=True)
@pytest.mark.parametrize("priority", [-32_768, 32_768, True, 1.0, "high", pytest.param(10**5_000, id="5,000 digits")])
def test_a_priority_out_of_bounds_is_refused(priority: Any) -> None:
    with pytest.raises(InvalidInput, match="priority"):
        NewJob(kind="work", priority=priority)


# Lanes and locks.


@pytest.mark.req("GRAPH-09")
def test_a_job_is_locked_while_a_worker_has_it() -> None:
    assert {JobState.CLAIMED, JobState.RUNNING} == LOCKED_STATES


@pytest.mark.req("GRAPH-09", error=True)
@pytest.mark.parametrize("lane", ["", "x" * 256, "a\0b", "a\nb", 7])
def test_a_lane_that_cannot_be_printed_is_refused(lane: Any) -> None:
    with pytest.raises(InvalidInput, match="lane"):
        NewJob(kind="work", lane=lane)


@pytest.mark.req("GRAPH-07")
@pytest.mark.parametrize("state", JobState)
def test_only_a_claimed_or_running_job_is_locked(state: JobState) -> None:
    assert _job(state=state).is_locked is (state in {JobState.CLAIMED, JobState.RUNNING})


@pytest.mark.req("GRAPH-07", error=True)
@pytest.mark.parametrize("key", ["", "x" * 256, "\ud800", b"k"])
def test_a_key_that_cannot_be_stored_is_refused(key: Any) -> None:
    with pytest.raises(InvalidInput, match="key"):
        NewJob(kind="work", key=key)


@pytest.mark.req("GRAPH-07")
def test_a_job_is_a_snapshot_of_what_was_asked() -> None:
    params = {"n": 1}
    new = NewJob(kind="work", params=params, key=JobKey("k"), lane=Lane("l"), priority=3, timeout_ms=9)
    params["n"] = 2

    entry = Entry(JobId("job_7"), new, new.payload, NOW, position=5)

    assert (new.payload, new.key, new.lane, new.priority, new.timeout_ms) == ('{"n":1}', "k", "l", 3, 9)
    assert (entry.run_at, entry.created_at, entry.is_due) == (NOW, NOW, True)


def test_a_job_for_later_is_not_due_when_it_enters() -> None:
    entry = Entry(JobId("job_7"), NewJob(kind="work", run_at=Instant(NOW + 1)), EMPTY, NOW, position=5)

    assert (entry.run_at, entry.is_due) == (NOW + 1, False)


# Attempts.


@pytest.mark.req("DEC-001")
@pytest.mark.req("DEC-008")
def test_the_next_attempt_is_a_new_job_of_the_same_chain() -> None:
    failed = _job(
        key=JobKey("k"),
        lane=Lane("l"),
        position=5,
        priority=2,
        state=JobState.RUNNING,
        session=SessionId("s"),
        token=Token(3),
        started_at=NOW,
    )

    retry = failed.next_attempt(new_id=JobId("job_2"), now=Instant(NOW + 10), fraction=0.0)

    assert retry is not None
    assert (retry.id, retry.retry_of, retry.chain, retry.attempt) == ("job_2", "job_1", "job_1", 2)
    assert (retry.key, retry.lane, retry.position, retry.priority) == ("k", "l", 5, 2)
    assert (retry.state, retry.session, retry.token, retry.started_at) == (JobState.BACKOFF, None, None, None)
    assert (retry.run_at, retry.created_at) == (NOW + 10 + 2_000_000, NOW + 10)


@pytest.mark.req("DEC-001")
@given(st.integers(1, 20))
def test_attempts_are_counted_along_the_chain_up_to_the_policy(most: int) -> None:
    job: Job | None = _job(retry=RetryPolicy(max_attempts=most, backoff_ms=0))
    attempts = []

    while job is not None:
        attempts.append((job.attempt, job.chain))
        job = job.next_attempt(new_id=JobId(f"job_{len(attempts)}x"), now=NOW, fraction=0.0)

    assert attempts == [(n, "job_1") for n in range(1, most + 1)]


@pytest.mark.req("DEC-001", error=True)
@pytest.mark.req("DEC-008", error=True)
def test_there_is_no_attempt_beyond_the_last() -> None:
    job = _job(attempt=3)

    assert job.next_attempt(new_id=JobId("job_2"), now=NOW, fraction=0.0) is None


@pytest.mark.parametrize("status", [JobStatus.QUEUED, JobStatus.RUNNING])
@pytest.mark.req("DEC-001", error=True)
def test_a_run_does_not_end_as_queued_or_running(status: JobStatus) -> None:
    with pytest.raises(InvalidInput, match="no ending"):
        Ending(status=status)


# Resources.


@pytest.mark.req("CON-002")
def test_resources_are_named_once_in_order_and_without_the_pool_itself() -> None:
    new = NewJob(kind="work", pool=PoolName("p"), resources=tuple(map(PoolName, ("z", "a", "p", "a"))))

    assert new.resources == ("a", "z")


@pytest.mark.req("CON-002", error=True)
@pytest.mark.parametrize("resources", [("Upper",), ("",), (None,), tuple(f"r{n}" for n in range(9))])
def test_resources_without_sense_are_refused(resources: Any) -> None:
    with pytest.raises(InvalidInput, match="resources"):
        NewJob(kind="work", resources=resources)


@pytest.mark.parametrize(
    ("field", "value"),
    [("kind", "Not a name"), ("pool", ""), ("run_at", -1), ("run_at", 2**62), ("timeout_ms", 0), ("params", [1])],
)
def test_every_field_is_refused_by_its_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        NewJob(**{"kind": "work", field: value})

    assert refused.value.field == field


# Refusals, and sessions.


@pytest.mark.req("DEC-005", error=True)
def test_refusals_belong_to_their_families_and_name_the_job() -> None:
    job = JobId("job_1")
    refusals = [UnknownJob(job), JobAlreadyFinished(job), JobLocked(job), JobsApart(job, JobId("job_2"))]

    assert [type(error).__mro__[1] for error in refusals] == [NotFound, Conflict, Conflict, Conflict]
    assert [error.code for error in refusals] == ["unknown_job", "job_already_finished", "job_locked", "jobs_apart"]
    assert all("job_1" in str(error) for error in refusals)


@pytest.mark.req("INV-003")
@pytest.mark.req("RISK-02")
def test_a_session_runs_one_job_and_lives_half_a_minute_unless_told_otherwise() -> None:
    session = Session(id=SessionId("ses_1"), name="worker")

    assert (session.capacity, session.lease) == (1, 30_000_000)


@pytest.mark.req("INV-003", error=True)
@pytest.mark.req("RISK-02", error=True)
@pytest.mark.parametrize(
    ("field", "value"),
    [("capacity", 0), ("capacity", 10_001), ("lease", 99_999), ("lease", 86_400_000_001), ("name", "")],
)
def test_a_session_without_sense_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=field):
        Session(**{"id": "ses_1", "name": "worker", field: value})


@pytest.mark.req("INV-003", error=True)
def test_a_session_is_told_why_it_is_refused() -> None:
    session = SessionId("ses_1")

    assert (OverCapacity(session).code, SessionLost(session).code) == ("over_capacity", "session_lost")
    assert "ses_1" in str(OverCapacity(session))
