"""`duly job`: the queue's own unit of work."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from duly.cli import exits, job_order, job_retries
from duly.cli.consent import is_dry_run
from duly.cli.given import milliseconds_from, object_from
from duly.cli.job_puts import told_put
from duly.cli.job_words import jobs_listing, told_end, told_job
from duly.cli.listing import add_page, show_list
from duly.cli.logs import follow_job
from duly.cli.output import say
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_wait, whole
from duly.cli.store import changing, looking
from duly.cli.times import moment_from
from duly.cli.waiting import deadline_of, end_of_job
from duly.domain.ids import JobId, JobKey, Lane, PoolName
from duly.domain.instants import instant_of
from duly.domain.jobs import FinishedJob, Job, JobState, JobStatus, NewJob
from duly.domain.pools import DEFAULT_POOL
from duly.domain.retries import DEFAULT_RETRY, RetryPolicy

if TYPE_CHECKING:
    from duly.bootstrap import Queue

_ENDED = ("COMPLETED", "FAILED", "SKIPPED", "CANCELLED")


def define(parser: Parser) -> None:
    commands = Commands(parser)
    listed = commands.add("list", list_all, "those that live, or those that have ended")
    listed.add_argument("--pool", metavar="NAME", help="only those of one pool")
    only = listed.add_mutually_exclusive_group()
    only.add_argument("--state", choices=list(JobState), help="only those that live, in one state")
    only.add_argument("--status", choices=_ENDED, help="only those that have ended, in one way")
    only.add_argument("--ended", action="store_true", help="only those that have ended, newest first")
    add_page(listed, "JOB", once="--from")
    show_ = commands.add("show", show, "one of them, in full")
    cancel_ = commands.add("cancel", cancel, "end it if nobody has claimed it, else ask its worker to stop")
    log_ = commands.add("log", log, "what it said")
    for command in (show_, cancel_, log_):
        command.add_argument("id", metavar="JOB")
    add_wait(show_)
    cancel_.add_argument("--reason", default="cancelled from the shell", metavar="TEXT", help="kept with the job")
    log_.add_argument("--follow", action="store_true", help="go on until the job has ended")
    put_ = commands.add("put", put, "hand a job to the queue")
    _define_put(put_)
    add_wait(cancel_)
    add_dry_run(cancel_)
    for command in (show_, cancel_, log_, put_):
        add_json(command)
    job_order.define(commands)
    job_retries.define(commands)


def _define_put(command: Parser) -> None:
    command.add_argument("kind", metavar="KIND", help="the handler that does it")
    command.add_argument("--params", metavar="JSON", help="what it is given: JSON, @file, or - for stdin")
    command.add_argument("--key", metavar="TEXT", help="replaces a job of this key that nobody has claimed")
    command.add_argument("--lane", metavar="NAME", help="jobs of one lane run one at a time")
    command.add_argument("--pool", default=DEFAULT_POOL, metavar="NAME", help="its pool (default: default)")
    command.add_argument("--priority", type=whole(-32_767, 32_767), default=0, metavar="N", help="higher goes first")
    command.add_argument("--run-at", metavar="WHEN", help="not before this instant")
    command.add_argument("--retries", type=whole(0, 999), metavar="N", help="how often to try again (default: 2)")
    command.add_argument("--time-limit", metavar="SPAN", help="a run that takes longer fails")
    add_wait(command)
    add_dry_run(command)


def list_all(options: Options) -> None:
    show_list(options, jobs_listing(empty="no jobs"), lambda queue: _listed(queue, options))


async def _listed(queue: "Queue", options: Options) -> Sequence[Job | FinishedJob]:
    pool = None if options.pool is None else PoolName(options.pool)
    if options.ended or options.status is not None:
        status = None if options.status is None else JobStatus(options.status)
        return await queue.jobs.ended(owner=None, pool=pool, status=status, before=options.after, most=options.most)
    state = None if options.state is None else JobState(options.state)
    return await queue.jobs.list(owner=None, pool=pool, state=state, after=options.after, most=options.most)


def show(options: Options) -> int:
    async def look(queue: "Queue") -> int:
        job = await queue.jobs.find(JobId(options.id), owner=None)
        if options.wait:
            return told_end(
                options, await end_of_job(queue, job.id, deadline=deadline_of(options, queue.storage.clock))
            )
        return told_job(options, job)

    return looking(look)


def cancel(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        deadline = deadline_of(options, queue.storage.clock)
        job = await queue.jobs.find(JobId(options.id), owner=None)
        if is_dry_run(options, f"cancel {job.id}"):
            return exits.OK
        is_ended = await queue.jobs.cancel(job.id, reason=options.reason)
        if options.wait:
            ended = await end_of_job(queue, job.id, deadline=deadline)
            return told_end(options, ended) if ended is None else told_job(options, ended)
        if options.json:
            return told_job(options, await queue.jobs.find(job.id, owner=None))
        say(f"{job.id} " + ("is cancelled" if is_ended else "was asked to stop"))
        return exits.OK

    return changing(change)


def log(options: Options) -> None:
    looking(lambda queue: follow_job(queue, options.id, follow=options.follow, as_json=options.json))


def put(options: Options) -> int:
    new = _asked(options)

    async def change(queue: "Queue") -> int:
        deadline = deadline_of(options, queue.storage.clock)
        if options.dry_run:
            await queue.pools.get(new.pool)
        if is_dry_run(options, f"put {new.kind} into pool {new.pool}"):
            return exits.OK
        return await told_put(queue, options, await queue.jobs.put(new), kind=new.kind, deadline=deadline)

    return changing(change, creates=not options.dry_run)


def _asked(options: Options) -> NewJob:
    run_at = None if options.run_at is None else instant_of(moment_from(options.run_at, field="--run-at"), field="at")
    return NewJob(
        kind=options.kind,
        params=object_from(options.params, field="--params"),
        key=None if options.key is None else JobKey(options.key),
        lane=None if options.lane is None else Lane(options.lane),
        pool=PoolName(options.pool),
        priority=options.priority,
        run_at=run_at,
        retry=DEFAULT_RETRY if options.retries is None else RetryPolicy(max_attempts=options.retries + 1),
        timeout_ms=milliseconds_from(options.time_limit, field="--time-limit"),
    )
