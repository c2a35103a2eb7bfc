"""What worker processes do: hold a session, exchange ended runs for new jobs, take over from the dead."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from duly.application.stopping import is_cancelled
from duly.domain.executions import Execution, ExecutionStatus
from duly.domain.ids import JobId, PoolName, SessionId, Token
from duly.domain.instants import SECOND, Instant, Micros
from duly.domain.jobs import JobState, JobStatus
from duly.domain.reviews import BACKSTOP
from duly.domain.sessions import LEASE, Beat, ClaimedJob, Exchange, Report, Rescue, Session, Wanted, warning_about
from duly.ports.dice import Dice
from duly.ports.storage import Storage, Transaction

RESCUE_BATCH = 500


@dataclass(frozen=True, slots=True)
class Sessions:
    storage: Storage
    dice: Dice

    async def open(
        self, *, name: str, capacity: int = 1, lease: Micros = LEASE, kinds: Sequence[str] | None = None
    ) -> Session:
        told = None if kinds is None else tuple(sorted(kinds))
        session = Session(id=SessionId(self.dice.new_id("ses")), name=name, capacity=capacity, lease=lease, kinds=told)
        clock = self.storage.clock
        era, lease_now, now = clock.era, clock.lease_now(), clock.now()

        async def work(tx: Transaction) -> Session:
            await tx.sessions.open(session, era=era, lease_now=lease_now, now=now)
            return session

        return await self.storage.transact(work)

    async def warning_about(self, kind: str) -> str | None:
        """What to tell whoever asks for a kind that no live session has a handler for."""
        return warning_about(kind, await self.live_kinds())

    async def live_kinds(self) -> frozenset[str] | None:
        """The kinds that live sessions have handlers for; None if one of them did not say."""
        clock = self.storage.clock
        era, lease_now = clock.era, clock.lease_now()

        async def work(tx: Transaction) -> frozenset[str] | None:
            return await tx.sessions.live_kinds(era=era, lease_now=lease_now)

        return await self.storage.read(work)

    async def beat(self, session: SessionId) -> Beat:
        """Renews the lease, or raises SessionLost."""
        clock = self.storage.clock
        era, lease_now, now = clock.era, clock.lease_now(), clock.now()

        async def work(tx: Transaction) -> Beat:
            return await tx.sessions.beat(session, era=era, lease_now=lease_now, now=now)

        # Apart from the beat: it locks pools, and a claim that has this session's row may wait for those.
        await self.storage.transact(_unpark)
        return await self.storage.transact(work)

    async def exchange(
        self,
        session: SessionId,
        *,
        token: Token,
        reports: Sequence[Report] = (),
        starting: Sequence[ClaimedJob] = (),
        wanted: Mapping[PoolName, Wanted],
        again: bool = False,
    ) -> Exchange:
        """Records the runs that ended and hands out the next jobs, in one commit.

        `token` is fresh for each exchange of the session; repeat it, with `again`, only when an answer was lost.
        """
        if not (reports or starting or again or any(want.prefetch for want in wanted.values())):
            return await self._claim(session, token, wanted)
        now = self.storage.clock.now()
        reports = [self._with_retry(report) for report in reports]

        async def work(tx: Transaction) -> Exchange:
            return await tx.sessions.exchange(session, reports, starting, wanted, token=token, now=now, again=again)

        return await self.storage.transact(work)

    async def _claim(self, session: SessionId, token: Token, wanted: Mapping[PoolName, Wanted]) -> Exchange:
        """With nothing to report, a claim is one statement; extra resources and limits per owner take a second look."""
        now = self.storage.clock.now()
        counts = {pool: want.start for pool, want in wanted.items()}

        async def claim(tx: Transaction) -> tuple[Sequence[ClaimedJob], Collection[PoolName]]:
            return await tx.sessions.claim(session, counts, token=token, now=now)

        claimed, by_share = await self.storage.transact(claim, single=True)
        started = {job.id: job for job in claimed if job.state == JobState.RUNNING}
        needing = [job for job in claimed if job.state == JobState.CLAIMED]
        if not needing and not by_share:
            return Exchange(started=list(started.values()))
        shared = {pool: want for pool, want in wanted.items() if pool in by_share}

        async def start(tx: Transaction) -> Sequence[ClaimedJob]:
            begun = (await tx.sessions.exchange(session, (), needing, shared, token=token, now=now)).started
            # Jobs that had to be parked leave their turn to the next.
            parked = Counter(job.pool for job in needing if job.id not in {done.id for done in begun})
            if not parked:
                return begun
            turns = {pool: Wanted(count) for pool, count in parked.items()}
            return [*begun, *(await tx.sessions.exchange(session, (), (), turns, token=token, now=now)).started]

        # By id: run again after a lost answer, it finds all that was claimed under this token.
        started |= {job.id: job for job in await self.storage.transact(start)}
        return Exchange(started=list(started.values()))

    def _with_retry(self, report: Report) -> Report:
        if report.retry_id is not None or report.ending.status is not JobStatus.FAILED:
            return report
        retry_id = JobId(self.dice.new_id("job"))
        return report._replace(retry_id=retry_id, fraction=self.dice.fraction())

    async def give_back(self, session: SessionId, jobs: Sequence[ClaimedJob]) -> None:
        """Returns claims whose handlers were never entered to their places in the order."""
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> None:
            await tx.sessions.give_back(session, jobs, now=now)

        await self.storage.transact(work)

    async def suspend(self, session: SessionId, job: ClaimedJob, execution: str) -> None:
        """A run that waits for reviews or a call-back gives up its claim until then.

        If it waits no longer, it is given back.
        """
        now = self.storage.clock.now()

        async def work(tx: Transaction) -> None:
            # Whoever decides locks the same rows in the same order: either sees what the other did.
            await tx.reviews.lock_asker(job.id)
            found = await tx.executions.lock_run(execution)
            await tx.reviews.attach(execution, job.id)
            if found is None or found.status is not ExecutionStatus.WAITING or found.is_replied:
                await tx.sessions.give_back(session, [job], now=now)
                return
            await tx.sessions.suspend(session, job, until=await _awaited(tx, found, job.id, now), now=now)

        await self.storage.transact(work)

    async def revoke(self, job_id: JobId, *, reason: str) -> bool:
        """Ends a running job as cancelled and voids its token, whatever its worker goes on doing."""
        now = self.storage.clock.now()
        is_revoked = False

        async def work(tx: Transaction) -> bool:
            nonlocal is_revoked
            # An earlier run of this work, whose answer was lost, may have ended it.
            if not (is_revoked and is_cancelled(await tx.jobs.get(job_id), reason=reason, now=now)):
                is_revoked = await tx.sessions.revoke(job_id, reason=reason, now=now)
            return is_revoked

        return await self.storage.transact(work)

    async def rescue_expired(self, *, until: Micros | None = None) -> list[Rescue]:
        """Takes over the work of sessions whose lease ran out, as much as fits before `until` on the lease's clock."""
        rescues: list[Rescue] = []
        while rescue := await self._rescue_one():
            rescues.append(rescue)
            if until is not None and self.storage.clock.lease_now() >= until:
                break
        if rescues:
            await self.storage.transact(_recount)
        return rescues

    async def _rescue_one(self) -> Rescue | None:
        """One batch of one dead session: its row stays locked until commit, so that one rescuer has it."""
        clock = self.storage.clock
        era, lease_now, now = clock.era, clock.lease_now(), clock.now()
        retries = self._retries()

        async def work(tx: Transaction) -> Rescue | None:
            for session in await tx.sessions.expired(era=era, lease_now=lease_now, most=1):
                return await tx.sessions.rescue(session, retries, now=now)
            return None

        return await self.storage.transact(work)

    async def close(self, session: SessionId) -> None:
        """Ends a session of one's own; whatever it still holds is treated as after a crash, at once."""
        now = self.storage.clock.now()
        retries = self._retries()

        async def work(tx: Transaction) -> Rescue:
            return await tx.sessions.rescue(session, retries, now=now)

        while not (await self.storage.transact(work)).ended:
            retries = self._retries()

    def _retries(self) -> list[tuple[JobId, float]]:
        return [(JobId(self.dice.new_id("job")), self.dice.fraction()) for _ in range(RESCUE_BATCH)]


async def _awaited(tx: Transaction, waiting: Execution, job_id: JobId, now: Instant) -> Instant:
    """Notes which job waits for it; answers when the job is to look for itself."""
    if waiting.called_back_by is not None:
        await tx.executions.await_with(waiting.run_id, job_id)
        # It ends by being asked for at its deadline; never at once, as clocks differ.
        return Instant(max(waiting.called_back_by, now + SECOND))
    open_ones = [each.deadline for each in await tx.reviews.of_run(waiting.run_id) if each.is_open]
    # Never at once: whoever acts on deadlines may be away, or late.
    return Instant(max([now, *open_ones]) + BACKSTOP)


async def _unpark(tx: Transaction) -> None:
    await tx.sessions.unpark()


async def _recount(tx: Transaction) -> None:
    await tx.sessions.recount()
