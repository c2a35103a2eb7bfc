"""`duly sync`: makes system schedules what a file says, all of them or none."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duly.cli import exits
from duly.cli.output import note, say, say_json, shortened, written
from duly.cli.parser import Options, Parser, add_dry_run, add_json

if TYPE_CHECKING:
    from duly.bootstrap import Queue
    from duly.wire.governance import SyncedSchedule, SyncReport

_LONGEST_VALUE = 60


def define(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="TOML, or YAML with duly[yaml]: a table for each schedule")
    add_dry_run(parser)
    add_json(parser)
    parser.set_defaults(run=sync)


def sync(options: Options) -> int:
    """Read and judged as a whole before there need be a database."""
    from duly import bootstrap
    from duly.cli.files import table_in
    from duly.cli.store import changing, looking
    from duly.wire.governance import governed_from, report_shape

    settings = bootstrap.settings_of_environment()
    governed = governed_from(table_in(options.file), settings.policies)

    async def work(queue: "Queue") -> int:
        lines = await queue.governance.sync(governed, dry_run=options.dry_run)
        return _told(options, report_shape(lines, dry_run=options.dry_run))

    if not options.dry_run:
        return changing(work, creates=True)
    file = bootstrap.database_file(settings)
    if file is None or file.exists():
        return looking(work)
    # There is none yet, and a dry run makes none.
    import asyncio

    nowhere = replace(settings, database_url=":memory:")
    return asyncio.run(bootstrap.changing(nowhere, work, creates=True))


def _told(options: Options, report: "SyncReport") -> int:
    if options.json:
        say_json(report.model_dump(mode="json"))
        return exits.OK
    for item in report.items:
        say(_line(item))
        for drift in item.drift:
            say(f"    {drift.field}: {_value(drift.before)} → {_value(drift.after)}")
    counts = [f"{getattr(report, fate)} {fate}" for fate in ("created", "updated", "unchanged", "paused")]
    say(", ".join(counts))
    if report.dry_run:
        note("dry run: nothing was changed")
    return exits.OK


def _line(item: "SyncedSchedule") -> str:
    held = ", stays paused as somebody left it" if item.held else ""
    return f"{item.fate.value:<9}  {item.id}{held}"


def _value(value: Any) -> str:
    return "-" if value is None else shortened(written(value), longest=_LONGEST_VALUE)
