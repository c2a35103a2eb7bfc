"""Gathers what is recorded of a job, in a transaction of whoever asks why: reads, and writes nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from duly.application.graph_jobs import standing_in
from duly.application.owners import job_known, owner_of_job
from duly.application.spending import spending_of
from duly.domain.executions import GRAPH_RUN, Execution
from duly.domain.explanations import Holders, JobFacts, Spending, Wait
from duly.domain.explanations.facts import MOST_NAMED
from duly.domain.groups import Group, Member, member_of
from duly.domain.ids import GrantId, JobId, PoolName
from duly.domain.instants import Instant, Micros
from duly.domain.jobs import FinishedJob, Job, JobState
from duly.domain.reviews import Review
from duly.domain.sessions import warning_about
from duly.ports.storage import Transaction

_MOST_HOLDERS = 100


class Asking(NamedTuple):
    """Who asks, and when. An owner is told the ids of its own jobs only; an operator names none, and sees all."""

    owner: str | None
    now: Instant
    era: str
    lease_now: Micros


async def job_facts(tx: Transaction, job_id: JobId, asking: Asking) -> JobFacts:
    job = await job_known(tx, job_id, asking.owner)
    chain = await tx.jobs.chain(job.id)
    last = chain[-1]
    execution = await execution_of(tx, job)
    group, member = await _membership(tx, job)
    return JobFacts(
        job=job,
        chain=chain,
        now=asking.now,
        wait=await wait_of(tx, last, asking, execution) if isinstance(last, Job) else None,
        origin=await tx.origins.get(job.chain),
        group=group,
        member=member,
        by_hand=await tx.why.asked_by_hand(job.chain),
        spending=await _spending(tx, execution),
    )


async def wait_of(tx: Transaction, job: Job, asking: Asking, execution: Execution | None = None) -> Wait:
    """What a live job waits for; only what its state makes worth knowing is looked up."""
    if job.session is not None:
        return Wait(now=asking.now, session=await tx.why.session(job.session))
    known = await tx.sessions.live_kinds(era=asking.era, lease_now=asking.lease_now)
    told = Wait(now=asking.now, warning=warning_about(job.kind, known))
    match job.state:
        case JobState.BACKOFF:
            return replace(told, reviews=await _open_reviews(tx, execution or await execution_of(tx, job)))
        case JobState.WAITING if job.lane is not None:
            head = await tx.why.head(job.lane)
            seen = None if head is None or not await _may_see(tx, head, asking) else head
            return replace(told, head=seen, lane_ahead=await tx.why.ahead_in_lane(job))
        case JobState.PARKED:
            parked_on = (await tx.why.aside(job.id)).parked_on
            return replace(told, resource=None if parked_on is None else await _holders(tx, parked_on, asking))
        case JobState.READY:
            return await _ready(tx, job, told, asking)
    return told


async def _ready(tx: Transaction, job: Job, told: Wait, asking: Asking) -> Wait:
    share = (await tx.why.aside(job.id)).share
    count, first = await tx.why.ahead(job, MOST_NAMED)
    return replace(
        told,
        pool=await _holders(tx, job.pool, asking),
        place=count + 1,
        ahead=[each.id for each in await _seen(tx, first, asking)],
        share=share,
        share_used=0 if share is None else await tx.why.share_used(job.pool, share),
    )


async def _holders(tx: Transaction, name: PoolName, asking: Asking) -> Holders | None:
    pool = await tx.pools.get(name)
    if pool is None:
        return None
    # Of an owner's own there may be few among many: those are looked for a little further.
    found = await tx.why.holders(name, MOST_NAMED if asking.owner is None else _MOST_HOLDERS)
    return Holders(pool=pool, jobs=await _seen(tx, found, asking), calls=await tx.why.calls(name))


async def _seen(tx: Transaction, jobs: Sequence[Job], asking: Asking) -> list[Job]:
    return [job for job in jobs if await _may_see(tx, job, asking)]


async def _may_see(tx: Transaction, job: Job, asking: Asking) -> bool:
    return asking.owner is None or await owner_of_job(tx, job) == asking.owner


async def execution_of(tx: Transaction, job: Job | FinishedJob) -> Execution | None:
    """What a job had executed. An owner writes its params, so those cannot show what is somebody else's."""
    if job.kind != GRAPH_RUN:
        return None
    standing = await standing_in(tx, job)
    execution = await tx.executions.by_key(standing.key)
    grant = None if execution is None else await tx.grants.get(GrantId(execution.grant_id))
    return execution if grant is not None and standing.owner in (None, grant.user_id) else None


async def _open_reviews(tx: Transaction, execution: Execution | None) -> Sequence[Review]:
    if execution is None:
        return []
    return [review for review in await tx.reviews.of_run(execution.run_id) if review.is_open]


async def _spending(tx: Transaction, execution: Execution | None) -> Spending | None:
    return None if execution is None else await spending_of(tx, execution.grant_id, execution)


async def _membership(tx: Transaction, job: Job | FinishedJob) -> tuple[Group | None, Member | None]:
    named = await tx.groups.member_of_chain(job.chain)
    if named is None:
        return None, None
    group_id, place = member_of(named)
    members = await tx.groups.members(group_id, after=place - 1, most=1)
    return await tx.groups.get(group_id), members[0] if members else None
