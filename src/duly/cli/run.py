"""`duly run`: the ledger's rows, one by one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from duly.cli import exits, graph_events
from duly.cli.logs import follow_run
from duly.cli.output import facts, note, say, say_json, shortened, table, watched
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_most, add_wait, add_watch
from duly.cli.shapes import at, job_shape, page, run_detail_shape, run_shape
from duly.cli.store import changing, looking
from duly.cli.waiting import deadline_of, end_of_run
from duly.domain.runs import Run, RunKind, RunStatus

if TYPE_CHECKING:
    from duly.bootstrap import Queue

_LONGEST_WHY = 80


def define(parser: Parser) -> None:
    commands = Commands(parser)
    listed = commands.add("list", list_all, "all of them, newest first")
    listed.add_argument("--schedule", metavar="ID", help="only those of one schedule")
    listed.add_argument("--status", choices=list(RunStatus), help="only those in one status")
    listed.add_argument("--kind", choices=list(RunKind), help="only those of one kind")
    listed.add_argument("--before", metavar="RUN", help="those older than this run")
    add_most(listed)
    add_watch(listed)
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
    for command in (listed, show_, cancel_, log_, events_, watch_):
        add_json(command)


def list_all(options: Options) -> None:
    status = None if options.status is None else RunStatus(options.status)
    kind = None if options.kind is None else RunKind(options.kind)

    async def look(queue: "Queue") -> None:
        async def once() -> None:
            found = await queue.runs.list(
                owner=None,
                schedule_id=options.schedule,
                status=status,
                kind=kind,
                before=options.before,
                most=options.most,
            )
            if options.json:
                cursor = found[-1].id if found else None
                say_json(page([run_shape(run) for run in found], most=options.most, cursor=cursor))
                return
            table(*run_rows(found), empty="no runs")

        await watched(options, queue.storage.clock, once)

    looking(look)


def run_rows(runs: Sequence[Run]) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
    heads = ("id", "schedule", "slot", "kind", "status", "started", "ended", "why")
    rows = [
        (
            run.id,
            run.schedule_id,
            at(run.scheduled_for),
            run.kind.value,
            run.status.value,
            at(run.started_at),
            at(run.completed_at),
            _why(run),
        )
        for run in runs
    ]
    return heads, rows


def _why(run: Run) -> str | None:
    """The reason; of a run that failed also what it said, in one line of bounded width."""
    said = (run.error_message or "").strip().splitlines() if run.status is RunStatus.ERROR else []
    told = [] if run.reason is None else [run.reason.value]
    return ": ".join([*told, *(shortened(line, longest=_LONGEST_WHY) for line in said[:1])]) or None


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
        show_run(run)
        if (url := queue.trace_url(run.trace_id)) is not None:
            say(f"its trace: {url}")
        for job in attempts:
            told = job_shape(job)
            say(f"attempt {job.attempt}: {job.id}, {told['status']}" + (f", {told['error']}" if told["error"] else ""))
        return exits.OK

    return looking(look)


def show_run(run: Run) -> None:
    facts([(name.replace("_", " "), value) for name, value in run_shape(run).items()])


def told_end(options: Options, ended: Run | None) -> int:
    if ended is None:
        note("duly: it did not end in time; it goes on")
        return exits.TIMED_OUT
    if options.json:
        say_json(run_shape(ended))
    else:
        show_run(ended)
    return exits.OK if ended.status is RunStatus.SUCCESS else exits.FAILED


def cancel(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        deadline = deadline_of(options, queue.storage.clock)
        run = await queue.runs.get(options.id, owner=None)
        if options.dry_run:
            note(f"dry run: would cancel {run.id}, which is {run.status.value}; nothing was changed")
            return exits.OK
        run = await queue.runs.cancel(options.id, owner=None, reason=options.reason)
        if options.wait:
            ended = await end_of_run(queue, run.id, deadline=deadline)
            told = told_end(options, ended)
            return told if ended is None else exits.OK
        if options.json:
            say_json(run_shape(run))
        else:
            say(f"{run.id} is {run.status.value}" + ("" if run.status.is_terminal else ", and was asked to stop"))
        return exits.OK

    return changing(change)


def log(options: Options) -> None:
    looking(lambda queue: follow_run(queue, options.id, follow=options.follow, as_json=options.json))
