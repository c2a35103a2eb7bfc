"""Why, in sentences: one for each thing that can become of a slot, and of a schedule."""

from dataclasses import replace
from typing import Any

import pytest

from duly import cron, every
from duly.domain.audit import Timekeeping
from duly.domain.coverage import Span
from duly.domain.explanations import Explanation, ScheduleFacts, SlotFacts, explain_schedule, explain_slot
from duly.domain.ids import JobId, Owner, PoolName, RunId, ScheduleId, SessionId, Token
from duly.domain.instants import SECOND, Instant
from duly.domain.jobs import FinishedJob, Job, JobState, JobStatus
from duly.domain.payloads import EMPTY
from duly.domain.policies import Policies
from duly.domain.runs import Arrears, Gap, GapReason, Reason, Run, RunKind, RunStatus
from duly.domain.schedules import Schedule, ScheduleState, Target, new_schedule

BORN = 1_800_000_000
PLANNED = (
    "2027-01-15T08:05:00Z was planned by revision 1 (Every 5 minutes), in force for slots after 2027-01-15T08:00:00Z."
)
OPENED = "It was opened at 2027-01-15T08:05:00.012000Z, 12 ms after its time, as run_1."


def at(minutes: float) -> Instant:
    return Instant(int((BORN + minutes * 60) * SECOND))


def schedule(**policies: Any) -> Schedule:
    return new_schedule(
        schedule_id="digest",
        owner="me",
        cadence=every("5m"),
        target=Target(kind="work"),
        policies=Policies(**policies),
        now=at(0),
    )


def run(status: RunStatus, **rest: Any) -> Run:
    return Run(
        id=RunId("run_1"),
        schedule_id=ScheduleId("digest"),
        owner=Owner("me"),
        revision=1,
        scheduled_for=at(5),
        fire_at=at(5),
        opened_at=Instant(at(5) + 12_000),
        status=status,
        completed_at=at(6) if status.is_terminal else None,
        **rest,
    )


def job(state: JobState, **rest: Any) -> Job:
    first = JobId("job_1")
    return Job(id=first, kind="work", run_at=at(9), created_at=at(5), chain=first, state=state, **rest)


def failed(attempt: int) -> FinishedJob:
    return FinishedJob(
        id=JobId(f"job_{attempt}"),
        kind="work",
        payload=EMPTY,
        key=None,
        lane=None,
        pool=PoolName("default"),
        priority=0,
        run_at=at(5),
        created_at=at(5),
        attempt=attempt,
        max_attempts=3,
        retry_of=None,
        chain=JobId("job_1"),
        status=JobStatus.FAILED,
        error="no route to host\nTraceback …",
        exit_code=None,
        result=None,
        started_at=at(5),
        finished_at=at(5.5),
        ledger_run=RunId("run_1"),
    )


