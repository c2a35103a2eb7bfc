"""Two runs never have one key, whatever people call their schedules and their runs by hand."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from duly import every
from duly.application.registrar import key_of
from duly.application.schedule_runs import LONGEST_KEY
from duly.domain.errors import InvalidInput
from duly.domain.executions import execution_key_of
from duly.domain.groups import member_id
from duly.domain.ids import GroupId, Owner, RunId, ScheduleId
from duly.domain.instants import SECOND, Instant
from duly.domain.keys import in_ascii, key_of_own_run
from duly.domain.policies import Policies
from duly.domain.runs import Run, RunKind
from duly.domain.schedules import LONGEST_ID, Target, new_schedule, schedule_of_key, slot_key, slot_of_key
from duly.domain.workflows import run_key, schedule_id_of

NOW = Instant(1_700_000_000 * SECOND)
# Of these, whatever is joined by colons is soon made in two ways.
_WORDS = ("manual", "backfill", "governance", ":", ":", ":", "#", "a", "é", "%3A", "1700000060", "2023-11-14T22:14:20Z")
names = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=6).map("".join)
OWN = ("manual", "backfill")
slots = st.sampled_from([1_700_000_060, 1_700_000_120])


def _is_id(name: str) -> bool:
    try:
        _made(name)
    except InvalidInput:
        return False
    return True


def _made(schedule_id: str) -> str:
    made = new_schedule(
        schedule_id=schedule_id, owner="ann", cadence=every("1h"), target=Target(kind="k"), policies=Policies(), now=NOW
    )
    return made.id


def _run(schedule_id: str, own_key: str = "", *, slot: int = 1_700_000_060) -> Run:
    return Run(
        id=RunId("run"),
        schedule_id=ScheduleId(schedule_id),
        owner=Owner("ann"),
        revision=1,
        scheduled_for=Instant(slot * SECOND),
        fire_at=NOW,
        opened_at=NOW,
        kind=RunKind(own_key.partition(":")[0]) if own_key else RunKind.SLOT,
        own_key=own_key,
    )


@st.composite
def runs(draw: st.DrawFn) -> Run:
    kind, key = draw(st.sampled_from(RunKind)), draw(names)
    own_key = "" if kind is RunKind.SLOT else f"{kind}:{key}"
    return _run(draw(names.filter(_is_id)), own_key, slot=draw(slots))


def _readings(words: list[str]) -> Iterator[Run]:
    """Every run that the same words, joined by colons, may be taken for, in either order of its parts."""
    yield _run(":".join(words))
    for at in range(1, len(words)):
        parts = ":".join(words[:at]), ":".join(words[at:])
        for key, schedule_id in (parts, parts[::-1]):
            yield from (_run(schedule_id, f"{kind}:{key}") for kind in OWN)
    for at, word in enumerate(words):
        before, after = words[:at], words[at + 1 :]
        if word in OWN and before and after:
            yield _run(":".join(before), ":".join([word, *after]))
        elif word in OWN and not before:
            yield from (_run(":".join(after[cut:]), ":".join([word, *after[:cut]])) for cut in range(1, len(after)))


def _job_key(run: Run) -> str:
    slot = slot_key(run.schedule_id, run.scheduled_for // SECOND)
    return key_of_own_run(run.own_key, slot) if run.own_key else slot


@pytest.mark.req("GRAPH-07")
@given(st.lists(st.sampled_from(["manual", "backfill", "a", "b", "#", ""]), min_size=2, max_size=6))
def test_runs_that_differ_have_keys_that_differ_however_alike_their_names_are(words: list[str]) -> None:
    different = {
        run for run in _readings(words) if _is_id(run.schedule_id) and run.own_key not in ("manual:", "backfill:")
    }
    # Whoever has seen a digest may give it as a key.
    different |= {_run(run.schedule_id, ":".join(_job_key(run).split(":")[:2])) for run in different if run.own_key}

    assert len({_job_key(run) for run in different}) == len(different)
    assert len({key_of(run) for run in different}) == len(different)


@given(runs())
def test_a_runs_key_says_which_schedule_and_which_slot(run: Run) -> None:
    key = _job_key(run)

    assert schedule_of_key(key, None) == run.schedule_id
    assert slot_of_key(key) == datetime.fromtimestamp(run.scheduled_for // SECOND, UTC)


@given(st.tuples(names, slots), st.tuples(names, slots))
def test_run_keys_tell_schedules_and_slots_apart(one: tuple[str, int], other: tuple[str, int]) -> None:
    assert (run_key(*one) == run_key(*other)) == (one == other)


@given(st.tuples(names, st.integers(0, 99)), st.tuples(names, st.integers(0, 99)))
def test_members_of_different_groups_have_different_ids(one: tuple[str, int], other: tuple[str, int]) -> None:
    ids = [member_id(GroupId(group), place) for group, place in (one, other)]

    assert (ids[0] == ids[1]) == (one == other)


parts = st.text(alphabet="a1_.-", min_size=1, max_size=4)


@given(st.tuples(parts, parts), st.tuples(parts, parts))
def test_triggers_of_different_workflows_have_different_schedules(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (schedule_id_of(*one) == schedule_id_of(*other)) == (one == other)


@pytest.mark.req("GRAPH-07", error=True)
@pytest.mark.parametrize("schedule_id", ["manual:x:news", "manual:", "backfill:may:news"])
def test_an_id_that_slots_would_share_with_runs_by_hand_is_refused(schedule_id: str) -> None:
    with pytest.raises(InvalidInput, match="no cadence planned") as refused:
        _made(schedule_id)

    assert refused.value.field == "id"
    assert "begins with another word" in str(refused.value)


@pytest.mark.parametrize("schedule_id", ["manual", "manually:x", "x:manual:y", "backfills"])
def test_an_id_that_only_looks_like_it_is_taken(schedule_id: str) -> None:
    assert _made(schedule_id) == schedule_id


@pytest.mark.parametrize("key", ["x" * LONGEST_KEY, ":" * LONGEST_KEY, "#" + "x" * (LONGEST_KEY - 1)])
def test_the_longest_key_of_the_longest_id_fits_where_keys_go(key: str) -> None:
    assert len(key_of_own_run(f"backfill:{key}", slot_key(ScheduleId("s" * LONGEST_ID), 0))) <= 255


@given(st.lists(st.text(min_size=1, max_size=300), min_size=2, max_size=2, unique=True))
@example(["mö", "m%C3%B6"])
@example(["mö", "~m%C3%B6"])
@example(["~", "~~"])
@example(["x" * 256, "x" * 257])
@example(["ö" * 255, "~#" + "0" * 64])
def test_a_header_carries_every_key_and_no_two_become_one(keys: list[str]) -> None:
    carried = [in_ascii(key) for key in keys]

    assert len(set(carried)) == 2
    for key in carried:
        assert execution_key_of(key) == key


@pytest.mark.parametrize("key", ["news:2030-01-01T00:00:00Z", "manual:k:news:2030-01-01T00:00:00Z", "100%"])
def test_a_key_that_a_header_can_carry_stays_as_it_is(key: str) -> None:
    assert in_ascii(key) == key
