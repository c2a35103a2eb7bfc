"""When a timekeeper has to wake, on a database in memory."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from duly import every
from duly.application.openings import Opened
from duly.bootstrap import Queue, Settings
from duly.domain.instants import SECOND
from duly.domain.schedules import Target
from duly.ports.ledger import Agenda


def on_a_queue(scenario: Callable[[Queue], Awaitable[None]]) -> None:
    async def run() -> None:
        queue = await Queue.open(Settings(database_url=":memory:"))
        try:
            await scenario(queue)
        finally:
            await queue.close()

    asyncio.run(run())


@pytest.mark.req("FLOW-01")
def test_with_nothing_planned_there_is_nothing_to_wake_for_and_nothing_to_open() -> None:
    async def scenario(queue: Queue) -> None:
        assert await queue.timekeeping.agenda() == Agenda(None, None, None)
        assert await queue.timekeeping.open_due() == Opened()

    on_a_queue(scenario)


@pytest.mark.req("FLOW-01")
def test_the_earliest_fire_of_all_schedules_is_what_to_wake_for() -> None:
    async def scenario(queue: Queue) -> None:
        fires = []
        for minutes in (50, 20, 40):
            made = await queue.schedules.create(owner="ann", cadence=every(f"{minutes}m"), target=Target(kind="work"))
            fires.append(made.fire_at)

        agenda = await queue.timekeeping.agenda()

        assert agenda.fire_at == min(fire for fire in fires if fire is not None)
        assert agenda.fire_at > queue.storage.clock.now() - SECOND

    on_a_queue(scenario)
