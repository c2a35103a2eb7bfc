"""Timekeepers, workers, an owner and bad luck on one machine: weeks of schedules, decided by one seed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Protocol

from duly.application.audit import EVER, Audit
from duly.application.graph_grants import GraphGrants
from duly.application.jobs import Jobs
from duly.application.places import Places
from duly.application.pools import Pools
from duly.application.schedules import Schedules
from duly.application.sessions import Sessions
from duly.application.tally import Tally
from duly.application.timekeeping import Timekeeping
from duly.domain.decisions import Decision, Fate
from duly.domain.errors import Unavailable
from duly.domain.ids import PoolName
from duly.domain.instants import SECOND, Micros
from duly.domain.openings import MOST_AT_ONCE
from duly.domain.policies import Policies
from duly.domain.pools import Pool
from duly.ports.storage import Storage
from duly.system.prices import TablePrices
from duly.timekeeper.timekeeper import Timekeeper
from duly.worker.worker import Worker
from tests.contracts.laws import LAWS
from tests.seasons import NIGHTS, SCALES, Season
from tests.simulation.ends import check_runs
from tests.simulation.faults import FaultyStorage, Process, Weather
from tests.simulation.handlers import Handlers
from tests.simulation.laws import Journal, LawBroken, check_in_the_end, require
from tests.simulation.machine import Machine, Mutate
from tests.simulation.owner import POOLS, Owner
from tests.simulation.record import Record
from tests.simulation.rhythm import Rhythm
from tests.simulation.watchman import Watchman
from tests.simulation.witness import WatchedStorage

# In seconds of the processes' own time.
STORM = 1_800
CALM = 200
IDLE_WITHIN = 2_000
SHORT_AND_LONG = (1, 5, 20, 45, 90, 200, 500)
CLOCK_ERRORS = (0, 0, -600, -90, -5, 5, 90, 600)
STEADY_CLOCK = (0,)

KEEPERS = ("keeper 0", "keeper 1")
WORKERS = ("worker 0", "worker 1")


class Body(Protocol):
    async def run(self) -> None: ...


@dataclass(slots=True)
class Living:
    process: Process
    back_at: float = 0.0


class ScheduleWorld(Machine):
    def __init__(self, seed: int, *, mutate: Mutate | None = None) -> None:
        random = Random(seed)
        self.season = Season(NIGHTS[seed // 10 % len(NIGHTS)], SCALES[seed % len(SCALES)])
        self.rhythm = Rhythm(
            self.season.scale,
            most_at_once=random.choice([3, 10, 100]),
            most_caught_up=random.choice([2, 10, 100]),
        )
        start = self.season.night.second - random.randrange(200, 1_600) * self.season.scale
        super().__init__(random, mutate=mutate, start=start * SECOND + random.randrange(SECOND))
        self.weather = Weather(
            crash=random.choice([0, 0.0005, 0.003]),
            unavailable=random.choice([0, 0.02, 0.1]),
            answer_lost=random.choice([0, 0.02, 0.1]),
            rerun=random.choice([0, 0.1]),
            hint_lost=random.choice([0, 0.3, 1.0]),
            slow=random.choice([0, 0.1, 0.4]),
        )
        self._clock_errors = CLOCK_ERRORS if random.random() < 0.7 else STEADY_CLOCK
        self.journal = Journal()
        self.watchman = Watchman(beat=self.rhythm.beat, outage_after=self.rhythm.pace.outage_after)
        self.living: dict[str, Living] = {}
        self._starts: dict[str, Callable[[Process], Body]] = {
            **dict.fromkeys(KEEPERS, self._timekeeper),
            **dict.fromkeys(WORKERS, self._worker),
            "owner": self._owning,
        }
        self._suspended_until = 0.0
        self._down_until = 0.0
        self.is_storming = True
        self._was_set_back = False

    def run(self) -> None:
        with self.rhythm.kept():
            super().run()

    async def _live(self) -> None:
        self.record = Record(
            self.database,
            outage_after=self.rhythm.pace.outage_after,
            note=self.note,
            elapsed=self.clock.elapsed,
        )
        for name, slots in POOLS.items():
            await Pools(self.storage).define(Pool(name=PoolName(name), slots=slots))
        nursing = asyncio.ensure_future(self._nurse())
        watching = asyncio.ensure_future(self._watch())
        await self._storm()
        self._heal()
        await self.rest(CALM)
        if not self.broken:
            await self._end_well()
        nursing.cancel()
        watching.cancel()

    async def _end_well(self) -> None:
        """Liveness: without faults whatever is due gets decided, and all work comes to an end."""
        self._check_promptness()
        self.living["owner"].process.kill()
        owner = self._owner(self._watched("the end"))
        await owner.open_pools()
        await owner.pause_all()
        for _ in range(IDLE_WITHIN):
            await self.rest(1)
            if self.broken or not self._is_anything_left():
                return

    def _is_anything_left(self) -> bool:
        left = "SELECT 1 FROM jobs UNION ALL SELECT 1 FROM schedule_arrears UNION ALL SELECT 1 FROM revocations"
        return bool(list(self.database.execute(left)))

    async def _judge(self) -> None:
        self._check_tables()
        check_in_the_end(self.database, self.journal)
        for life in self.record.lives.values():
            undecided = life.undecided(self.season.end)
            require(not undecided, f"{life.id}: {undecided[:5]} were lost")
            require(not life.owed, f"{life.id} still owes {list(life.owed)[:5]}")
        # Places are given by the clock. Two timekeepers of which one saw it set back give them in another order; so do
        # two that share the slots of one instant, because these are too many for one transaction.
        in_order = not self._was_set_back and self.rhythm.most_at_once == MOST_AT_ONCE
        check_runs(self.database, self.journal, self.record.lives, in_order=in_order)
        await self._audit()

    async def _audit(self) -> None:
        """What people are told by `duly audit` must be what the simulation knows."""
        audit = Audit(storage=self.storage, outage_after=self.rhythm.pace.outage_after, grace=self.rhythm.micros(60))
        async for verdict in audit.verdicts(since=EVER):
            found = [str(finding) for finding in verdict.findings.kept]
            require(not found, f"the audit of {verdict.schedule.id} finds: {'; '.join(found[:3])}")
            due = len(self.record.lives[verdict.schedule.id].planned(0, self.season.end))
            require(verdict.equation.due == due, f"the audit of {verdict.schedule.id}: {verdict.equation}, not {due}")

    def break_law(self, broken: LawBroken) -> None:
        """Nobody goes on: some laws keep processes from going round in circles."""
        super().break_law(broken)
        for living in self.living.values():
            living.process.kill()

    # Processes

    def _start(self, name: str) -> None:
        process = Process(name)
        self.living[name] = Living(process)
        process.spawn(self._observed(name, self._starts[name](process)))
        self._glimpse(name)

    async def _observed(self, name: str, body: Body) -> None:
        try:
            await body.run()
        except LawBroken as broken:
            self.break_law(broken)
        except Exception as error:
            self.break_law(LawBroken(f"{name} fell over: {error!r}"))
            raise

    def _storage_of(self, process: Process) -> FaultyStorage:
        return FaultyStorage(
            self._watched(process.name),
            process,
            weather=self.weather,
            random=self.random,
            trace=self.note,
            after_commit=lambda: None,
            slowest=self.rhythm.micros(0.5),
        )

    def _watched(self, name: str) -> WatchedStorage:
        def saw(called: set[str]) -> None:
            known = set(self.record.spans)
            try:
                self.record.saw(called)
            except LawBroken as broken:
                self.break_law(LawBroken(f"{name}: {broken}"))
            if "keep_alive" in called:
                self.watchman.touch(self.clock.now())
                # Whoever is no timekeeper is there only when it reads the clock, which may be long before it says so.
                for span in set(self.record.spans) - known if name not in KEEPERS else ():
                    self.watchman.touch(span[1])
                # One that tells much later what time it was looks like one whose clock was set back.
                if len(self.record.spans) > len(known) and self.record.spans[-1] in known:
                    self.watchman.clock_was_set()

        return WatchedStorage(self.storage, saw)

    def _timekeeper(self, process: Process) -> Timekeeper:
        keeping = Timekeeping(self._storage_of(process), self.dice, Places(), self.rhythm.pace)
        return Timekeeper(keeping, telemetry=_Suspicious(self))

    def _worker(self, process: Process) -> Worker:
        storage = self._storage_of(process)
        return Worker(
            jobs=Jobs(storage, self.dice, Places()),
            sessions=Sessions(storage, self.dice),
            handlers=Handlers(self, process).by_kind(),
            pools={PoolName(pool): self.random.randint(1, 3) for pool in POOLS},
            prefetch={PoolName("wide"): self.random.choice([0, 2])},
            name=process.name,
            lease=self.rhythm.lease,
            grace=self.rhythm.micros(5),
        )

    def _owning(self, process: Process) -> "_Owning":
        return _Owning(self, self._owner(self._storage_of(process)))

    def _owner(self, storage: Storage) -> Owner:
        return Owner(
            schedules=Schedules(
                storage,
                self.dice,
                Places(),
                self.rhythm.pace,
                GraphGrants(self.dice, TablePrices()),
                Policies(),
                _Suspicious(self),
            ),
            jobs=Jobs(storage, self.dice, Places()),
            pools=Pools(storage),
            record=self.record,
            random=self.random,
            rhythm=self.rhythm,
            season=self.season,
        )

    # Bad luck, and its end

    async def _storm(self) -> None:
        while self._elapsed() < STORM and not self.broken:
            await self.rest(self.random.choice([3, 15, 40, 90]) * self.random.random())
            self._strike()
        self.is_storming = False

    def _strike(self) -> None:
        lasting = self.random.choice(SHORT_AND_LONG) * self.random.uniform(0.5, 1.3)
        someone = self.random.choice([name for name, living in self.living.items() if living.process.alive] or [""])
        match self.random.randrange(10):
            case 0 if someone:
                self._kill(someone, lasting)
            case 1:
                for name in KEEPERS:
                    self._kill(name, lasting)
            case 2 if someone:
                self.note(f"{someone} is suspended for {lasting}")
                self.living[someone].process.suspend()
                self._glimpse(someone)
                self._suspended_until = self._elapsed() + lasting
            case 3:
                error = self.random.choice(self._clock_errors)
                self.note(f"the clock is set: {error}")
                before = self.clock.now()
                self.clock.set_off_by(self.rhythm.micros(error))
                self._was_set_back |= self.clock.now() < before
                self.watchman.clock_was_set()
            case 4:
                self.note(f"the machine sleeps for {lasting}")
                self.clock.sleep_machine(self.rhythm.micros(lasting))
            case 5:
                self.note(f"the store is down for {lasting}")
                self.weather.down = True
                self._down_until = self._elapsed() + lasting
            case 6 if self.random.random() < 0.3:
                for name in self.living:
                    self._kill(name, lasting)
                self.clock.reboot()
            case _:
                pass

    def _kill(self, name: str, lasting: float) -> None:
        living = self.living.get(name)
        if living is not None and living.process.alive:
            self.note(f"{name} is killed, for {lasting}")
            self.journal.kills += 1
            living.process.kill()
            living.back_at = self._elapsed() + lasting
            self._glimpse(name)

    def _glimpse(self, name: str) -> None:
        """It was there for a moment at least, perhaps for no longer: it may have read the clock, and may yet say so."""
        if name in KEEPERS:
            self.watchman.touch(self.clock.now())

    def _heal(self) -> None:
        super()._heal()
        self.watchman.clock_was_set()
        self._suspended_until = self._down_until = 0
        for living in self.living.values():
            living.process.resume()
            living.back_at = 0

    async def _nurse(self) -> None:
        """Brings back what was long enough away; whoever died by itself comes back soon."""
        while not self.broken:
            if self._elapsed() >= self._down_until:
                self.weather.down = False
            for name in self._starts:
                living = self.living.get(name)
                if living is None or (not living.process.alive and self._elapsed() >= living.back_at):
                    self._start(name)
                elif self._elapsed() >= self._suspended_until:
                    living.process.resume()
            await self.rest(self.random.uniform(0.5, 4))

    async def _watch(self) -> None:
        for look in count():
            await self.rest(2.5)
            if self.broken:
                return
            try:
                self.watchman.look(
                    now=self.clock.now(),
                    elapsed=self.clock.elapsed(),
                    is_anybody_there=self._is_time_kept(),
                    spans=self.record.spans,
                )
                if self.watchman.is_steady:
                    self._check_promptness()
                if look % 8 == 0:
                    self._check_tables()
            except LawBroken as broken:
                self.break_law(broken)

    def _check_promptness(self) -> None:
        """Whatever else there is to catch up with, a slot is opened soon after it fires.

        A change may come so late that some fired long ago when it is made.
        """
        for life in self.record.lives.values():
            if life.is_there and self.clock.elapsed() - life.changed_at > 3 * self.rhythm.beat:
                late = life.now.policies.jitter_ms * 1_000 + 3 * self.rhythm.beat
                undecided = life.planned(life.through, (self.clock.now() - late) // SECOND)
                require(not undecided, f"{life.id}: {undecided[:5]} are due, time is kept, and nobody opens them")

    def _check_tables(self) -> None:
        for law, sql in LAWS.items():
            require(not list(self.database.execute(sql)), law)

    def _is_time_kept(self) -> bool:
        keepers = [self.living[name].process for name in KEEPERS if name in self.living]
        return not self.weather.down and any(one.alive and not one.is_suspended for one in keepers)

    def _elapsed(self) -> float:
        return self.clock.elapsed() / self.rhythm.micros(1)

    async def rest(self, seconds: float) -> None:
        await self.clock.sleep(Micros(self.rhythm.micros(seconds)))

    def _kill_everyone(self) -> None:
        for living in self.living.values():
            living.process.alive = False
            living.process.resume()


class _Owning:
    """An owner's day."""

    def __init__(self, world: ScheduleWorld, owner: Owner) -> None:
        self._world = world
        self._owner = owner

    async def run(self) -> None:
        while self._world.is_storming:
            await self._world.rest(self._world.random.choice([1, 10, 30]) * self._world.random.random())
            await self._owner.act()


class _Suspicious(Tally):
    """Nothing may fail but the store, and no schedule may break."""

    def __init__(self, world: ScheduleWorld) -> None:
        super().__init__(say=self._hear)
        self._world = world

    def _hear(self, decision: Decision) -> None:
        if decision.fate is Fate.BROKEN:
            self._world.break_law(LawBroken(f"{decision.schedule_id} broke: {decision.detail}"))

    def failed(self, what: str, error: Exception) -> None:
        if not isinstance(error, Unavailable):
            self._world.break_law(LawBroken(f"failed to {what}: {error!r}"))
