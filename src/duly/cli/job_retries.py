"""`duly job` failed, retry, retry-failed, chain and edit: what becomes of jobs after, or before, they run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from duly.application.retries import FailedFilter, Retried
from duly.cli import exits
from duly.cli.consent import is_agreed, is_dry_run
from duly.cli.costs import cost_from, told_cost
from duly.cli.given import object_from
from duly.cli.job_words import jobs_listing, told_end, told_job
from duly.cli.listing import add_page, show_list
from duly.cli.output import note, say, say_json, tell, watched
from duly.cli.parser import (
    Commands,
    Options,
    Parser,
    add_dry_run,
    add_json,
    add_max_cost,
    add_wait,
    add_watch,
    add_yes,
    whole,
)
from duly.cli.shapes import job_shape, retried_shape, retry_preview_shape
from duly.cli.store import changing, looking
from duly.cli.times import when_from
from duly.cli.waiting import deadline_of, end_of_job
from duly.domain.amounts import Amount
from duly.domain.ids import JobId
from duly.domain.instants import Instant, instant_of
from duly.domain.jobs import FinishedJob

if TYPE_CHECKING:
    from duly.bootstrap import Queue


def define(commands: Commands) -> None:
    failed_ = commands.add("failed", list_failed, "those that failed for good, newest first")
    add_page(failed_, "JOB", once="--from")
    retry_ = commands.add("retry", retry, "try a job that has ended again")
    retry_.add_argument("id", metavar="JOB")
    retry_.add_argument("--key", metavar="TEXT", help="the same key again answers the same job")
    add_wait(retry_)
    many_ = commands.add(
        "retry-failed", retry_failed, "try those that failed for good again, as many as the cap allows"
    )
    many_.add_argument("--cap", type=whole(1, 10_000), default=100, metavar="N", help="how many at most (default: 100)")
    add_max_cost(many_)
    add_yes(many_)
    for command in (failed_, many_):
        _define_filter(command)
    chain_ = commands.add("chain", chain, "all attempts of a job, first to last")
    chain_.add_argument("id", metavar="JOB")
    add_watch(chain_)
    edit_ = commands.add("edit", edit, "give a job that nobody has other params")
    edit_.add_argument("id", metavar="JOB")
    edit_.add_argument("--params", required=True, metavar="JSON", help="all of them: JSON, @file, or - for stdin")
    for command in (retry_, many_, edit_):
        add_dry_run(command)
    for command in (retry_, many_, chain_, edit_):
        add_json(command)


def _define_filter(command: Parser) -> None:
    command.add_argument("--pool", metavar="NAME", help="only those of one pool")
    command.add_argument("--kind", metavar="KIND", help="only those of one kind")
    command.add_argument("--since", metavar="WHEN", help="only those that ended since: an instant, or 12h, or 7d")
    command.add_argument("--until", metavar="WHEN", help="only those that ended before that")


def _meant(options: Options, now: Instant) -> FailedFilter:
    def instant(text: str | None, field: str) -> Instant | None:
        return None if text is None else instant_of(when_from(text, field=field, now=now), field=field)

    return FailedFilter(
        pool=options.pool,
        kind=options.kind,
        since=instant(options.since, "--since"),
        until=instant(options.until, "--until"),
    )


def list_failed(options: Options) -> None:
    async def fetch(queue: "Queue") -> Sequence[FinishedJob]:
        which = _meant(options, queue.storage.clock.now())
        return await queue.jobs.failed(owner=None, which=which, before=options.after, most=options.most)

    show_list(options, jobs_listing(empty="nothing has failed for good"), fetch)


def retry(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        deadline = deadline_of(options, queue.storage.clock)
        job = await queue.jobs.find(JobId(options.id), owner=None)
        if is_dry_run(options, f"try {job.id} again"):
            return exits.OK
        put = await queue.jobs.retry(job.id, key=options.key)
        if options.wait:
            note(f"waiting for {put.job_id}")
            return told_end(options, await end_of_job(queue, put.job_id, deadline=deadline))
        if options.json:
            return told_job(options, await queue.jobs.find(put.job_id, owner=None))
        say(f"put {put.job_id}; follow it: duly job log {put.job_id} --follow")
        return exits.OK

    return changing(change)


def retry_failed(options: Options) -> int:
    """What was shown is what is tried again, whatever fails meanwhile."""

    async def change(queue: "Queue") -> int:
        which = _meant(options, queue.storage.clock.now())
        max_cost = cost_from(options.max_cost)
        preview = await queue.jobs.retry_failed(which, owner=None, cap=options.cap)
        _previewed(options, preview, max_cost)
        preview.cost.require_within(max_cost)
        if options.dry_run or not preview.jobs:
            note("dry run: nothing was changed" if options.dry_run else "nothing was changed")
            return exits.OK
        if not is_agreed(options, f"try these {len(preview.jobs)} again?"):
            return exits.FAILED
        exactly = FailedFilter(jobs=preview.jobs)
        done = await queue.jobs.retry_failed(exactly, owner=None, cap=options.cap, max_cost=max_cost, dry_run=False)
        if options.json:
            say_json(retried_shape(done))
        else:
            say(f"put {len(done.puts)} jobs")
        for job_id, why in done.skipped:
            note(f"skipped {job_id}: {why}")
        return exits.OK

    return changing(change)


def _previewed(options: Options, preview: Retried, max_cost: Amount | None) -> None:
    """What is meant is the data of a dry run, and a note otherwise."""
    if options.json and options.dry_run:
        say_json(retry_preview_shape(preview, max_cost))
        return
    tell = say if options.dry_run else note
    for job_id in preview.jobs:
        tell(job_id)
    more = f"; more have failed than the cap of {options.cap} lets through" if preview.more else ""
    tell(f"{len(preview.jobs)} failed {'job' if len(preview.jobs) == 1 else 'jobs'}{more}")
    if preview.jobs:
        told_cost(preview.cost, tell)


def chain(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        job = await queue.jobs.find(JobId(options.id), owner=None)

        async def once() -> None:
            jobs_listing(empty="no attempts").tell(options, await queue.jobs.chain(job.id), is_last=True)

        await watched(options, queue.storage.clock, once)

    looking(look)


def edit(options: Options) -> int:
    params = object_from(options.params, field="--params") or {}

    async def change(queue: "Queue") -> int:
        job = await queue.jobs.find(JobId(options.id), owner=None)
        if is_dry_run(options, f"give {job.id} other params"):
            return exits.OK
        edited = await queue.jobs.edit_params(job.id, params)
        tell(options, lambda: job_shape(edited), f"{edited.id} has other params now")
        return exits.OK

    return changing(change)
