"""`duly job` queue, move and reorder: the order in which a pool will run what is ready."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from duly.cli import exits
from duly.cli.consent import is_dry_run
from duly.cli.listing import Listing, add_page, show_list
from duly.cli.output import say
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, whole
from duly.cli.shapes import at, queued_job_shape
from duly.cli.store import changing
from duly.domain.errors import InvalidInput
from duly.domain.ids import JobId, PoolName
from duly.domain.jobs import Job, JobState, Place, UnknownJob
from duly.domain.pools import DEFAULT_POOL

if TYPE_CHECKING:
    from duly.bootstrap import Queue


def define(commands: Commands) -> None:
    queue_ = commands.add("queue", show_queue, "what is ready in a pool, in the order in which it will run")
    queue_.add_argument("--pool", default=DEFAULT_POOL, metavar="NAME", help="which pool (default: default)")
    add_page(queue_, "JOB")
    move_ = commands.add("move", move, "give a job that nobody has another place in its pool's order")
    move_.add_argument("id", metavar="JOB")
    _define_places(move_)
    add_dry_run(move_)
    reorder_ = commands.add("reorder", reorder, "let jobs run one after the other, in the order given")
    reorder_.add_argument("ids", metavar="JOB", nargs="+")
    add_dry_run(reorder_)
    for command in (move_, reorder_):
        add_json(command)


def _define_places(move_: Parser) -> None:
    where = move_.add_mutually_exclusive_group(required=True)
    where.add_argument("--before", metavar="JOB", help="right before that one")
    where.add_argument("--after", metavar="JOB", help="right after that one")
    where.add_argument("--swap", metavar="JOB", help="in that one's place, and that one in its")
    where.add_argument("--place", type=whole(1, 10_000), metavar="N", help="so that it is the one of that number")
    where.add_argument("--next", action="store_true", help="so that it runs next")
    where.add_argument(
        "--priority", type=whole(-32_767, 32_767), metavar="N", help="by its priority; higher goes first"
    )


def show_queue(options: Options) -> None:
    async def fetch(queue: "Queue") -> Sequence[tuple[int, Job]]:
        pool = (await queue.pools.get(PoolName(options.pool))).name
        return await queue.jobs.queued(pool, owner=None, after=await _seen(queue, options, pool), most=options.most)

    show_list(options, _listing(f"nothing is ready in pool {options.pool}"), fetch)


async def _seen(queue: "Queue", options: Options, pool: PoolName) -> Place | None:
    """Where in the order what is asked for begins."""
    if options.after is None:
        return None
    with suppress(UnknownJob):
        job = await queue.jobs.find(JobId(options.after), owner=None)
        if isinstance(job, Job) and job.state is JobState.READY and job.pool == pool:
            return Place(*job.order)
    raise InvalidInput("--after", f"{options.after[:60]} is not ready any more", fix="begin again without it")


def move(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        job = await queue.jobs.find(JobId(options.id), owner=None)
        if is_dry_run(options, f"move {job.id}, a job of pool {job.pool}"):
            return exits.OK
        await _move(queue, job.id, options)
        return await _shown(queue, options, job.pool, {job.id})

    return changing(change)


async def _move(queue: "Queue", job_id: JobId, options: Options) -> None:
    order = queue.order
    beside: dict[str, Any] = {"before": order.before, "after": order.after, "swap": order.swap}
    for name, go in beside.items():
        if (other := getattr(options, name)) is not None:
            await go(job_id, JobId(other))
    if options.place is not None:
        await order.to_place(job_id, options.place)
    if options.priority is not None:
        await order.reprioritise(job_id, options.priority)
    if options.next:
        await order.to_front(job_id)


def reorder(options: Options) -> int:
    ids = [JobId(job_id) for job_id in options.ids]

    async def change(queue: "Queue") -> int:
        jobs = [await queue.jobs.find(job_id, owner=None) for job_id in ids]
        if is_dry_run(options, f"put {len(jobs)} jobs in this order"):
            return exits.OK
        await queue.order.arrange(ids)
        return await _shown(queue, options, jobs[0].pool, set(ids))

    return changing(change)


async def _shown(queue: "Queue", options: Options, pool: PoolName, moved: set[JobId]) -> int:
    places = [(place, job) for place, job in await queue.jobs.places(pool, owner=None) if job.id in moved]
    if places or options.json:
        _listing("").tell(options, places, is_last=True)
    else:
        say("moved; it is not ready yet, so it has no place among what is")
    return exits.OK


def _listing(empty: str) -> Listing[tuple[int, Job]]:
    return Listing(
        heads=("place", "id", "kind", "priority", "lane", "created"),
        row=_row,
        shape=lambda queued: queued_job_shape(*queued),
        key=lambda queued: queued[1].id,
        empty=empty,
    )


def _row(queued: tuple[int, Job]) -> tuple[object, ...]:
    place, job = queued
    return (place, job.id, job.kind, job.priority, job.lane, at(job.created_at))
