"""The words for how a job stands: one set on every door, the older one on the older routes alone."""

from collections.abc import Callable
from typing import Any

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId
from duly.domain.instants import Instant
from duly.domain.jobs import Ending, Job, JobState, JobStatus
from duly.wire.job_changes import Arrangement, Move, RetryRequest
from duly.wire.jobs import NewJob, job_shape, new_job_of
from duly.wire.legacy_jobs import OLD_WORDS, LegacyNewJob, legacy_shape


def _job(state: JobState) -> Job:
    return Job(
        id=JobId("job_1"), kind="work", run_at=Instant(0), created_at=Instant(0), chain=JobId("job_1"), state=state
    )


@pytest.mark.req("DEC-006")
@pytest.mark.parametrize("state", list(JobState))
def test_a_live_job_is_queued_until_its_handler_may_have_been_entered(state: JobState) -> None:
    shape = job_shape(_job(state))

    assert shape.status is (JobStatus.RUNNING if state is JobState.RUNNING else JobStatus.QUEUED)
    assert "dispatched" not in shape.model_dump_json().lower()


@pytest.mark.req("DEC-006", error=True)
@pytest.mark.parametrize("status", ["succeeded", "error", "dispatched", JobStatus.QUEUED, JobStatus.RUNNING])
def test_no_other_word_ends_a_run(status: Any) -> None:
    with pytest.raises(InvalidInput, match="is no ending"):
        Ending(status=status)


@pytest.mark.req("CON-004")
def test_the_older_routes_have_a_word_for_every_status_and_put_the_same_job() -> None:
    assert set(OLD_WORDS) == set(JobStatus)
    assert len(set(OLD_WORDS.values())) == len(JobStatus)
    assert {OLD_WORDS[JobStatus.COMPLETED], OLD_WORDS[JobStatus.FAILED]} == {"succeeded", "error"}
    assert legacy_shape(_job(JobState.CLAIMED)).status == "queued"
    asked = LegacyNewJob(type="work", params={"a": 1}, priority=2).meant()
    assert new_job_of(asked) == new_job_of(NewJob(kind="work", params={"a": 1}, priority=2))


@pytest.mark.req("CON-004", error=True)
@pytest.mark.parametrize(
    "ask",
    [
        lambda: new_job_of(LegacyNewJob(type="duly.command").meant()),
        lambda: new_job_of(NewJob(kind="duly.command")),
        lambda: Move(next=False).given(),
        lambda: Move(place=1, priority=2).given(),
        lambda: Arrangement(jobs=[]),
    ],
)
def test_what_no_door_takes(ask: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"Duly's own|not one place|at least 1"):
        ask()


@pytest.mark.req("OWN-05")
def test_a_bulk_retry_always_has_a_cap_and_names_what_it_means() -> None:
    asked = RetryRequest(kind="work", jobs=["job_1"])

    assert asked.cap == 100
    assert (asked.meant().kind, asked.meant().jobs) == ("work", ("job_1",))
