"""`duly schedule`: what each command is called and takes."""

from duly.cli import schedule_changes, schedule_looks, schedule_runs
from duly.cli.listing import add_page
from duly.cli.parser import (
    Commands,
    Parser,
    add_dry_run,
    add_json,
    add_max_cost,
    add_most,
    add_wait,
    add_watch,
    add_yes,
    whole,
)
from duly.domain.policies import CatchUp, Overlap


def define(parser: Parser) -> None:
    commands = Commands(parser)
    _define_changes(commands)
    _define_runs(commands)
    _define_looks(commands)


def _define_changes(commands: Commands) -> None:
    add = commands.add("add", schedule_changes.add, "show when it will fire, then save it")
    add.add_argument("id", nargs="?", metavar="ID", help="its name (default: one is drawn)")
    _plan(add)
    add.add_argument("--owner", default="local", metavar="NAME", help="whose it is (default: local)")
    edit = commands.add("edit", schedule_changes.edit, "change what is given, from the next slot on")
    edit.add_argument("id", metavar="ID")
    _plan(edit)
    _expected(edit)
    _withdraw(edit)
    for command in (add, edit):
        _change(command)
        add_yes(command)
    pause = commands.add("pause", schedule_changes.pause, "open no more slots; what runs goes on")
    resume = commands.add("resume", schedule_changes.resume, "open slots again, from now on")
    delete = commands.add("delete", schedule_changes.delete, "end it; its ledger stays")
    for command in (pause, resume, delete):
        command.add_argument("id", metavar="ID")
        _expected(command)
        _change(command)
    for command in (pause, delete):
        _withdraw(command)
    add_yes(delete)


def _define_runs(commands: Commands) -> None:
    trigger = commands.add("trigger", schedule_runs.trigger, "run it now, paused or not")
    trigger.add_argument("id", metavar="ID")
    _key(trigger)
    add_wait(trigger)
    _change(trigger)
    backfill = commands.add("backfill", schedule_runs.backfill, "run it for fires of the past, after showing which")
    backfill.add_argument("id", metavar="ID")
    backfill.add_argument("--from", dest="start", required=True, metavar="WHEN", help="an instant, or how long ago")
    backfill.add_argument("--to", dest="end", metavar="WHEN", help="an instant, or how long ago (default: now)")
    backfill.add_argument(
        "--cap", type=whole(1, 10_000), default=100, metavar="N", help="refuse more runs than this (default: 100)"
    )
    add_max_cost(backfill)
    _key(backfill)
    add_yes(backfill)
    _change(backfill)


def _define_looks(commands: Commands) -> None:
    listed = commands.add("list", schedule_looks.list_all, "all of them, with their next slot and last run")
    listed.add_argument("--owner", metavar="NAME", help="only those of one owner")
    add_page(listed, "ID", most=100)
    show = commands.add("show", schedule_looks.show, "one of them, in full")
    upcoming = commands.add("upcoming", schedule_looks.upcoming, "its next slots, and when they fire")
    runs = commands.add("runs", schedule_looks.runs, "its runs, newest slots first, of a deleted one too")
    history = commands.add("history", schedule_looks.history, "its revisions, first to last, of a deleted one too")
    for command in (show, upcoming, runs, history):
        command.add_argument("id", metavar="ID")
    runs.add_argument("--before", metavar="WHEN", help="only slots before this instant")
    add_page(runs, "RUN")
    add_most(upcoming, 5)
    add_watch(upcoming)
    for command in (show, upcoming, history):
        add_json(command)


def _plan(command: Parser) -> None:
    cadence = command.add_mutually_exclusive_group(required=command.prog.endswith(" add"))
    cadence.add_argument("--cron", metavar="EXPRESSION", help="5 fields, 6 with seconds first, or @daily")
    cadence.add_argument("--every", metavar="SPAN", help="a steady pace, such as 15m")
    cadence.add_argument("--at", metavar="WHEN", help="once, at an instant such as 2027-01-15T08:00:00Z")
    command.add_argument("--tz", metavar="ZONE", help="the zone of --cron (default: UTC)")
    command.add_argument("--anchor", metavar="WHEN", help="the instant that --every counts from (default: 1970)")
    command.add_argument("--start-at", metavar="WHEN", help="no slot before this instant")
    command.add_argument("--end-at", metavar="WHEN", help="no slot after this instant")
    command.add_argument(
        "--target",
        required=command.prog.endswith(" add"),
        metavar="KIND",
        help="the kind of job that each slot puts, or template:NAME",
    )
    command.add_argument("--input", metavar="JSON", help="what each job is given: JSON, @file, or - for stdin")
    command.add_argument("--pool", metavar="NAME", help="the pool of its jobs (default: default)")
    command.add_argument("--priority", type=whole(-32_767, 32_767), metavar="N", help="higher goes first (default: 0)")
    command.add_argument("--retries", type=whole(0, 999), metavar="N", help="how often to try again (default: 2)")
    command.add_argument("--time-limit", metavar="SPAN", help="a run that takes longer fails")
    command.add_argument("--overlap", choices=list(Overlap), help="what a slot does while another run is in flight")
    command.add_argument("--catch-up", choices=list(CatchUp), help="what becomes of slots that were missed")
    command.add_argument("--catch-up-cap", type=whole(1, 100_000), metavar="N", help="how many of them at most")
    command.add_argument("--jitter", metavar="SPAN", help="fire up to this much before or after, the same every time")


def _change(command: Parser) -> None:
    add_dry_run(command)
    add_json(command)


def _expected(command: Parser) -> None:
    command.add_argument(
        "--expect-revision", type=whole(1, 999_999_999), metavar="N", help="refuse if somebody changed it since"
    )


def _withdraw(command: Parser) -> None:
    command.add_argument("--withdraw", action="store_true", help="cancel its runs that still wait")


def _key(command: Parser) -> None:
    command.add_argument("--key", metavar="TEXT", help="the same key again answers the same runs")
