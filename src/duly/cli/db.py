"""`duly db`: which database it is, and the schema it has."""

import asyncio
from typing import TYPE_CHECKING

from duly.cli import exits
from duly.cli.consent import is_agreed
from duly.cli.output import facts, note, say, say_json
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_yes
from duly.cli.store import changing
from duly.cli.times import when_from
from duly.domain.errors import NotFound
from duly.domain.instants import instant_of, written

if TYPE_CHECKING:
    from duly.bootstrap import Queue


def define(parser: Parser) -> None:
    commands = Commands(parser)
    migrate_ = commands.add("migrate", migrate, "make the database if need be, and bring its schema up to date")
    add_dry_run(migrate_)
    version_ = commands.add("version", version, "the schema it has and the one this duly knows; 1 if they differ")
    url_ = commands.add("url", url, "its address, without password")
    prune_ = commands.add("prune", prune, "forget jobs and deliveries that ended long ago; the ledger stays")
    prune_.add_argument("--before", required=True, metavar="WHEN", help="an instant, or how long ago, such as 30d")
    add_yes(prune_)
    add_dry_run(prune_)
    for command in (migrate_, version_, url_, prune_):
        add_json(command)


def migrate(options: Options) -> int:
    async def nothing(_: object) -> None:
        """Opening is what migrates."""

    before, known = _versions()
    if options.dry_run:
        note(f"dry run: would migrate from schema {before} to {known}; nothing was changed")
        return exits.OK
    changing(nothing, creates=True)
    after, known = _versions()
    if options.json:
        say_json({"from": before, "to": after})
    else:
        say(f"schema {after}" + (", as it was" if before == after else f", from {before}"))
    return exits.OK


def version(options: Options) -> int:
    from duly.bootstrap import settings_of_environment, store_facts

    store = asyncio.run(store_facts(settings_of_environment()))
    if options.json:
        told = {"engine": store.engine, "version": store.version}
        say_json({**told, "schema_found": store.schema_found, "schema_known": store.schema_known})
    else:
        facts([("engine", f"{store.engine} {store.version}"), ("schema", store.schema_found)])
    if not store.is_current:
        note(f"duly: this duly knows schema {store.schema_known}: migrate with duly db migrate, or upgrade duly")
        return exits.FAILED
    return exits.OK


def url(options: Options) -> None:
    from duly.bootstrap import settings_of_environment

    shown = settings_of_environment().database_shown
    if options.json:
        say_json({"url": shown})
    else:
        say(shown)


def prune(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        before = instant_of(
            when_from(options.before, field="--before", now=queue.storage.clock.now()), field="--before"
        )
        question = f"forget every job and delivery that ended before {written(before)}, with what it said?"
        if options.dry_run:
            note(f"dry run: would {question.rstrip('?')}; nothing was changed")
            return exits.OK
        if not is_agreed(options, question):
            return exits.FAILED
        count = await queue.jobs.prune(before=before)
        deliveries = await queue.webhooks.prune(before=before)
        if options.json:
            say_json({"pruned": count, "deliveries": deliveries})
        else:
            say(f"forgot {count} jobs" + (f" and {deliveries} deliveries of webhooks" if deliveries else ""))
        return exits.OK

    return changing(change)


def _versions() -> tuple[int, int | None]:
    """What there is and what is known; of a database that is not there yet, nothing."""
    from duly.bootstrap import settings_of_environment, store_facts

    try:
        store = asyncio.run(store_facts(settings_of_environment()))
    except NotFound:
        return 0, None
    return store.schema_found, store.schema_known
