"""The queue under every kind of bad luck, a thousand seeds of it."""

import os
from collections.abc import Iterator

import pytest

from tests.simulation.laws import LawBroken
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
