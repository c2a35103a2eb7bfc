"""`duly direct`: calls a template now, in this process, and prints what it answers."""

import asyncio
import json
import sys
from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from duly.cli import exits
from duly.cli.given import object_from, span_from
from duly.cli.output import say, say_json
from duly.cli.parser import Options, Parser, add_json
from duly.domain.errors import InvalidInput
from duly.domain.instants import SECOND, Micros
from duly.ports.clock import Clock

if TYPE_CHECKING:
    from duly.bootstrap import Queue

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAME = Micros(SECOND // 10)
_CLEAR_LINE = "\r\x1b[K"


def define(parser: Parser) -> None:
    parser.add_argument("template", metavar="TEMPLATE", help="a template's name, or a job's of the program")
    parser.add_argument("--app", required=True, metavar="PROGRAM", help="schedules.py, or package.module:app")
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="one param, as JSON or else as text; may be said again",
    )
    parser.add_argument("--params", metavar="JSON", help="all of them: JSON, @file, or - for stdin")
    parser.add_argument("--timeout", default="60s", metavar="SPAN", help="for place and run (default: 60s)")
    add_json(parser)
    parser.set_defaults(run=direct)


def direct(options: Options) -> int:
    from duly.bootstrap import changing
    from duly.cli.worker import loaded

    wait_s = span_from(options.timeout, field="--timeout") / SECOND
    params = {**(object_from(options.params, field="--params") or {}), **params_from(options.param)}
    app = loaded(options.app)

    async def call(queue: "Queue") -> Any:
        calls = queue.direct_calls(handlers=lambda: app.handlers, name="duly direct")
        try:
            asked = app.direct_on(calls, options.template, params, owner=None, timeout=wait_s)
            return await _with_spinner(asked, queue.storage.clock, options.template)
        finally:
            await calls.close()

    answer = asyncio.run(changing(app.settings, call, creates=False))
    if options.json or not isinstance(answer, str):
        say_json(answer)
    else:
        say(answer)
    return exits.OK


def params_from(texts: Sequence[str]) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for text in texts:
        name, given, value = text.partition("=")
        if not name or not given:
            raise InvalidInput("--param", f"{text[:40]!r} names no value", fix="write --param total=3")
        try:
            params[name] = json.loads(value)
        except (json.JSONDecodeError, RecursionError):
            params[name] = value
    return params


async def _with_spinner(asked: Any, clock: Clock, name: str) -> Any:
    """For people only: what is piped on stays as it is."""
    if not sys.stderr.isatty():
        return await asked
    spinning = asyncio.ensure_future(_spin(clock, name))
    try:
        return await asked
    finally:
        spinning.cancel()
        await asyncio.gather(spinning, return_exceptions=True)
        sys.stderr.write(_CLEAR_LINE)
        sys.stderr.flush()


async def _spin(clock: Clock, name: str) -> None:
    for frame in cycle(_FRAMES):
        sys.stderr.write(f"{_CLEAR_LINE}{frame} {name}")
        sys.stderr.flush()
        await clock.sleep(_FRAME)
