"""The `duly` command."""

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Sequence
from datetime import datetime, timedelta, timezone
from itertools import islice

import duly
from duly.application.audit import Audit
from duly.application.why import Why
from duly.bootstrap import backup, moment, reading, settings_of_environment
from duly.cli.audit import audit
from duly.cli.why import why
from duly.dev.options import DEFAULT_HOST, DEFAULT_PORT, DevOptions
from duly.dev.run import run_dev
from duly.domain.cadence.wall import zone
from duly.domain.errors import Conflict, DulyError, InvalidInput, NotFound, Refused, Unavailable
from duly.domain.texts import whole_number_of
from duly.ports.storage import ReadOnlyStorage

# What a script can rely on.
_EXIT_CODES: tuple[tuple[type[DulyError], int], ...] = (
    (NotFound, 3),
    (InvalidInput, 2),
    (Conflict, 4),
    (Refused, 5),
    (Unavailable, 1),
)
_NOTED_SPAN = timedelta(days=36_525)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except DulyError as error:
        print(f"duly: {error}", file=sys.stderr)
        sys.exit(next((code for family, code in _EXIT_CODES if isinstance(error, family)), 1))
    except BrokenPipeError:  # whoever reads has seen enough; what is left must not be flushed into the same pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="duly", description="A durable scheduler for AI workflows.")
    parser.add_argument("--version", action="version", version=f"duly {duly.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("dev", help="run everything in one process, with a demo or your own schedules")
    command.add_argument("--host", default=DEFAULT_HOST, help="where to listen (default: this machine alone)")
    command.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"0 is any that is free ({DEFAULT_PORT})")
    command.add_argument("--postgres", action="store_true", help="on a PostgreSQL of its own, from a wheel")
    command.add_argument("--no-demo", action="store_true", help="run nothing while there is no schedules.py")
    command.set_defaults(run=_dev)

    command = commands.add_parser("cron", help="say what a cron expression means and when it fires")
    command.add_argument("expression")
    command.add_argument("--tz", default="UTC", help="a zone of the tz database (default: UTC)")
    command.add_argument("--count", type=int, default=10, help="how many fires to list (default: 10)")
    command.set_defaults(run=_explain)

    command = commands.add_parser("audit", help="prove that no slot was lost or doubled")
    command.add_argument("--schedule", metavar="ID", help="one schedule (default: all that ever were)")
    command.add_argument("--since", metavar="WHEN", help="later slots only: an instant, or how long ago (7d, 12h)")
    command.add_argument("--json", action="store_true", help="for programs")
    command.set_defaults(run=_audit)

    command = commands.add_parser("why", help="say what became of a schedule, or of one slot, and why")
    command.add_argument("schedule", metavar="SCHEDULE")
    command.add_argument("slot", metavar="SLOT", nargs="?", help="an instant such as 2026-03-29T01:00:00Z")
    command.add_argument("--json", action="store_true", help="for programs")
    command.set_defaults(run=_why)

    command = commands.add_parser("backup", help="copy a SQLite database while it is in use")
    command.add_argument("to", help="a file that does not exist yet")
    command.set_defaults(run=lambda options: asyncio.run(backup(settings_of_environment(), options.to)))
    return parser


def _dev(options: argparse.Namespace) -> None:
    asked = DevOptions(host=options.host, port=options.port, postgres=options.postgres, demo=not options.no_demo)
    sys.exit(asyncio.run(run_dev(asked)))


def _explain(options: argparse.Namespace) -> None:
    cadence = duly.cron(options.expression, tz=options.tz)
    whole_number_of(options.count, field="--count", least=1, most=10_000)
    print(cadence.explain())
    fires = list(islice(cadence.after(moment()), options.count))
    for fire in fires:
        print(f"  {fire:%Y-%m-%d %H:%M:%S}Z   {_wall_time(fire, options.tz):%a %Y-%m-%d %H:%M:%S %z}")
    for note in cadence.dst_notes(fires[0], _noted_until(fires)) if fires else ():
        print(f"  {note.text}")
    sys.stdout.flush()


def _audit(options: argparse.Namespace) -> None:
    settings = settings_of_environment()

    def look(storage: ReadOnlyStorage) -> Awaitable[bool]:
        use_case = Audit(storage=storage, outage_after=settings.pace.outage_after)
        return audit(use_case, print, schedule=options.schedule, since=options.since, as_json=options.json)

    laws_hold = asyncio.run(reading(settings, look))
    sys.stdout.flush()
    if not laws_hold:
        sys.exit(1)


def _why(options: argparse.Namespace) -> None:
    settings = settings_of_environment()

    def look(storage: ReadOnlyStorage) -> Awaitable[None]:
        use_case = Why(storage=storage, outage_after=settings.pace.outage_after)
        return why(use_case, print, schedule=options.schedule, slot=options.slot, as_json=options.json)

    asyncio.run(reading(settings, look))
    sys.stdout.flush()


def _wall_time(fire: datetime, tz: str) -> datetime:
    """By the same zone data as the fire, which may be newer than the machine's."""
    offset = zone(tz).span_at(int(fire.timestamp())).offset
    return fire.astimezone(timezone(timedelta(seconds=offset)))


def _noted_until(fires: Sequence[datetime]) -> datetime:
    return fires[0] + min(fires[-1] - fires[0], _NOTED_SPAN)


if __name__ == "__main__":
    main()