def explained(minute: float = 5, *, opened: float = 10, now: float = 12, **facts: Any) -> Explanation:
    made = facts.pop("schedule", None) or schedule()
    spans = facts.pop("coverage", (Span(at(0), at(12)),))
    return explain_slot(
        SlotFacts(
            schedule=replace(made, opened_through=at(opened) // SECOND),
            revisions=facts.pop("revisions", [made.recorded()]),
            slot=at(minute) // SECOND,
            now=at(now),
            timekeeping=Timekeeping.from_spans(spans, now=at(now)),
            **facts,
        )
    )


# A slot that was opened


@pytest.mark.req("OWN-02")
@pytest.mark.parametrize(
    ("made", "jobs", "answer", "sentences"),
    [
        (
            run(RunStatus.SUCCESS, started_at=at(5.5), attempt_count=1),
            [],
            "ran",
            ["It ran from 2027-01-15T08:05:30Z to 2027-01-15T08:06:00Z (30.0 s, 1 attempt), and succeeded."],
        ),
        (
            run(RunStatus.ERROR, error_message="no route to host\nTraceback …", attempt_count=2),
            [failed(1), failed(2)],
            "failed",
            [
                "Attempt 1 (job_1) failed at 2027-01-15T08:05:30Z: no route to host.",
                "It failed at 2027-01-15T08:06:00Z after 2 attempts: no route to host.",
            ],
        ),
        (
            run(RunStatus.SKIPPED, reason=Reason.OVERLAP, detail="run_0 was still in flight"),
            [],
            "skipped",
            ["It was skipped at 2027-01-15T08:06:00Z (overlap): run_0 was still in flight."],
        ),
        (
            run(RunStatus.CANCELLED, reason=Reason.REPLACED),
            [],
            "cancelled",
            ["It was cancelled at 2027-01-15T08:06:00Z (replaced)."],
        ),
        (
            run(RunStatus.PENDING),
            [job(JobState.READY)],
            "waiting",
            ["It waits for a worker of the pool 'default': job_1, attempt 1 of 3."],
        ),
        (
            run(RunStatus.PENDING),
            [job(JobState.WAITING)],
            "waiting",
            ["It waits for an earlier job of its lane: job_1, attempt 1 of 3."],
        ),
        (
            run(RunStatus.PENDING),
            [job(JobState.PARKED)],
            "waiting",
            ["It waits for a resource that is full: job_1, attempt 1 of 3."],
        ),
        (
            run(RunStatus.RUNNING),
            [failed(1), job(JobState.BACKOFF, attempt=2)],
            "running",
            [
                "Attempt 1 (job_1) failed at 2027-01-15T08:05:30Z: no route to host.",
                "It waits until 2027-01-15T08:09:00Z: job_1, attempt 2 of 3.",
            ],
        ),
        (
            run(RunStatus.RUNNING),
            [job(JobState.RUNNING, session=SessionId("ses_1"), token=Token(1), started_at=at(5.5))],
            "running",
            ["It is running in session ses_1: job_1, attempt 1 of 3, since 2027-01-15T08:05:30Z."],
        ),
        (
            run(RunStatus.RUNNING),
            [failed(1)],
            "running",
            [
                "Attempt 1 (job_1) failed at 2027-01-15T08:05:30Z: no route to host.",
                "It is running, but none of its jobs is live: it is stuck, and `duly audit` says so.",
            ],
        ),
    ],
)
def test_a_run_says_what_became_of_it(made: Run, jobs: list[Any], answer: str, sentences: list[str]) -> None:
    explanation = explained(run=made, jobs=jobs)

    assert explanation.answer == answer
    assert explanation.sentences == [PLANNED, OPENED, *sentences]


@pytest.mark.req("OWN-02")
def test_jitter_says_when_the_slot_fires() -> None:
    explanation = explained(schedule=schedule(jitter_ms=60_000), run=run(RunStatus.PENDING), jobs=[job(JobState.READY)])

    assert explanation.sentences[1].startswith("It fires at 2027-01-15T08:0")
    assert explanation.sentences[1].endswith(" the slot, by jitter.")


def test_a_slot_that_was_missed_and_caught_up_says_both() -> None:
    coverage = (Span(at(0), at(1)), Span(at(8), at(12)))

    explanation = explained(run=run(RunStatus.SUCCESS), coverage=coverage)

    assert explanation.sentences[1] == (
        "Nobody kept time from 2027-01-15T08:01:00Z to 2027-01-15T08:08:00Z (7 minutes), so it was missed."
    )
    assert explanation.answer == "ran"


def test_runs_by_hand_for_the_same_instant_are_told() -> None:
    by_hand = run(RunStatus.SUCCESS)._replace(id=RunId("run_2"), kind=RunKind.BACKFILL, own_key="backfill:may")

    explanation = explained(run=run(RunStatus.SUCCESS), by_hand=[by_hand])

    assert explanation.sentences[-1] == "Besides, run_2 ran for it (backfill, 'backfill:may'): success."


# A slot without a row

OUTAGE = (Span(at(0), at(1)), Span(at(11), at(12)))
SILENCE = "Nobody kept time from 2027-01-15T08:01:00Z to 2027-01-15T08:11:00Z (10 minutes), so it was missed."


@pytest.mark.req("OWN-02")
@pytest.mark.req("RISK-04")
@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (GapReason.OUTAGE, "(outage): missed slots that are not caught up."),
        (GapReason.CATCH_UP_CAP, "(catch_up_cap): more were missed than may be caught up."),
        (GapReason.SUPERSEDED, "(superseded): one run, for the newest missed slot, stands for them."),
    ],
)
def test_a_slot_in_a_gap_names_the_outage(reason: GapReason, words: str) -> None:
    gap = Gap(
        schedule_id=ScheduleId("digest"),
        reason=reason,
        first=at(5),
        last=at(10),
        count=2,
        recorded_at=at(11),
        revision=1,
    )

    explanation = explained(gap=gap, coverage=OUTAGE)

    assert explanation.answer == "missed"
    assert explanation.sentences == [
        PLANNED,
        SILENCE,
        f"It lies in a gap of 2 slots from 2027-01-15T08:05:00Z through 2027-01-15T08:10:00Z {words}",
    ]


