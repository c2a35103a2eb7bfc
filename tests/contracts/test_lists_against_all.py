"""Whatever is asked of a list, page by page, is what a look through everything finds, however things came to be."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import product
from typing import Any

from duly.application.deliveries import Deliveries
from duly.application.retries import FailedFilter
from duly.bootstrap import Queue
from duly.domain.groups import GroupMode, GroupStatus, NewGroup, NewMember
from duly.domain.ids import PoolName
from duly.domain.jobs import Ending, FinishedJob, JobStatus
from duly.domain.retries import RetryPolicy
from duly.domain.runs import RunKind, RunStatus
from duly.domain.schedules import Target
from duly.domain.templates import NewTemplate
from duly.domain.webhooks.deliveries import DeliveryState
from duly.ports.storage import Transaction
from duly.wire.webhooks import worded
from tests.contracts.keeping import Keeping
from tests.contracts.world import WIDE, Hand, World, new

# Each begins the next, or sorts right beside it, so that a range that is too wide finds a neighbour's.
OWNERS = ("ann", "ann2", "Ann", "änn")
SIDE = PoolName("wide2")
ONCE = RetryPolicy(max_attempts=1)
ENDINGS = (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.SKIPPED, JobStatus.CANCELLED)
ENDED = {JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.SKIPPED}

Page = Callable[[str | None, int], Awaitable[Sequence[Any]]]


async def paged(page: Page, size: int) -> list[str]:
    """Ids, as whoever follows the pages to the end sees them."""
    seen: list[str] = []
    while found := await page(seen[-1] if seen else None, size):
        seen += [each.id for each in found]
    return seen


async def require_same(page: Page, wanted: Iterable[str], about: object) -> None:
    newest_first = sorted(wanted, reverse=True)
    for size in (1, 3, 100):
        assert await paged(page, size) == newest_first, (about, size)


async def end(hand: Hand, status: JobStatus) -> None:
    """Whatever is ready ends so, pool by pool."""
    for pool in (WIDE, SIDE):
        while claimed := await hand.claim(5, pool):
            if status in ENDED:
                await hand.finish(*claimed, ending=Ending(status=status, error="as asked"))
                continue
            for job in claimed:
                await hand.queue.jobs.cancel(job.id, reason="as asked", owner=None)
            await hand.fail(*claimed)


async def made(world: World) -> dict[str, str | None]:
    """Jobs of every origin, ended in every way; answers whose each is."""
    queue, keeping = world.queue, Keeping(world)
    await world.pool(SIDE, 1_000)
    hand = await world.hand()
    owners: dict[str, str | None] = {}
    for owner in OWNERS:
        name = f"t{OWNERS.index(owner)}"
        await queue.templates.create(NewTemplate(name=name, kind="send", pool=SIDE, retry=ONCE), owner=owner)
        await keeping.schedule(f"s{name}", owner=owner, target=Target(kind="work", pool=WIDE, retry=ONCE))
    for status in ENDINGS:
        for place, owner in enumerate(OWNERS):
            owners[(await queue.jobs.put_from(f"t{place}", owner=owner)).job_id] = owner
            members = [NewMember(job=new(retry=ONCE, pool=pool)) for pool in (WIDE, SIDE)]
            mode = GroupMode.PARALLEL if place % 2 else GroupMode.SEQUENTIAL
            group = await queue.groups.create(NewGroup(members=members, mode=mode), owner=owner)
            owners |= {each.job_id: owner for each in await queue.groups.members(group.id, owner=owner)}
            run = await queue.schedules.run_now(f"st{place}", owner=owner)
            assert run.job_id is not None
            owners[run.job_id] = owner
        owners[await world.put(retry=ONCE)] = None
        owners[await world.put(retry=ONCE, key=f"k{status}", pool=SIDE)] = None
        waiting = await queue.jobs.put_from("t0", owner="ann")
        owners[waiting.job_id] = "ann"
        await queue.jobs.cancel(waiting.job_id, reason="before it began", owner="ann")
        await end(hand, status)
        await queue.jobs.stage()
    for job in await queue.jobs.failed(owner=None):
        if owners[job.chain] in {"Ann", None}:
            again = await queue.jobs.retry(job.id, owner=None)
            owners[again.job_id] = owners[job.chain]
    await end(hand, JobStatus.FAILED)
    return owners


async def test_ended_jobs_are_listed_as_a_look_through_all_of_them_finds_them(world: World) -> None:
    owners = await made(world)
    everything = [job for job in map(await _by_id(world), owners) if isinstance(job, FinishedJob)]
    assert len(everything) > len(OWNERS) * len(ENDINGS)
    queue = world.queue

    for owner, pool, status in product((None, *OWNERS, "nobody"), (None, WIDE, SIDE), (None, *ENDINGS)):
        wanted: list[str] = [
            job.id
            for job in everything
            if owner in (None, owners[job.id]) and pool in (None, job.pool) and status in (None, job.status)
        ]

        async def page(
            before: str | None, most: int, owner: Any = owner, pool: Any = pool, status: Any = status
        ) -> Sequence[FinishedJob]:
            return await queue.jobs.ended(owner=owner, pool=pool, status=status, before=before, most=most)

        await require_same(page, wanted, (owner, pool, status))

    tried_again = {job.retry_of for job in everything}
    for owner, pool, kind in product((None, *OWNERS, "nobody"), (None, WIDE, SIDE), (None, "work", "send")):
        wanted = [
            job.id
            for job in everything
            if job.status is JobStatus.FAILED and job.id not in tried_again
            if owner in (None, owners[job.id]) and pool in (None, job.pool) and kind in (None, job.kind)
        ]

        async def failed(
            before: str | None, most: int, owner: Any = owner, pool: Any = pool, kind: Any = kind
        ) -> Sequence[FinishedJob]:
            which = FailedFilter(pool=pool, kind=kind)
            return await queue.jobs.failed(owner=owner, which=which, before=before, most=most)

        await require_same(failed, wanted, (owner, pool, kind))


async def _by_id(world: World) -> Callable[[str], Any]:
    rows = await world.rows("SELECT id FROM finished_jobs")
    found = {str(job_id): await world.queue.jobs.find(job_id, owner=None) for (job_id,) in rows}
    return found.get


async def test_runs_groups_and_deliveries_are_listed_as_a_look_through_all_of_them_finds_them(world: World) -> None:
    queue = world.queue
    for owner in OWNERS:
        await queue.webhooks.create(f"https://example.com/{OWNERS.index(owner)}", owner=owner)
        await queue.webhooks.create(f"https://example.org/{OWNERS.index(owner)}", owner=owner)
    await made(world)
    for place, owner in enumerate(OWNERS):
        await queue.schedules.run_now(f"st{place}", owner=owner)
    deliveries = Deliveries(queue.storage, world.dice, worded)
    while await deliveries.fan_out():
        pass
    errands = await deliveries.claim(5)
    for errand in errands:

        async def fail(tx: Transaction, delivery_id: str = errand.delivery.id) -> None:
            await tx.webhooks.fail(delivery_id, error="as asked", now=world.clock.now())

        await queue.storage.transact(fail)

    await _require_same_runs(queue)
    await _require_same_groups(queue)
    await _require_same_deliveries(queue)


async def _require_same_runs(queue: Queue) -> None:
    runs = await queue.runs.list(owner=None, most=1_000)
    for owner, schedule, status, kind in product(
        (None, *OWNERS), (None, "st0", "st1"), (None, *RunStatus), (None, *RunKind)
    ):
        if None not in (owner, schedule) and schedule != f"st{OWNERS.index(str(owner))}":
            continue
        wanted: list[str] = [
            each.id
            for each in runs
            if owner in (None, each.owner) and schedule in (None, each.schedule_id)
            if status in (None, each.status) and kind in (None, each.kind)
        ]

        async def page(before: str | None, most: int, asked: Any = (owner, schedule, status, kind)) -> Sequence[Any]:
            owner, schedule, status, kind = asked
            return await queue.runs.list(
                owner=owner, schedule_id=schedule, status=status, kind=kind, before=before, most=most
            )

        for size in (1, 3, 100):
            assert sorted(await paged(page, size)) == sorted(wanted), (owner, schedule, status, kind)


async def _require_same_groups(queue: Queue) -> None:
    groups = await queue.groups.list(owner=None, most=1_000)
    for owner, group_status in product((None, *OWNERS), (None, *GroupStatus)):
        wanted: list[str] = [
            each.id for each in groups if owner in (None, each.owner) and group_status in (None, each.status)
        ]

        async def page_of_groups(before: str | None, most: int, asked: Any = (owner, group_status)) -> Sequence[Any]:
            return await queue.groups.list(owner=asked[0], status=asked[1], before=before, most=most)

        await require_same(page_of_groups, wanted, (owner, group_status))


async def _require_same_deliveries(queue: Queue) -> None:
    told = await queue.webhooks.deliveries(owner=None, most=1_000)
    assert {each.owner for each in told} == set(OWNERS)
    assert {each.state for each in told} == {DeliveryState.PENDING, DeliveryState.FAILED}
    endpoints = [each.id for each in await queue.webhooks.list(owner=None)][:3]
    for owner, endpoint, state, about in product(
        (None, *OWNERS), (None, *endpoints), (None, *DeliveryState), (None, told[0].subject_id)
    ):
        wanted: list[str] = [
            each.id
            for each in told
            if owner in (None, each.owner) and endpoint in (None, each.endpoint_id)
            if state in (None, each.state) and about in (None, each.subject_id)
        ]

        async def page_of_told(
            before: str | None, most: int, asked: Any = (owner, endpoint, state, about)
        ) -> Sequence[Any]:
            owner, endpoint, state, about = asked
            return await queue.webhooks.deliveries(
                owner=owner, endpoint_id=endpoint, state=state, about=about, before=before, most=most
            )

        await require_same(page_of_told, wanted, (owner, endpoint, state, about))
