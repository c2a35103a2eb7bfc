"""`duly serve`: the HTTP API, until it is stopped."""

import asyncio
import ipaddress

from duly.cli import processes
from duly.cli.output import note
from duly.cli.parser import Options, Parser, whole


def define(parser: Parser) -> None:
    parser.add_argument("--host", metavar="ADDRESS", help="what to bind (default: DULY_HOST, else 127.0.0.1)")
    parser.add_argument(
        "--port", type=whole(0, 65_535), metavar="N", help="0 is any that is free (default: DULY_PORT, else 8470)"
    )
    parser.add_argument("--app", metavar="PROGRAM", help="take direct calls of this program, and execute its graphs")
    parser.set_defaults(run=serve)


def serve(options: Options) -> None:
    from duly.bootstrap import serve as serve_http
    from duly.cli.worker import loaded

    app = None if options.app is None else loaded(options.app)

    async def work(queue: processes.Queue) -> None:
        host = options.host or queue.settings.host
        port = queue.settings.port if options.port is None else options.port
        if not is_loopback(host):
            await _warn(queue, host)
        stop = asyncio.Event()
        with processes.stopping(stop):
            await serve_http(
                queue,
                host=host,
                port=port,
                stop=stop,
                on_ready=lambda url: note(f"serving {url}; stop with Ctrl-C"),
                graphs=app.graphs if app is not None and len(app.graphs) else None,
                handlers=None if app is None else lambda: app.handlers,
            )

    processes.run(work, None if app is None else app.settings)


async def _warn(queue: processes.Queue, host: str) -> None:
    """Whoever can reach it from outside must show a token, so without one it is of no use."""
    now = queue.storage.clock.now()
    if not any(token.is_good(now) for token in await queue.tokens.list(owner=None)):
        note(f"{host} can be reached from outside, so every request needs a token, and there is none:")
        note("  make one with: duly token add --role admin")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