def arrears() -> Arrears:
    return Arrears(
        schedule_id=ScheduleId("digest"), revision=1, first=at(5), next=at(5), last=at(5), count=1, due_at=at(12)
    )


@pytest.mark.req("OWN-02")
def test_a_slot_that_is_owed_says_when_it_comes() -> None:
    explanation = explained(owed=arrears(), coverage=OUTAGE)

    assert explanation.answer == "owed"
    assert explanation.sentences[-1] == (
        "It is owed, in all 1 slot, 2027-01-15T08:05:00Z; the next is caught up at 2027-01-15T08:12:00Z."
    )


@pytest.mark.req("OWN-02")
def test_a_slot_to_come_says_when() -> None:
    explanation = explained(15)

    assert explanation.answer == "not due"
    assert explanation.sentences[-1] == "It is not due yet: it fires in 3 minutes."


NEIGHBOURS = "the one before is 2027-01-15T08:05:00Z and the next is 2027-01-15T08:10:00Z"


@pytest.mark.req("OWN-02", error=True)
@pytest.mark.parametrize(
    ("minute", "why"),
    [
        (6, f"it is no slot of revision 1 (Every 5 minutes); {NEIGHBOURS}"),
        (-5, "the schedule did not exist yet"),
    ],
)
def test_what_was_not_planned_is_said_to_be_so(minute: float, why: str) -> None:
    explanation = explained(minute)

    assert explanation.answer == "not planned"
    (sentence,) = explanation.sentences
    assert sentence.endswith(f" was not planned: {why}.")


def test_a_slot_of_a_pause_names_the_pause() -> None:
    active = schedule()
    paused = active.changed(at=at(4), state=ScheduleState.PAUSED)

    explanation = explained(5, schedule=paused, revisions=[active.recorded(), paused.recorded()])

    assert explanation.sentences == [
        "2027-01-15T08:05:00Z was not planned: the schedule was paused after 2027-01-15T08:04:00Z (revision 2)."
    ]


@pytest.mark.req("OWN-02", error=True)
def test_a_lost_slot_is_called_lost() -> None:
    assert explained(5).answer == "lost"
    assert explained(5).sentences[-1] == "Nothing accounts for it: it is lost, and `duly audit` says so."


@pytest.mark.parametrize(
    ("alive", "answer", "why"),
    [
        (12.0, "lost", ", although a timekeeper is alive: it is lost, and `duly audit` says so."),
        (10.5, "not opened", "."),
        (9.0, "not opened", ": nobody has kept time since 2027-01-15T08:09:00Z. Start `duly` again."),
        (None, "not opened", ": nobody has kept time ever. Start `duly` again."),
    ],
)
def test_a_slot_that_is_due_and_not_opened_says_who_is_missing(alive: float | None, answer: str, why: str) -> None:
    coverage = () if alive is None else (Span(at(0), at(alive)),)

    explanation = explained(10, opened=5, coverage=coverage)

    assert explanation.answer == answer
    late = "It was due at 2027-01-15T08:10:00Z, 2 minutes ago, and is not opened yet"
    assert explanation.sentences[-1] == late + why


def test_with_other_tz_data_nobody_can_say_whether_it_was_planned() -> None:
    berlin = replace(schedule(), cadence=cron("*/5 * * * *", "Europe/Berlin"))
    facts = SlotFacts(
        schedule=berlin,
        revisions=[berlin.recorded()],
        slot=at(5) // SECOND,
        now=at(12),
        timekeeping=Timekeeping.from_spans((), now=at(12)),
        run=run(RunStatus.SUCCESS),
    )

    explanation = explain_slot(facts, tz_version="1999z")

    assert "cannot be worked out here" in explanation.sentences[0]
    assert explanation.answer == "ran"


# A schedule


