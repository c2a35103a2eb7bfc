"""`duly db`: which database it is, and the schema it has."""

import asyncio

from duly.cli import exits
from duly.cli.output import facts, note, say, say_json
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json
from duly.domain.errors import NotFound


def define(parser: Parser) -> None:
    commands = Commands(parser)
    migrate_ = commands.add("migrate", migrate, "make the database if need be, and bring its schema up to date")
    add_dry_run(migrate_)
    version_ = commands.add("version", version, "the schema it has and the one this duly knows; 1 if they differ")
    url_ = commands.add("url", url, "its address, without password")
    for command in (migrate_, version_, url_):
        add_json(command)


def migrate(options: Options) -> int:
    from duly.bootstrap import changing, settings_of_environment  # noqa: PLC0415 - help must not wait for it

    async def nothing(_: object) -> None:
        """Opening is what migrates."""

    before, known = _versions()
    if options.dry_run:
        note(f"dry run: would migrate from schema {before} to {known}; nothing was changed")
        return exits.OK
    asyncio.run(changing(settings_of_environment(), nothing, creates=True))
    after, known = _versions()
    if options.json:
        say_json({"from": before, "to": after})
    else:
        say(f"schema {after}" + (", as it was" if before == after else f", from {before}"))
    return exits.OK


def version(options: Options) -> int:
    from duly.bootstrap import settings_of_environment, store_facts  # noqa: PLC0415 - help must not wait for it

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
    from duly.bootstrap import settings_of_environment  # noqa: PLC0415 - help must not wait for it

    shown = settings_of_environment().database_shown
    if options.json:
        say_json({"url": shown})
    else:
        say(shown)


def _versions() -> tuple[int, int | None]:
    """What there is and what is known; of a database that is not there yet, nothing."""
    from duly.bootstrap import settings_of_environment, store_facts  # noqa: PLC0415 - help must not wait for it

    try:
        store = asyncio.run(store_facts(settings_of_environment()))
    except NotFound:
        return 0, None
    return store.schema_found, store.schema_known
