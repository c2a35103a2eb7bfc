"""Pools: a limit, a mode, and room for one more."""

import pytest

from duly.domain.errors import Conflict, InvalidInput, NotFound, Refused
from duly.domain.ids import PoolName
from duly.domain.pools import BUILT_IN_POOLS, DEFAULT_POOL, Pool, PoolDraining, PoolInUse, PoolMode, UnknownPool


@pytest.mark.req("DEC-011")
@pytest.mark.req("CON-002")
def test_the_built_in_limits_are_the_stated_ones() -> None:
    limits = {pool.name: pool.slots for pool in BUILT_IN_POOLS}

    assert limits == {"default": 1, "graphs": 16, "flows": 16, "webhooks": 32, "ollama": 1}
    assert DEFAULT_POOL == "default"
    assert all(pool.mode is PoolMode.OPEN and pool.prefetch == 0 for pool in BUILT_IN_POOLS)


@pytest.mark.req("CON-002")
@pytest.mark.parametrize(
    ("used", "tickets", "mode", "has_room"),
    [
        (0, 0, PoolMode.OPEN, True),
        (1, 0, PoolMode.OPEN, True),
        (2, 0, PoolMode.OPEN, False),
        (1, 1, PoolMode.OPEN, False),
        (3, 0, PoolMode.OPEN, False),
        (0, 0, PoolMode.PAUSED, False),
        (0, 0, PoolMode.DRAINING, True),
    ],
)
def test_there_is_room_beside_what_runs_and_what_waits_with_a_ticket(
    used: int, tickets: int, mode: PoolMode, has_room: bool
) -> None:
    pool = Pool(name=PoolName("p"), slots=2, mode=mode, used=used, tickets=tickets)

    assert pool.has_room is has_room


@pytest.mark.req("DEC-011", error=True)
@pytest.mark.parametrize(
    "bad",
    [
        {"name": "Upper"},
        {"slots": -1},
        {"slots": 1_000_001},
        {"slots": True},
        {"prefetch": -1},
        {"prefetch": 1_001},
        {"ageing_ms": 0},
        {"ageing_ms": 86_400_001},
    ],
)
def test_a_pool_without_sense_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        Pool(**{"name": "fine", "slots": 1, **bad})  # type: ignore[arg-type]


@pytest.mark.req("CON-002", error=True)
def test_refusals_belong_to_their_families_and_name_the_pool() -> None:
    unknown, draining, needed = UnknownPool("p"), PoolDraining("p"), PoolInUse("p")

    assert isinstance(unknown, NotFound)
    assert isinstance(unknown, InvalidInput)
    assert isinstance(draining, Refused)
    assert isinstance(needed, Conflict)
    assert [error.code for error in (unknown, draining, needed)] == ["unknown_pool", "pool_draining", "pool_in_use"]
    assert all("'p'" in str(error) for error in (unknown, draining, needed))


@pytest.mark.req("RISK-01")
def test_a_pool_has_no_limit_per_owner_and_no_ageing_unless_somebody_says_so() -> None:
    assert all(pool.per_owner is None and pool.ageing_ms is None for pool in BUILT_IN_POOLS)
    assert Pool(name=PoolName("p"), slots=2, per_owner=1).per_owner == 1


@pytest.mark.req("RISK-01", error=True)
@pytest.mark.parametrize("per_owner", [0, -1, True, "2", 1_000_001])
def test_a_limit_per_owner_that_is_none_is_refused(per_owner: object) -> None:
    with pytest.raises(InvalidInput, match="per_owner"):
        Pool(name=PoolName("p"), slots=2, per_owner=per_owner)  # type: ignore[arg-type]
