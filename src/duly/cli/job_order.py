"""`duly job` queue, move and reorder: the order in which a pool will run what is ready."""

from typing import TYPE_CHECKING, Any

from duly.cli import exits
from duly.cli.output import note, say, say_json, table, watched
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_most, add_watch, whole
from duly.cli.shapes import at, page, queued_job_shape
from duly.cli.store import changing, looking
from duly.domain.ids import JobId, PoolName
from duly.domain.jobs import Job
from duly.domain.pools import DEFAULT_POOL

if TYPE_CHECKING:
    from duly.bootstrap import Queue


def define(commands: Commands) -> None:
    queue_ = commands.add("queue", show_queue, "what is ready in a pool, in the order in which it will run")
    queue_.add_argument("--pool", default=DEFAULT_POOL, metavar="NAME", help="which pool (default: default)")
    add_most(queue_)
    add_watch(queue_)
    move_ = commands.add("move", move, "give a job that nobody has another place in its pool's order")
    move_.add_argument("id", metavar="JOB")
    _define_places(move_)
    add_dry_run(move_)
    reorder_ = commands.add("reorder", reorder, "let jobs run one after the other, in the order given")
    reorder_.add_argument("ids", metavar="JOB", nargs="+")
    add_dry_run(reorder_)
    for command in (queue_, move_, reorder_):
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
    async def look(queue: "Queue") -> None:
        pool = (await queue.pools.get(PoolName(options.pool))).name

        async def once() -> None:
            places = (await queue.jobs.places(pool, owner=None))[: options.most]
            _told(options, places, empty=f"nothing is ready in pool {pool}")

        await watched(options, queue.storage.clock, once)

    looking(look)


def move(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        job = await queue.jobs.find(JobId(options.id), owner=None)
        if options.dry_run:
            note(f"dry run: would move {job.id}, a job of pool {job.pool}; nothing was changed")
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
        if options.dry_run:
            note(f"dry run: would put {len(jobs)} jobs in this order; nothing was changed")
            return exits.OK
        await queue.order.arrange(ids)
        return await _shown(queue, options, jobs[0].pool, set(ids))

    return changing(change)


async def _shown(queue: "Queue", options: Options, pool: PoolName, moved: set[JobId]) -> int:
    places = [(place, job) for place, job in await queue.jobs.places(pool, owner=None) if job.id in moved]
    if places or options.json:
        _told(options, places, empty="")
    else:
        say("moved; it is not ready yet, so it has no place among what is")
    return exits.OK


def _told(options: Options, places: list[tuple[int, Job]], *, empty: str) -> None:
    if options.json:
        say_json(page([queued_job_shape(place, job) for place, job in places]))
        return
    rows = [(place, job.id, job.kind, job.priority, job.lane, at(job.created_at)) for place, job in places]
    table(("place", "id", "kind", "priority", "lane", "put at"), rows, empty=empty)
