"""Plays on a store what owners, workers, time and bad luck may do, in words that a model can be asked the same in."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from duly.application.audit import Audit
from duly.bootstrap import Queue
from duly.domain.audit import Law
from duly.domain.errors import DulyError
from duly.domain.instants import SECOND, Micros
from duly.domain.policies import CatchUp, Overlap, Policies
from duly.domain.schedules import Target
from duly.domain.sessions import ClaimedJob
from duly.settings import Settings
from tests.contracts.clocks import MORNING
from tests.contracts.schedule_model import MOST_BACKFILLED, OUTAGE_AFTER, Plan
from tests.contracts.world import WIDE, Hand, World

OWNER = "ann"

RunKey = tuple[str, int, str]


class Player:
    """`begin` opens the store, with its clock at an instant."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.claims: dict[RunKey, ClaimedJob] = {}
        self._boots = 0

    async def begin(self, now: int) -> None:
        self.world.clock.step((now - MORNING) / SECOND)
        await self.world.open()
        settings = Settings(database_url=self.world.place, outage_after_ms=OUTAGE_AFTER // 1_000)
        self.queue = Queue.on(self.world.queue.storage, self.world.dice, settings)
        self.restart()
        self.hand = await self._new_hand()

    # Owners

    async def create(self, name: str, plan: Plan) -> Any:
        schedules = self.queue.schedules
        return await _answer(lambda: schedules.create(schedule_id=name, owner=OWNER, target=_target(), **_asked(plan)))

    async def edit(self, name: str, plan: Plan, *, withdraw: bool) -> Any:
        return await _answer(
            lambda: self.queue.schedules.edit(name, owner=OWNER, withdraw=withdraw, **_asked(plan)),
        )

    async def set_state(self, name: str, state: str, *, withdraw: bool) -> Any:
        schedules = self.queue.schedules
        if state == "active":
            return await _answer(lambda: schedules.resume(name, owner=OWNER))
        change = schedules.pause if state == "paused" else schedules.delete
        return await _answer(lambda: change(name, owner=OWNER, withdraw=withdraw))

    async def run_now(self, name: str, key: str) -> Any:
        answer = await _answer(lambda: self.queue.schedules.run_now(name, owner=OWNER, key=key))
        return answer if isinstance(answer, str) else answer.scheduled_for // SECOND

    async def backfill(self, name: str, seconds: int, key: str) -> Any:
        end = datetime.fromtimestamp(self.world.clock.now() // SECOND, UTC)
        start = end - timedelta(seconds=seconds)
        backfill = self.queue.schedules.backfill
        answer = await _answer(
            lambda: backfill(name, owner=OWNER, start=start, end=end, cap=MOST_BACKFILLED, key=key),
        )
        return answer if isinstance(answer, str) else [run.scheduled_for // SECOND for run in answer]

    # Time

    async def beat(self) -> None:
        await self.queue.timekeeping.keep_alive()

    async def tick(self) -> None:
        await self.keeper.tick()

    async def advance(self, micros: int) -> None:
        """Time passes; the worker beats, whatever the timekeeper does."""
        self.world.clock.advance(micros=micros)
        await self.queue.sessions.beat(self.hand.session)

    def step(self, micros: int) -> None:
        self.world.clock.step(micros / SECOND)

    def restart(self) -> None:
        """The timekeeper dies, and another one takes over, knowing nothing."""
        self.keeper = self.queue.timekeeper()

    # Workers

    async def claim(self) -> list[RunKey]:
        claimed = await self.hand.claim(1_000)
        keys = await self._keys()
        found = {keys[str(job.ledger_run)]: job for job in claimed}
        self.claims |= found
        return sorted(found)

    async def finish(self, run: RunKey, *, succeeds: bool) -> bool:
        job = self.claims.pop(run)
        exchange = await (self.hand.finish if succeeds else self.hand.fail)(job)
        return not exchange.stale

    async def lose_worker(self) -> None:
        """It dies, somebody takes over, and another one comes."""
        await self.queue.sessions.close(self.hand.session)
        self.claims.clear()
        self.hand = await self._new_hand()

    async def reboot(self) -> None:
        """Everybody dies, and others come: they find that whoever was there before is gone."""
        self._boots += 1
        self.world.clock.reboot(f"boot {self._boots}")
        self.restart()
        await self.queue.sessions.rescue_expired()
        self.claims.clear()
        self.hand = await self._new_hand()

    async def _new_hand(self) -> Hand:
        return await self.world.hand(lease=Micros(24 * 3_600 * SECOND))

    async def _keys(self) -> dict[str, RunKey]:
        rows = await self.world.rows("SELECT id, schedule_id, scheduled_for, own_key FROM schedule_runs")
        return {run: (schedule, slot // SECOND, own_key) for run, schedule, slot, own_key in rows}

    # What a test looks at

    async def rows(self) -> dict[RunKey, tuple[str, str | None, int]]:
        found = await self.world.rows(
            "SELECT schedule_id, scheduled_for, own_key, status, reason, revision FROM schedule_runs"
        )
        rows = {(name, slot // SECOND, own_key): tuple(rest) for name, slot, own_key, *rest in found}
        assert len(rows) == len(found), "a slot or a key has two rows"
        return rows

    async def states(self) -> dict[str, tuple[str, int, int]]:
        found = await self.world.rows("SELECT id, state, revision, opened_through FROM schedules")
        return {name: (state, revision, through // SECOND) for name, state, revision, through in found}

    async def revisions(self) -> dict[str, list[tuple[int, str]]]:
        """From when each was in force, and in which state, first to last."""
        found = await self.world.rows(
            "SELECT schedule_id, effective_from, state FROM schedule_revisions ORDER BY schedule_id, number"
        )
        revisions: dict[str, list[tuple[int, str]]] = {}
        for name, effective_from, state in found:
            revisions.setdefault(name, []).append((effective_from // SECOND, state))
        return revisions

    async def next_slots(self) -> dict[str, int | None]:
        found = await self.world.rows("SELECT id, next_run_at FROM schedules")
        return {name: None if slot is None else slot // SECOND for name, slot in found}

    async def gaps(self) -> list[tuple[str, int, int, int, str]]:
        """Schedule, first and last second, count and reason."""
        found = await self.world.rows("SELECT schedule_id, first_slot, last_slot, slots, reason FROM schedule_gaps")
        return sorted((name, first // SECOND, last // SECOND, slots, why) for name, first, last, slots, why in found)

    async def owed(self) -> list[tuple[str, int, int, int]]:
        found = await self.world.rows("SELECT schedule_id, next_slot, last_slot, slots FROM schedule_arrears")
        return sorted((name, first // SECOND, last // SECOND, slots) for name, first, last, slots in found)

    async def findings(self) -> list[str]:
        """What an audit finds, apart from what is stuck: the worker is a test's own, and may stop where it likes."""
        audit = Audit(storage=self.queue.storage, outage_after=Micros(OUTAGE_AFTER))
        return [
            f"{verdict.schedule.id}: {finding}"
            async for verdict in audit.verdicts()
            for finding in verdict.findings.kept
            if finding.law is not Law.STUCK
        ]

    async def spans(self) -> list[tuple[int, int]]:
        return sorted(await self.world.rows("SELECT started_at, alive_at FROM coverage"))


def _target() -> Target:
    return Target(kind="report", pool=WIDE)


def _asked(plan: Plan) -> dict[str, Any]:
    policies = Policies(
        overlap=Overlap(plan.overlap), catch_up=CatchUp(plan.catch_up), catch_up_cap=plan.cap, jitter_ms=0
    )
    return {"cadence": plan.timetable.cadence(), "policies": policies}


async def _answer(ask: Callable[[], Awaitable[Any]]) -> Any:
    """What was answered, or the code of the refusal."""
    try:
        return await ask()
    except DulyError as refusal:
        return refusal.code
