"""Groups: what their status follows from, and what references lead to."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.domain.errors import InvalidInput
from duly.domain.groups import (
    Group,
    GroupMode,
    GroupStatus,
    MemberState,
    NewGroup,
    NewMember,
    Outcome,
    Progress,
    Reference,
    member_id,
    member_of,
    references_of,
    resolved,
    status_of,
)
from duly.domain.ids import GroupId, JobKey, Owner
from duly.domain.instants import Instant
from duly.domain.jobs import NewJob
from duly.domain.payloads import json_of

JOB = NewMember(job=NewJob(kind="work"))


def group(**rest: Any) -> Group:
    asked: dict[str, Any] = {"mode": GroupMode.SEQUENTIAL, "stop_on_failure": True} | rest
    return Group(
        id=GroupId("grp_1"),
        owner=Owner("ann"),
        name="",
        webhook_url=None,
        size=3,
        open=3,
        created_at=Instant(1),
        **asked,
    )


@pytest.mark.req("INV-006")
@given(st.lists(st.sampled_from(MemberState), min_size=1), st.booleans())
def test_a_group_is_terminal_exactly_when_all_its_members_are(states: list[MemberState], cancelled: bool) -> None:
    status = status_of({state: states.count(state) for state in states}, cancelled=cancelled)

    assert (status is GroupStatus.RUNNING) == any(state in ("pending", "live") for state in states)
    if status is GroupStatus.COMPLETED:
        assert all(state in ("COMPLETED", "SKIPPED") for state in states)
    if status is GroupStatus.PARTIAL:
        assert not cancelled


@pytest.mark.req("INV-006")
@pytest.mark.parametrize(
    ("states", "cancelled", "expected"),
    [
        ("COMPLETED COMPLETED", False, "COMPLETED"),
        ("COMPLETED SKIPPED", True, "COMPLETED"),
        ("COMPLETED FAILED", False, "PARTIAL"),
        ("COMPLETED CANCELLED", False, "PARTIAL"),
        ("FAILED FAILED", False, "PARTIAL"),
        ("CANCELLED CANCELLED", False, "CANCELLED"),
        ("COMPLETED CANCELLED", True, "CANCELLED"),
        ("FAILED FAILED", True, "CANCELLED"),
        ("FAILED live", True, "RUNNING"),
        ("COMPLETED pending", False, "RUNNING"),
    ],
)
def test_what_a_groups_status_follows_from(states: str, cancelled: bool, expected: str) -> None:
    named = [MemberState(state) for state in states.split()]

    assert status_of({state: named.count(state) for state in named}, cancelled=cancelled) == expected


@pytest.mark.req("DEC-012")
@pytest.mark.parametrize(
    ("state", "stops", "reason"),
    [
        ("COMPLETED", True, None),
        ("SKIPPED", True, None),
        ("FAILED", True, "predecessor failed"),
        ("CANCELLED", True, "predecessor cancelled"),
        ("FAILED", False, None),
        ("CANCELLED", False, None),
    ],
)
def test_what_follows_a_member(state: str, stops: bool, reason: str | None) -> None:
    assert group(stop_on_failure=stops).stops_after(MemberState(state)) == reason


def test_a_sequential_group_stops_on_failure_unless_told_otherwise() -> None:
    assert NewGroup(members=[JOB], mode=GroupMode.SEQUENTIAL).stop_on_failure is True
    assert NewGroup(members=[JOB], mode=GroupMode.SEQUENTIAL, stop_on_failure=False).stop_on_failure is False
    assert NewGroup(members=[JOB]).stop_on_failure is False


@pytest.mark.req("DEC-012", error=True)
def test_a_parallel_group_has_nothing_to_stop() -> None:
    with pytest.raises(InvalidInput, match="stop_on_failure"):
        NewGroup(members=[JOB], mode=GroupMode.PARALLEL, stop_on_failure=True)


@pytest.mark.req("INV-006", error=True)
@pytest.mark.parametrize(
    "make",
    [
        lambda: NewGroup(members=[]),
        lambda: NewGroup(members=[JOB] * 1_001),
        lambda: NewGroup(members=[JOB], mode="round"),  # type: ignore[arg-type]
        lambda: NewGroup(members=[NewMember(template="a", name="x"), NewMember(template="b", name="x")]),
        lambda: NewGroup(members=[JOB], webhook_url="no"),
        NewMember,
        lambda: NewMember(template="a", job=NewJob(kind="work")),
        lambda: NewMember(job=NewJob(kind="work"), params={}),
        lambda: NewMember(job=NewJob(kind="work", key=JobKey("k"))),
        lambda: NewMember(template="a", name="No Name"),
    ],
)
def test_a_group_that_makes_no_sense_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput):
        make()


def test_progress_counts() -> None:
    progress = Progress(counts={MemberState.LIVE: 2, MemberState.FAILED: 1, MemberState.COMPLETED: 4})

    assert (progress.size, progress.ended, progress[MemberState.LIVE], progress[MemberState.PENDING]) == (7, 5, 2, 0)


def test_a_member_is_named_by_its_group_and_place() -> None:
    assert member_of(member_id(GroupId("grp:1"), 12)) == ("grp:1", 12)


def _find(reference: Reference, field: str) -> Any:
    outcome = Outcome(
        MemberState.COMPLETED,
        json_of({"x": [1, {"y": None}], "": 2}, field="result"),
        [{"name": "a.pdf", "size": 3, "sha256": "0"}],
    )
    return reference.find(outcome, field=field)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("result.x.0", 1),
        ("result.x.1.y", None),
        ("result.", 2),
        ("result", {"x": [1, {"y": None}], "": 2}),
        ("artifacts", [{"name": "a.pdf", "size": 3, "sha256": "0"}]),
        ("artifacts.0.name", "a.pdf"),
    ],
)
def test_a_reference_is_replaced_by_what_it_leads_to(path: str, value: Any) -> None:
    params = {"a": [{"from": 0, "path": path}, 5], "b": {"from": 1}}

    assert resolved(params, _find) == {"a": [value, 5], "b": {"from": 1}}


@pytest.mark.req("DEC-012", error=True)
@pytest.mark.parametrize("path", ["result.z", "result.x.2", "result.x.-1", "result.x.y", "result.x.0.a", "artifacts.1"])
def test_a_path_that_leads_nowhere_says_where_it_ends(path: str) -> None:
    with pytest.raises(InvalidInput, match=r"params\.a\[0\]: member 0 has no"):
        resolved({"a": [{"from": 0, "path": path}]}, _find)


def test_references_are_found_wherever_they_are() -> None:
    one, other = {"from": 0, "path": "result"}, {"from": "x", "path": "artifacts.0"}

    assert references_of({"a": [one], "b": {"c": other}, "d": {"from": 1, "path": 2, "x": 3}}) == [
        ("params.a[0]", Reference(0, "result")),
        ("params.b.c", Reference("x", "artifacts.0")),
    ]
