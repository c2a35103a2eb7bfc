"""`duly check`: everything that is wrong with the configuration, at once."""

import asyncio
from typing import TYPE_CHECKING

from duly.cli import exits
from duly.cli.output import note, say, say_json
from duly.cli.parser import Options, Parser, add_json
from duly.domain.errors import DulyError
from duly.domain.schedules import ScheduleState

if TYPE_CHECKING:
    from duly.bootstrap import Queue

_PAGE = 1_000


def define(parser: Parser) -> None:
    add_json(parser)
    parser.set_defaults(run=check)


def check(options: Options) -> int:
    from duly import bootstrap

    problems = list(map(str, bootstrap.problems_of_environment()))
    # Without settings there is no saying which database is meant.
    if not problems:
        problems = asyncio.run(_problems_of_database())
    if options.json:
        say_json({"problems": problems, "ok": not problems})
    for problem in () if options.json else problems:
        say(problem)
    if not problems:
        note("no problems")
    return exits.FAILED if problems else exits.OK


async def _problems_of_database() -> list[str]:
    from duly import bootstrap

    settings = bootstrap.settings_of_environment()
    try:
        facts = await bootstrap.store_facts(settings)
        if not facts.is_current:
            fix = "run duly db migrate" if facts.schema_found < facts.schema_known else "upgrade duly"
            return [f"{settings.database_shown}: has schema {facts.schema_found}, not {facts.schema_known} ({fix})"]
        return await bootstrap.looking(settings, _problems_of_schedules)
    except DulyError as error:
        return [str(error)]


async def _problems_of_schedules(queue: "Queue") -> list[str]:
    problems: list[str] = []
    pools = {pool.name for pool in await queue.pools.all()}
    after: str | None = None
    while found := await queue.schedules.list(owner=None, after=after, most=_PAGE):
        for schedule in found:
            if schedule.state is ScheduleState.BROKEN:
                problems.append(f"schedule {schedule.id}: is broken: {schedule.state_reason} (edit or resume it)")
            if schedule.target.pool not in pools:
                pool = schedule.target.pool
                problems.append(f"schedule {schedule.id}: there is no pool {pool!r} (duly pool set {pool} --slots N)")
        after = found[-1].id
    return problems
