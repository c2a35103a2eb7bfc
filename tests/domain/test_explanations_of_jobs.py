"""Why jobs, groups and runs of workflows are as they are, in sentences, from facts that are given."""

from dataclasses import replace
from typing import Any

import pytest

from duly.domain.executions import Execution, ExecutionStatus
from duly.domain.explanations import (
    Explained,
    GroupFacts,
    Holders,
    JobFacts,
    Wait,
    WorkflowRunFacts,
    explain_group,
    explain_job,
    explain_workflow_run,
    waiting_in_words,
)
from duly.domain.explanations.facts import counted, several
from duly.domain.groups import Group, GroupMode, GroupStatus, Member, MemberState
from duly.domain.ids import GroupId, JobId, Lane, Owner, PoolName, SessionId, Token
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.jobs import FinishedJob, Job, JobState, JobStatus, NewJob
from duly.domain.payloads import EMPTY, Payload
from duly.domain.pools import Pool
from duly.domain.templates import Origin, Snapshot
from duly.domain.workflows import CallBack, CalledBack, DagRun, NodeRun, NodeState, plan_of

NOW = Instant(1_800_000_000 * SECOND)


def job(number: int = 1, **given: Any) -> Job:
    named = JobId(f"job_{number}")
    return Job(**{"id": named, "kind": "work", "run_at": NOW, "created_at": NOW, "chain": JobId("job_1"), **given})


def ended(status: JobStatus, **given: Any) -> FinishedJob:
    told: dict[str, Any] = {
        "id": JobId("job_1"),
        "kind": "work",
        "payload": EMPTY,
        "key": None,
        "lane": None,
        "pool": PoolName("wide"),
        "priority": 0,
        "run_at": NOW,
        "created_at": NOW,
        "attempt": 1,
        "max_attempts": 3,
        "retry_of": None,
        "chain": JobId("job_1"),
        "status": status,
        "error": None,
        "exit_code": None,
        "result": None,
        "started_at": NOW,
        "finished_at": Instant(NOW + 5 * SECOND),
        "ledger_run": None,
    }
    return FinishedJob(**{**told, **given})


def names(explained: Explained) -> list[str]:
    return [fact.name for fact in explained.facts]


@pytest.mark.req("OWN-02")
def test_a_crowd_is_counted_and_its_first_are_named() -> None:
    at_work = [
        job(n, state=JobState.RUNNING, session=SessionId("ses_1"), token=Token(1), started_at=NOW) for n in range(2, 9)
    ]
    holders = Holders(pool=Pool(name=PoolName("wide"), slots=10, used=10), jobs=at_work, calls=1)
    ahead = [JobId(f"job_{number}") for number in (20, 21)]

    full, place = waiting_in_words(job(), Wait(now=NOW, pool=holders, place=9, ahead=ahead))

    assert full.sentence.endswith("job_6 (work, running since 2027-01-15T08:00:00Z), 1 direct call and 4 other jobs.")
    assert full.about == ("wide", "job_2", "job_3", "job_4", "job_5", "job_6")
    assert place.sentence == "It is number 9 in the order of the pool 'default', behind job_20, job_21 and 6 more."


@pytest.mark.req("OWN-02")
def test_a_lane_that_somebody_else_holds_names_nobody() -> None:
    (fact,) = waiting_in_words(job(state=JobState.WAITING, lane=Lane("mail")), Wait(now=NOW, lane_ahead=0))

    assert fact == ("lane_busy", "Its lane 'mail' is busy: a job of somebody else comes first.", ())


@pytest.mark.req("OWN-02")
def test_what_to_do_next_is_the_last_thing_that_is_said() -> None:
    failed = ended(JobStatus.FAILED, attempt=3, error="boom\nTraceback", exit_code=2)
    explained = explain_job(
        JobFacts(job=failed, chain=[failed], now=NOW, origin=Origin(owner=Owner("ann"), template="t"))
    )

    assert names(explained) == ["put", "attempt", "attempt_failed", "exhausted", "next"]
    assert "made from the template 't'" in explained.sentences[0]
    assert explained.sentences[2].endswith("failed at 2027-01-15T08:00:05Z with exit code 2: boom.")


@pytest.mark.req("OWN-02")
@pytest.mark.parametrize(
    ("status", "answer"),
    [(JobStatus.COMPLETED, "ran"), (JobStatus.SKIPPED, "skipped"), (JobStatus.CANCELLED, "cancelled")],
)
def test_each_end_has_its_word(status: JobStatus, answer: str) -> None:
    last = ended(status)

    assert explain_job(JobFacts(job=last, chain=[last], now=NOW)).answer == answer


