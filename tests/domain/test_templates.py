"""Templates, and the snapshots that are made from them."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId, JobKey, Lane, Owner, PoolName
from duly.domain.instants import Instant
from duly.domain.jobs import FinishedJob, JobStatus
from duly.domain.payloads import Payload, value_of
from duly.domain.retries import RetryPolicy
from duly.domain.templates import Command, NewTemplate, Template

NOW = Instant(1_000_000)


def template(**asked: Any) -> Template:
    spec = NewTemplate(name="mail", **({"kind": "mail"} | asked))
    return Template(asked=spec, owner=Owner("ann"), version=3, created_at=NOW, updated_at=NOW)


@pytest.mark.req("INV-005")
def test_a_snapshot_holds_all_that_its_template_said() -> None:
    mould = template(
        params={"a": 1, "b": {"x": 1}},
        pool=PoolName("mails"),
        resources=(PoolName("smtp"),),
        lane=Lane("lane"),
        priority=5,
        retry=RetryPolicy(max_attempts=9),
        timeout_ms=10,
        webhook_url="https://example.org/",
    )

    made = mould.snapshot({"b": {"y": 2}})

    assert value_of(made.payload()) == {"a": 1, "b": {"y": 2}}
    assert made.new == replace(mould.asked.new, params={"a": 1, "b": {"y": 2}})
    assert (made.template, made.template_version, made.webhook_url) == ("mail", 3, "https://example.org/")


@pytest.mark.req("INV-005")
def test_what_is_given_with_a_job_takes_the_place_of_the_templates() -> None:
    made = template(lane=Lane("a"), priority=1).snapshot(key=JobKey("k"), lane=Lane("b"), priority=0, run_at=NOW)

    assert (made.new.key, made.new.lane, made.new.priority, made.new.run_at) == ("k", "b", 0, NOW)


@pytest.mark.req("INV-001")
def test_edited_params_keep_a_commands_words() -> None:
    made = template(kind=None, command=Command(argv=("ls", "-l"))).snapshot({"n": 1})
    origin = made.origin(Owner("ann"))

    edited = origin.payload_for({"n": 2}, of=made.payload(), kind=made.new.kind)

    assert value_of(edited) == {"command": {"argv": ["ls", "-l"], "env": {}, "cwd": None}, "params": {"n": 2}}


@pytest.mark.req("INV-001", error=True)
def test_edited_params_are_held_against_the_schema() -> None:
    made = template(schema={"required": ["n"]}).snapshot({"n": 1})

    with pytest.raises(InvalidInput, match=r"params\.n"):
        made.origin(Owner("ann")).payload_for({}, of=made.payload(), kind="mail")


@pytest.mark.parametrize(
    "make",
    [
        lambda: NewTemplate(name="Mail", kind="mail"),
        lambda: NewTemplate(name="mail"),
        lambda: NewTemplate(name="mail", kind="mail", command=Command(argv=("ls",))),
        lambda: NewTemplate(name="mail", kind="duly.command"),
        lambda: NewTemplate(name="mail", kind="mail", params={"n": 0}, schema={"properties": {"n": {"minimum": 1}}}),
        lambda: NewTemplate(name="mail", kind="mail", schema={"pattern": "x"}),
        lambda: NewTemplate(name="mail", kind="mail", priority=99_999),
        lambda: NewTemplate(name="mail", kind="mail", pool=PoolName("No Pool")),
        lambda: NewTemplate(name="mail", kind="mail", webhook_url="ftp://example.org"),
        lambda: NewTemplate(name="mail", kind="mail", webhook_url="https:///path"),
        lambda: Command(argv="ls -l"),  # type: ignore[arg-type]
        lambda: Command(argv=()),
        lambda: Command(argv=("a\0b",)),
        lambda: Command(argv=("ls",), env={"A=B": "c"}),
    ],
)
def test_a_template_that_makes_no_sense_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput):
        make()


def ended() -> FinishedJob:
    return FinishedJob(
        id=JobId("job_3"),
        kind="mail",
        payload=Payload('{"n":1}'),
        key=JobKey("k"),
        lane=Lane("lane"),
        pool=PoolName("mails"),
        priority=2,
        run_at=NOW,
        created_at=NOW,
        attempt=3,
        max_attempts=3,
        retry_of=JobId("job_2"),
        chain=JobId("job_1"),
        status=JobStatus.FAILED,
        error="no",
        exit_code=None,
        result=None,
        started_at=NOW,
        finished_at=NOW,
        ledger_run=None,
        retry=RetryPolicy(max_attempts=3, backoff_ms=7, backoff_cap_ms=8),
        timeout_ms=5,
    )


@pytest.mark.req("INV-002")
@pytest.mark.parametrize("name", FinishedJob.__slots__)
def test_a_job_that_has_ended_is_read_only(name: str) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(ended(), name, None)


@pytest.mark.req("DEC-001")
@pytest.mark.req("DEC-007")
def test_a_retry_by_hand_is_the_next_attempt_of_its_chain_with_a_new_budget() -> None:
    last = ended()

    again = last.again(new_id=JobId("job_4"), attempts=3, now=Instant(NOW + 9), position=77)

    assert (again.id, again.retry_of, again.chain, again.attempt) == ("job_4", "job_3", "job_1", 4)
    assert (again.retry.max_attempts, again.retry.backoff_ms, again.timeout_ms) == (6, 7, 5)
    assert (again.kind, again.payload, again.key, again.lane, again.position) == ("mail", '{"n":1}', "k", "lane", 77)


def test_a_command_says_how_its_result_is_read_or_nothing() -> None:
    told = Command(argv=("a",), result="json")

    assert told.as_value() == {"argv": ["a"], "env": {}, "cwd": None, "result": "json"}
    assert Command.from_value(told.as_value()) == told
    assert "result" not in Command(argv=("a",)).as_value()
    assert Command.from_value({"argv": ["a"], "env": {}, "cwd": None}).result is None
    with pytest.raises(InvalidInput, match="no way to read a result"):
        Command(argv=("a",), result="yaml")  # type: ignore[arg-type]
