"""Any sequence of what owners, workers, timekeepers, time and bad luck may do, against a model of plain dicts."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests import brute_force
from tests.contracts.model import Refusal
from tests.contracts.schedule_model import SECOND, Model, Plan
from tests.contracts.schedule_player import Player
from tests.contracts.shared_postgres import SharedPostgres
from tests.contracts.world import World
from tests.seasons import Night, Season, Timetable

# 1 at every commit; nightly runs say more, and then draw anew each time.
EFFORT = int(os.environ.get("DULY_TEST_EFFORT", "1"))

MINUTE = 60
SEASON = Season(Night("Europe/Berlin", brute_force.epoch(2026, 3, 29, 1), 2), 60)
START = SEASON.night.second - 3 * 3_600

NAMES = st.sampled_from(["a", "b"])
KEYS = st.sampled_from(["k", "l"])
INDEX = st.integers(0, 10_000)
TIMETABLES = st.one_of(
    st.builds(
        Timetable,
        season=st.just(SEASON),
        expr=st.sampled_from(SEASON.expressions),
        tz=st.sampled_from(["Europe/Berlin", "UTC"]),
        last=st.sampled_from([None, None, None, START + 6 * 3_600]),
    ),
    st.builds(
        Timetable,
        season=st.just(SEASON),
        every=st.sampled_from([7 * MINUTE, 20 * MINUTE, 90 * MINUTE]),
        anchor=st.sampled_from([START, START + 61, START + 3_600]),
        first=st.sampled_from([None, None, START + 2 * 3_600]),
    ),
    st.builds(Timetable, season=st.just(SEASON), once=st.integers(1, 8).map(lambda hours: START + hours * 3_600)),
)
PLANS = st.builds(
    Plan,
    TIMETABLES,
    st.sampled_from(["allow", "skip", "queue", "queue_one", "replace"]),
    st.sampled_from(["none", "fire_immediately", "spread"]),
    st.sampled_from([1, 3, 1_000]),
)


class SchedulesAgainstModel(RuleBasedStateMachine):
    def __init__(self, store: str, place: str) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.player = Player(World(store, place))
        self.model = Model(START * SECOND)
        self.began = False

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    @initialize(plan=PLANS)
    def begin(self, plan: Plan) -> None:
        self.run(self.player.begin(START * SECOND))
        self.began = True
        self.create("a", plan)

    def teardown(self) -> None:
        if self.began:
            self.tick()
            self.agrees()
            self.run(self.player.world.keeps_the_laws())
            assert self.run(self.player.findings()) == []
        self.run(self.player.world.close())
        self.runner.close()

    # Owners

    @rule(name=NAMES, plan=PLANS)
    def create(self, name: str, plan: Plan) -> None:
        self._same(lambda: self.model.create(name, plan), self.player.create(name, plan))

    @rule(name=NAMES, plan=PLANS, withdraw=st.booleans())
    def edit(self, name: str, plan: Plan, withdraw: bool) -> None:
        self._same(
            lambda: self.model.edit(name, plan, withdraw=withdraw), self.player.edit(name, plan, withdraw=withdraw)
        )

    @rule(name=NAMES, state=st.sampled_from(["active", "active", "paused", "deleted"]), withdraw=st.booleans())
    def set_state(self, name: str, state: str, withdraw: bool) -> None:
        withdraw = withdraw and state != "active"
        self._same(
            lambda: self.model.set_state(name, state, withdraw=withdraw),
            self.player.set_state(name, state, withdraw=withdraw),
        )

    @rule(name=NAMES, key=KEYS)
    def run_now(self, name: str, key: str) -> None:
        self._same(lambda: self.model.run_now(name, key), self.player.run_now(name, key))

    @rule(name=NAMES, key=KEYS, seconds=st.sampled_from([0, 20 * MINUTE, 3 * 3_600]))
    def backfill(self, name: str, key: str, seconds: int) -> None:
        self._same(lambda: self.model.backfill(name, seconds, key), self.player.backfill(name, seconds, key))

    # Time

    @rule(minutes=st.sampled_from([1, 7, 20, 59]))
    def keep_time(self, minutes: int) -> None:
        self._pass(minutes * MINUTE * SECOND)
        self.beat()
        self.tick()

    @rule(minutes=st.sampled_from([10, 45, 61, 200]))
    def nobody_keeps_time(self, minutes: int) -> None:
        self._pass(minutes * MINUTE * SECOND)

    @rule(seconds=st.sampled_from([1, 29, 40]))
    def let_seconds_pass(self, seconds: int) -> None:
        self._pass(seconds * SECOND)

    @rule()
    def beat(self) -> None:
        self.run(self.player.beat())
        self.model.beat()

    @rule()
    def tick(self) -> None:
        self.run(self.player.tick())
        self.model.tick()

    @rule(minutes=st.sampled_from([-200, -61, -5, 5, 61, 200]))
    def set_the_clock(self, minutes: int) -> None:
        self.player.step(minutes * MINUTE * SECOND)
        self.model.advance(minutes * MINUTE * SECOND)

    @rule()
    def lose_the_timekeeper(self) -> None:
        self.player.restart()

    # Workers

    @rule()
    def claim(self) -> None:
        assert self.run(self.player.claim()) == self.model.claim()

    @precondition(lambda self: self.model.running())
    @rule(one=INDEX, succeeds=st.booleans())
    def finish(self, one: int, succeeds: bool) -> None:
        running = self.model.running()
        run = running[one % len(running)]
        assert self.run(self.player.finish((run.schedule, run.slot, run.own_key), succeeds=succeeds))
        self.model.finish(run, succeeds=succeeds)

    @rule()
    def lose_the_worker(self) -> None:
        self.run(self.player.lose_worker())
        self.model.lose_worker()

    @rule()
    def reboot(self) -> None:
        self.run(self.player.reboot())
        self.model.lose_worker()

    def _pass(self, micros: int) -> None:
        self.run(self.player.advance(micros))
        self.model.advance(micros)

    # What must be the same

    @invariant()
    def agrees(self) -> None:
        if self.began:
            self.run(self._agree())

    async def _agree(self) -> None:
        player, model = self.player, self.model
        assert await player.spans() == model.spans
        assert await player.states() == model.states()
        assert await player.revisions() == model.revisions()
        assert await player.rows() == model.rows()
        assert await player.next_slots() == {name: model.next_slot(name) for name in model.schedules}
        self._agree_about_gaps(await player.gaps())
        self._agree_about_owed(await player.owed())

    def _agree_about_gaps(self, gaps: list[tuple[str, int, int, int, str]]) -> None:
        for name, first, last, slots, reason in gaps:
            missed = self.model.schedules[name].gaps
            assert [why for slot, why in missed.items() if first <= slot <= last] == [reason] * slots
        for name, schedule in self.model.schedules.items():
            assert sum(gap[3] for gap in gaps if gap[0] == name) == len(schedule.gaps)

    def _agree_about_owed(self, owed: list[tuple[str, int, int, int]]) -> None:
        for name, first, last, slots in owed:
            assert len([slot for slot in self.model.owed(name) if first <= slot <= last]) == slots
        for name in self.model.schedules:
            assert sum(one[3] for one in owed if one[0] == name) == len(self.model.owed(name))

    def _same(self, expected: Callable[[], Any], real: Coroutine[Any, Any, Any]) -> None:
        """Both refuse for the same reason, or both answer; what a change answers is compared with everything else."""
        try:
            answer = expected()
        except Refusal as refusal:
            answer = str(refusal)
        answered = self.run(real)
        assert (answered if answer is not None or isinstance(answered, str) else None) == answer


@pytest.mark.req("GRAPH-10")
@pytest.mark.req("CRON-03")
@pytest.mark.req("CRON-04")
@pytest.mark.req("DEC-010")
@pytest.mark.req("RISK-04")
@pytest.mark.req("OWN-06")
def test_schedules_do_what_their_model_does(store: str, request: pytest.FixtureRequest) -> None:
    shared: SharedPostgres | None = request.getfixturevalue("shared_postgres") if store == "postgres" else None

    def machine() -> SchedulesAgainstModel:
        if shared is None:
            return SchedulesAgainstModel(store, ":memory:")
        shared.empty()
        return SchedulesAgainstModel(store, shared.url)

    run_state_machine_as_test(
        machine,  # type: ignore[arg-type]  # any factory will do
        settings=settings(
            max_examples=(80 if store == "sqlite" else 8) * EFFORT,
            stateful_step_count=40,
            deadline=None,
            database=None,
            derandomize=EFFORT == 1,
            suppress_health_check=list(HealthCheck),
        ),
    )