def told(made: Schedule | None = None, **facts: Any) -> Explanation:
    spans = facts.pop("coverage", (Span(at(0), at(12)),))
    return explain_schedule(
        ScheduleFacts(
            schedule=made or schedule(), now=at(2), timekeeping=Timekeeping.from_spans(spans, now=at(2)), **facts
        )
    )


@pytest.mark.req("OWN-02")
def test_an_active_schedule_says_what_comes_and_what_was() -> None:
    runs = [run(RunStatus.SKIPPED, reason=Reason.OVERLAP, detail="run_0 was still in flight")]

    explanation = told(runs=runs)

    assert explanation.answer == "active"
    assert explanation.sentences == [
        "digest: Every 5 minutes (revision 1, changed last at 2027-01-15T08:00:00Z).",
        "Its next slot is 2027-01-15T08:05:00Z, in 3 minutes.",
        "2027-01-15T08:05:00Z skipped (overlap): run_0 was still in flight (run_1).",
    ]


@pytest.mark.req("OWN-02", error=True)
@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (
            ScheduleState.PAUSED,
            "It does not run: it was paused at 2027-01-15T08:01:00Z: moving house. Resume it to go on.",
        ),
        (
            ScheduleState.BROKEN,
            "It does not run: it broke at 2027-01-15T08:01:00Z: moving house. Edit or resume it to go on.",
        ),
        (ScheduleState.DELETED, "It does not run: it was deleted at 2027-01-15T08:01:00Z: moving house."),
    ],
)
def test_a_schedule_that_does_not_run_says_why(state: ScheduleState, sentence: str) -> None:
    explanation = told(schedule().changed(at=at(1), state=state, state_reason="moving house"))

    assert explanation.answer == state
    assert explanation.sentences[1:] == [sentence, "It has not run yet."]


def test_a_schedule_that_was_edited_while_it_was_paused_says_when_it_was_paused() -> None:
    active = schedule()
    paused = active.changed(at=at(1), state=ScheduleState.PAUSED)
    edited = paused.changed(at=at(2), cadence=every("7m"))

    explanation = told(edited, revisions=[active.recorded(), paused.recorded(), edited.recorded()])

    assert explanation.sentences[1] == "It does not run: it was paused at 2027-01-15T08:01:00Z. Resume it to go on."


def test_a_schedule_without_slots_left_is_finished() -> None:
    assert told(replace(schedule(), next_slot=None, fire_at=None)).answer == "finished"


@pytest.mark.parametrize(
    ("alive", "why"),
    [
        (0.5, "is not opened, because nobody has kept time since 2027-01-15T08:00:30Z."),
        (None, "is not opened, because nobody has kept time ever."),
        (2.0, "is about to be opened."),
    ],
)
def test_a_schedule_that_is_late_says_who_is_missing(alive: float | None, why: str) -> None:
    late = replace(schedule(), next_slot=at(1) // SECOND, fire_at=at(1))

    explanation = told(late, coverage=() if alive is None else (Span(at(0), at(alive)),))

    assert explanation.answer == "waiting"
    assert explanation.sentences[1].endswith(why)


def test_a_slot_that_was_opened_after_the_last_beat_is_a_sign_of_life_too() -> None:
    late = replace(schedule(), next_slot=at(1) // SECOND, fire_at=at(1))
    opened = run(RunStatus.SUCCESS)._replace(scheduled_for=at(0.6), opened_at=at(0.6))

    explanation = told(late, coverage=(Span(at(0), at(0.5)),), runs=[opened])

    assert explanation.sentences[1].endswith("nobody has kept time since 2027-01-15T08:00:36Z.")


def test_a_schedule_says_what_it_missed_and_what_it_owes() -> None:
    gap = Gap(
        schedule_id=ScheduleId("digest"),
        reason=GapReason.OUTAGE,
        first=at(5),
        last=at(10),
        count=2,
        recorded_at=at(11),
        revision=1,
    )

    explanation = told(gap=gap, owed=[arrears()])

    assert explanation.sentences[2:4] == [
        "It owes 1 slot, 2027-01-15T08:05:00Z; the next is caught up at 2027-01-15T08:12:00Z.",
        "Its last gap is of 2 slots from 2027-01-15T08:05:00Z through 2027-01-15T08:10:00Z (outage).",
    ]
