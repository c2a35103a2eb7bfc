"""`duly dev`: everything in one process, to watch."""

import asyncio

from duly.cli.invoked import invoked
from duly.cli.parser import Options, Parser, whole


def define(parser: Parser) -> None:
    parser.add_argument("--host", metavar="ADDRESS", help="what to bind (default: DULY_HOST, else 127.0.0.1)")
    parser.add_argument(
        "--port", type=whole(0, 65_535), metavar="N", help="0 is any that is free (default: DULY_PORT, else 8470)"
    )
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL server of its own, from a wheel")
    parser.add_argument("--no-demo", dest="demo", action="store_false", help="without a schedules.py, run nothing")
    parser.set_defaults(run=dev)


def dev(options: Options) -> int:
    from duly.bootstrap import settings_of_environment
    from duly.dev.options import DevOptions
    from duly.dev.run import run_dev

    settings = settings_of_environment()
    asked = DevOptions(
        settings=settings,
        host=options.host or settings.host,
        port=settings.port if options.port is None else options.port,
        postgres=options.postgres,
        demo=options.demo,
        command=invoked(),
    )
    return asyncio.run(run_dev(asked))