@pytest.mark.req("OWN-02")
def test_a_large_group_counts_what_it_does_not_name() -> None:
    group = Group(
        id=GroupId("grp_1"),
        owner=Owner("ann"),
        name="",
        mode=GroupMode.PARALLEL,
        stop_on_failure=False,
        webhook_url=None,
        size=16,
        open=8,
        created_at=NOW,
    )
    states = [MemberState.LIVE] * 8 + [MemberState.FAILED] * 7 + [MemberState.CANCELLED]
    members = [
        Member(
            group_id=group.id,
            place=n,
            name=None,
            snapshot=Snapshot(new=NewJob(kind="w")),
            job_id=JobId(f"job_{n}"),
            state=s,
        )
        for n, s in enumerate(states)
    ]

    running = explain_group(GroupFacts(group=group, members=members, now=NOW))
    over = replace(group, status=GroupStatus.PARTIAL, ended_at=NOW)

    assert "3 members more are live." in running.sentences
    assert "2 members more failed." in running.sentences
    assert "Member 16 was cancelled." in running.sentences
    assert names(explain_group(GroupFacts(group=over, members=members, now=NOW)))[-1] == "next"


def execution(**given: Any) -> Execution:
    told: dict[str, Any] = {
        "key": "k",
        "request_hash": "",
        "request": Payload("{}"),
        "graph_id": "dag:news",
        "grant_id": "grant_1",
        "run_id": "exe_1",
        "trace_id": "",
        "status": ExecutionStatus.RUNNING,
        "token": 1,
        "era": "",
        "expires_at": Micros(0),
        "created_at": NOW,
    }
    return Execution(**{**told, **given})


RUN = DagRun(run_id="exe_1", owner=Owner("ann"), workflow="news", version=2, begun_at=NOW)


@pytest.mark.req("OWN-02")
def test_an_executor_elsewhere_is_waited_for_until_its_deadline() -> None:
    executor = {"url": "https://dags.example/run", "callback": True, "deadline_ms": 60_000}
    plan = plan_of({"name": "news", "nodes": [{"id": "a", "action": "work"}], "executor": executor})
    facts = WorkflowRunFacts(run=RUN, execution=execution(), now=NOW, plan=plan, accepted_at=NOW)
    said = CallBack(CalledBack.FAILED, Payload('"no disk"'))

    waiting = explain_workflow_run(facts)
    failed = explain_workflow_run(replace(facts, called_back=said))

    assert waiting.sentences[-1] == "It waits until 2027-01-15T08:01:00Z for the executor to call back."
    assert names(failed) == ["begun", "elsewhere", "accepted", "called_back"]
    assert failed.sentences[-1] == 'The executor has said FAILED: "no disk".'


@pytest.mark.req("OWN-02")
def test_nodes_of_a_run_that_is_over_wait_for_nothing() -> None:
    plan = plan_of(
        {"name": "news", "nodes": [{"id": "a", "action": "work"}, {"id": "b", "action": "w", "needs": ["a"]}]}
    )
    row = NodeRun(run_id="exe_1", node="a", owner=Owner("ann"), state=NodeState.RUNNING, tries=2, started_at=NOW)
    done = execution(status=ExecutionStatus.DONE, ok=False)

    explained = explain_workflow_run(WorkflowRunFacts(run=RUN, execution=done, now=NOW, plan=plan, nodes=[row]))

    assert explained.answer == "failed"
    assert explained.sentences[2:4] == [
        "Node 'a' began try 2 of 3 at 2027-01-15T08:00:00Z, and the run ended before it did.",
        "Node 'b' was not begun.",
    ]


@pytest.mark.req("OWN-02")
def test_a_try_of_a_dead_attempt_is_said_to_be_lost() -> None:
    plan = plan_of({"name": "news", "nodes": [{"id": "a", "action": "work"}]})
    row = NodeRun(run_id="exe_1", node="a", owner=Owner("ann"), state=NodeState.RUNNING, tries=1, started_at=NOW)
    facts = WorkflowRunFacts(
        run=RUN, execution=execution(attempt=2), now=NOW, plan=plan, nodes=[row], attempt_at=Instant(NOW + SECOND)
    )

    assert "counts that try as lost" in explain_workflow_run(facts).sentences[2]


def test_lists_and_counts_read_as_people_say_them() -> None:
    assert [several(["a"]), several(["a", "b"]), several(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
    assert [counted(1, "try", "tries"), counted(2, "try", "tries"), counted(0, "job")] == ["1 try", "2 tries", "0 jobs"]
