"""Retries by hand: one chain, or all that failed. `owner` is the caller; an operator names none."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from duly.application.estimates import estimate_in
from duly.application.graph_jobs import key_to_execute_anew
from duly.application.job_facts import execution_of
from duly.application.owners import job_known, owner_of_job
from duly.application.places import Places
from duly.domain.amounts import Amount
from duly.domain.errors import DulyError, Unavailable
from duly.domain.estimates import Estimate
from duly.domain.executions import GRAPH_RUN
from duly.domain.groups import GroupMode, GroupRunning, GroupStatus, member_of
from duly.domain.ids import JobId, MemberId, Owner, PoolName
from duly.domain.instants import Instant
from duly.domain.jobs import FinishedJob, Put, PutOutcome, UnknownJob
from duly.domain.templates import Origin
from duly.domain.texts import text_of, whole_number_of
from duly.ports.dice import Dice
from duly.ports.prices import Prices
from duly.ports.retries import FailedAsked
from duly.ports.storage import Storage, Transaction

MOST_LISTED = 1_000
MOST_RETRIED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedFilter:
    """Which failed chains are meant. `jobs` names their last attempts, as a preview answered them."""

    pool: str | None = None
    kind: str | None = None
    since: Instant | None = None
    until: Instant | None = None
    jobs: tuple[JobId, ...] | None = None

    def asked(self) -> FailedAsked:
        return FailedAsked(
            pool=None if self.pool is None else PoolName(text_of(self.pool, field="pool")),
            kind=None if self.kind is None else text_of(self.kind, field="kind"),
            since=self.since,
            until=self.until,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """What a bulk retry touches: `jobs`, the last attempts of chains, newest first; `more` failed beyond the cap.

    `cost` is theirs. Of a preview `puts` is empty. `skipped` could not be tried again, with the reason.
    """

    jobs: tuple[JobId, ...]
    more: bool
    cost: Estimate
    puts: tuple[Put, ...] = ()
    skipped: tuple[tuple[JobId, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Retries:
    storage: Storage
    dice: Dice
    _places: Places = field(default_factory=Places)
    prices: Prices | None = None

    async def one(self, job_id: str, *, owner: str | None, key: str | None = None) -> Put:
        """A new attempt of an ended chain, named by any of its jobs, with its whole budget of attempts again.

        Asked again under the same key it answers the same, whatever became of the attempt.
        """
        if key is not None:
            text_of(key, field="key")
        now = self.storage.clock.now()
        new_id, position = JobId(self.dice.new_id("job")), self._places.take(now)

        async def work(tx: Transaction) -> Put:
            asked = await job_known(tx, JobId(text_of(job_id, field="id")), owner)
            if await tx.jobs.get(new_id) is not None:
                return Put(new_id, PutOutcome.CREATED)  # run again after a lost answer
            if key is not None and (earlier := await tx.retries.by_key(asked.chain, key)) is not None:
                return Put(earlier, PutOutcome.CREATED)
            last = await tx.retries.lock_last(asked.chain, asked=asked.id)
            if key is not None and (earlier := await tx.retries.by_key(asked.chain, key)) is not None:
                return Put(earlier, PutOutcome.CREATED)
            member = await _reopened(tx, last)
            await _keep_owner(tx, last)
            budget = await tx.retries.budget(last)
            again = last.again(new_id=new_id, attempts=budget, now=now, position=position, member=member)
            await tx.retries.add(again, key=key, execution_key=await key_to_execute_anew(tx, last))
            return Put(new_id, PutOutcome.CREATED)

        return await self.storage.transact(work)

    async def failed(
        self, *, owner: str | None, which: FailedFilter | None = None, before: str | None = None, most: int = 100
    ) -> Sequence[FinishedJob]:
        """The last attempts of chains that failed for good, newest id first; `before` is the last id seen."""
        whole_number_of(most, field="most", least=1, most=MOST_LISTED)
        asked = (which or FailedFilter()).asked()
        whose = None if owner is None else Owner(text_of(owner, field="owner"))
        last = None if before is None else JobId(text_of(before, field="before"))

        async def work(tx: Transaction) -> Sequence[FinishedJob]:
            return await tx.retries.failed(whose, asked, before=last, most=most)

        return await self.storage.read(work)

    async def many(
        self,
        which: FailedFilter,
        *,
        owner: str | None,
        cap: int,
        max_cost: Amount | None = None,
        dry_run: bool = True,
    ) -> Retried:
        """Tries failed chains again, at most `cap` of them, each in a transaction of its own.

        A preview unless told otherwise; give what it answered as `which.jobs` to touch exactly that. If more than
        `max_cost` would be held for them, none is tried.
        """
        whole_number_of(cap, field="cap", least=1, most=MOST_RETRIED)
        found = await self._found(which, owner, cap + 1)
        jobs = tuple(job.id for job in found[:cap])
        more = len(found) > cap
        cost = await self._estimate(found[:cap], owner)
        if dry_run:
            return Retried(jobs=jobs, more=more, cost=cost)
        cost.require_within(max_cost)
        puts, skipped = [], []
        for job_id in jobs:
            try:
                # By its own id: a call that is repeated after a cut finds what it had done.
                puts.append(await self.one(job_id, owner=owner, key=f"bulk:{job_id}"))
            except Unavailable:
                raise
            except DulyError as error:
                skipped.append((job_id, str(error)))
        return Retried(jobs=jobs, more=more, cost=cost, puts=tuple(puts), skipped=tuple(skipped))

    async def _estimate(self, jobs: Sequence[FinishedJob], owner: str | None) -> Estimate:
        async def work(tx: Transaction) -> Estimate:
            runs = [await tx.ledger.get(job.ledger_run) for job in jobs if job.ledger_run and job.kind == GRAPH_RUN]
            schedules = [run.schedule_id for run in runs if run is not None]
            anew = [(job.kind, job.payload) for job in jobs if not await _went_well(tx, job)]
            settled = len(jobs) - len(anew)
            return await estimate_in(tx, anew, self.prices, owner=owner, settled=settled, schedules=schedules)

        return await self.storage.read(work)

    async def _found(self, which: FailedFilter, owner: str | None, most: int) -> list[FinishedJob]:
        named = None if which.jobs is None else set(which.jobs)
        found: list[FinishedJob] = []
        last: JobId | None = None
        while len(found) < most:
            page = await self.failed(owner=owner, which=which, before=last, most=MOST_LISTED)
            found += [job for job in page if named is None or job.id in named]
            if len(page) < MOST_LISTED:
                break
            last = page[-1].id
        return found[:most]


async def _went_well(tx: Transaction, failed: FinishedJob) -> bool:
    """A graph's outcome that the job's worker could not tell any more: trying again tells it, and executes nothing."""
    execution = await execution_of(tx, failed)
    return execution is not None and execution.ok is True


async def _reopened(tx: Transaction, last: FinishedJob) -> MemberId | None:
    """A member's group runs again. One that goes in order, or is being cancelled, has to have ended first."""
    member = await tx.groups.member_of_chain(last.chain)
    if member is None:
        return None
    group_id, _ = member_of(member)
    group = await tx.groups.lock(group_id)
    if group is None or await tx.groups.member_of_chain(last.chain) is None:
        return None  # replaced, or forgotten, while we waited
    is_busy = group.mode is GroupMode.SEQUENTIAL or group.cancel_reason is not None
    if is_busy and group.status is GroupStatus.RUNNING:
        raise GroupRunning(group_id)
    await tx.groups.revive(member)
    return member


async def _keep_owner(tx: Transaction, last: FinishedJob) -> None:
    """A job of a schedule belongs to its run's owner; this attempt has no run, and belongs to the same."""
    if last.ledger_run is not None and await tx.origins.get(last.chain) is None:
        owner = await owner_of_job(tx, last)
        if owner is None:
            raise UnknownJob(last.id)
        await tx.origins.save([(last.chain, Origin(owner=owner))])
