"""`duly run`: the ledger's rows, one by one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from duly.cli import exits, graph_events
from duly.cli.consent import is_dry_run
from duly.cli.listing import add_page, show_list
from duly.cli.logs import follow_run
from duly.cli.output import note, say, say_json, tell
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_most, add_wait
from duly.cli.run_words import runs_listing
from duly.cli.shapes import job_shape, run_detail_shape, run_shape
from duly.cli.store import changing, looking
from duly.cli.waiting import deadline_of, end_of_run
from duly.domain.runs import Run, RunKind, RunStatus

if TYPE_CHECKING:
    from duly.bootstrap import Queue


def define(parser: Parser) -> None:
    commands = Commands(parser)
    listed = commands.add("list", list_all, "all of them, newest first")
    listed.add_argument("--schedule", metavar="ID", help="only those of one schedule")
    listed.add_argument("--status", choices=list(RunStatus), help="only those in one status")
    listed.add_argument("--kind", choices=list(RunKind), help="only those of one kind")
    add_page(listed, "RUN", once="--before")
    show_ = commands.add("show", show, "one of them, with its attempts")
    cancel_ = commands.add("cancel", cancel, "end it, or ask it to stop; what does not stop loses its claim")
    log_ = commands.add("log", log, "what its attempts said")
    events_ = commands.add("events", graph_events.show, "what its graph told, first to last")
    watch_ = commands.add("watch", graph_events.watch, "follow what it says and what its graph tells, until it ends")
    for command in (show_, cancel_, log_, events_, watch_):
        command.add_argument("id", metavar="RUN")
    graph_events.add_after(events_)
    graph_events.add_after(watch_)
    add_most(events_, default=100)
    add_wait(show_)
    cancel_.add_argument("--reason", default="cancelled from the shell", metavar="TEXT", help="kept with the run")
    add_wait(cancel_)
    add_dry_run(cancel_)
    log_.add_argument("--follow", action="store_true", help="go on until the run has ended")
    for command in (show_, cancel_, log_, events_, watch_):
        add_json(command)


def list_all(options: Options) -> None:
    async def fetch(queue: "Queue") -> Sequence[Run]:
        return await queue.runs.list(
            owner=None,
            schedule_id=options.schedule,
            status=options.status and RunStatus(options.status),
            kind=options.kind and RunKind(options.kind),
            before=options.after,
            most=options.most,
        )

    show_list(options, runs_listing(empty="no runs"), fetch)


def show(options: Options) -> int | None:
    async def look(queue: "Queue") -> int | None:
        if options.wait:
            ended = await end_of_run(queue, options.id, deadline=deadline_of(options, queue.storage.clock))
            return told_end(options, ended)
        run = await queue.runs.get(options.id, owner=None)
        attempts = await queue.runs.attempts(run.id, owner=None)
        if options.json:
            say_json(run_detail_shape(run, attempts, queue.trace_url(run.trace_id)))
            return exits.OK
        tell(options, lambda: run_shape(run))
        if (url := queue.trace_url(run.trace_id)) is not None:
            say(f"its trace: {url}")
        for job in attempts:
            told = job_shape(job)
            say(f"attempt {job.attempt}: {job.id}, {told['status']}" + (f", {told['error']}" if told["error"] else ""))
        return exits.OK

    return looking(look)


def told_end(options: Options, ended: Run | None) -> int:
    if ended is None:
        note("duly: it did not end in time; it goes on")
        return exits.TIMED_OUT
    tell(options, lambda: run_shape(ended))
    return exits.OK if ended.status is RunStatus.SUCCESS else exits.FAILED


def cancel(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        deadline = deadline_of(options, queue.storage.clock)
        run = await queue.runs.get(options.id, owner=None)
        if is_dry_run(options, f"cancel {run.id}, which is {run.status.value}"):
            return exits.OK
        run = await queue.runs.cancel(options.id, owner=None, reason=options.reason)
        if options.wait:
            ended = await end_of_run(queue, run.id, deadline=deadline)
            told = told_end(options, ended)
            return told if ended is None else exits.OK
        stops = "" if run.status.is_terminal else ", and was asked to stop"
        tell(options, lambda: run_shape(run), f"{run.id} is {run.status.value}{stops}")
        return exits.OK

    return changing(change)


def log(options: Options) -> None:
    looking(lambda queue: follow_run(queue, options.id, follow=options.follow, as_json=options.json))
