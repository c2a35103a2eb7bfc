"""The queue under every kind of bad luck, a thousand seeds of it."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace

import apsw
import pytest

from duly.storage.statements import Statement
from tests.simulation.laws import LawBroken
from tests.simulation.machine import Mutate
from tests.simulation.world import World

SEEDS = int(os.environ.get("DULY_SEEDS", "1000"))
BATCH = 50


def _batches() -> Iterator[range]:
    for first in range(0, SEEDS, BATCH):
        yield range(first, min(first + BATCH, SEEDS))


@pytest.mark.parametrize("seeds", list(_batches()), ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_the_laws_hold_whatever_happens(seeds: range) -> None:
    for seed in seeds:
        world = World(seed)
        try:
            world.run()
        except LawBroken as broken:
            raise AssertionError(f"seed {seed}: {broken}") from broken


def test_the_same_seed_gives_the_same_trace() -> None:
    for seed in range(5):
        traces = []
        for _ in range(2):
            world = World(seed)
            world.run()
            traces.append(world.trace)

        assert traces[0] == traces[1]
        assert len(traces[0]) > 100


# A guard that nobody misses proves nothing: each is taken away in turn, and the laws must notice.


def _without_fencing(statements: dict[str, Statement], database: apsw.Connection) -> None:
    for name in ("record_finished", "finish", "record_alike", "finish_alike"):
        _rewrite(statements, name, r"AND \+?session = (\?\d+) AND token = (\?\d+)", r"AND \1 IS NOT \2")


def _without_pool_limits(statements: dict[str, Statement], database: apsw.Connection) -> None:
    _rewrite(statements, "claim", r"min\((\?\d+), slots - used - tickets\)", r"\1")


def _without_the_lane_index(statements: dict[str, Statement], database: apsw.Connection) -> None:
    database.execute("DROP INDEX jobs_one_head_per_lane")


def _without_promotion(statements: dict[str, Statement], database: apsw.Connection) -> None:
    _rewrite(statements, "promote", r"LIMIT 1", "LIMIT 0")


def _without_rescue(statements: dict[str, Statement], database: apsw.Connection) -> None:
    _rewrite(statements, "expired_sessions", r"LIMIT (\?\d+)", r"LIMIT 0 * \1")


def _without_absorbing(statements: dict[str, Statement], database: apsw.Connection) -> None:
    _rewrite(statements, "has_arrivals", r"EXISTS \(.*\)", "0")


def _without_forgetting_arrivals(statements: dict[str, Statement], database: apsw.Connection) -> None:
    _rewrite(statements, "forget_arrivals", "$", " WHERE false")


def _rewrite(statements: dict[str, Statement], name: str, pattern: str, text: str) -> None:
    sql, count = re.subn(pattern, text, statements[name].sql)
    assert count, f"{name} has no {pattern}"
    statements[name] = replace(statements[name], sql=sql)


@pytest.mark.parametrize(
    "mutate",
    [
        _without_fencing,
        _without_pool_limits,
        _without_the_lane_index,
        _without_promotion,
        _without_rescue,
        _without_absorbing,
        _without_forgetting_arrivals,
    ],
    ids=lambda mutate: mutate.__name__.strip("_"),
)
def test_a_missing_guard_is_noticed(mutate: Mutate) -> None:
    for seed in range(200):
        try:
            World(seed, mutate=mutate).run()
        except LawBroken:
            return
    pytest.fail("200 seeds saw nothing")
