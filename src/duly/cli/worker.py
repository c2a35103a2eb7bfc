"""`duly worker`: runs the jobs of a program, until it is stopped."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from duly.cli import processes
from duly.cli.output import note
from duly.cli.parser import Options, Parser
from duly.domain.errors import InvalidInput
from duly.domain.ids import PoolName
from duly.domain.sessions import MOST_EXECUTORS
from duly.domain.texts import name_of

if TYPE_CHECKING:
    from duly.app.duly import Duly


def define(parser: Parser) -> None:
    parser.add_argument("--app", required=True, metavar="PROGRAM", help="schedules.py, or package.module:app")
    parser.add_argument(
        "--pool",
        action="append",
        default=[],
        metavar="NAME=N",
        help="work N jobs of this pool at once; may be said again (default: the program's pools)",
    )
    parser.add_argument("--keep-time", action="store_true", help="be a timekeeper, too")
    parser.set_defaults(run=worker)


def worker(options: Options) -> None:
    given = pools_from(options.pool)
    app = loaded(options.app)

    async def work(queue: processes.Queue) -> None:
        await app.prepare(queue)
        pools = given or await app.worker_pools(queue)
        for name in given:
            await queue.pools.get(name)
        parts: list[processes.Part] = [
            queue.worker(handlers=app.handlers, pools=pools, name=processes.own_name(app.name))
        ]
        if options.keep_time:
            parts.append(queue.timekeeper())
        told = ", ".join(f"{name}={count}" for name, count in pools.items())
        note(f"working on {queue.settings.database_shown}, pools {told or 'none'}; stop with Ctrl-C")
        await processes.until_stopped(parts)

    processes.run(work, app.settings)


def loaded(program: str) -> "Duly":
    """What the program's own lines raised is theirs to read; the error itself is one line."""
    from duly.app.loading import AppNotLoaded, load

    try:
        return load(program)
    except AppNotLoaded as error:
        if error.trace:
            note(error.trace.rstrip())
        raise


def pools_from(texts: Sequence[str]) -> Mapping[PoolName, int]:
    pools: dict[PoolName, int] = {}
    for text in texts:
        name, _, count = text.partition("=")
        if not (count.isascii() and count.isdigit() and len(count) <= 5 and 1 <= int(count) <= MOST_EXECUTORS):
            raise InvalidInput("--pool", f"{text[:40]!r} names no number of jobs", fix="write --pool default=4")
        pools[PoolName(name_of(name, field="--pool"))] = int(count)
    return pools
