"""`duly cron`: what an expression means, and when it fires."""

from datetime import datetime
from itertools import islice

from duly.cli import fires
from duly.cli.output import say, say_json
from duly.cli.parser import Commands, Options, Parser, add_json
from duly.cli.shapes import cadence_preview_shape
from duly.domain.cadence import Cron, cron
from duly.domain.texts import whole_number_of

_MOST = 10_000


def define(parser: Parser) -> None:
    commands = Commands(parser)
    _options(commands.add("explain", _explain, "say it in words, list its fires, and note what clock changes do"))
    _options(commands.add("next", _next, "list its fires alone, as UTC instants"))


def _options(command: Parser) -> None:
    command.add_argument("expression", metavar="EXPRESSION", help="5 fields, 6 with seconds first, or @daily")
    command.add_argument("--tz", default="UTC", metavar="ZONE", help="a zone of the tz database (default: UTC)")
    command.add_argument("--count", type=int, default=10, metavar="N", help="how many fires to list (default: 10)")
    add_json(command)


def _explain(options: Options) -> None:
    cadence, now = _asked(options)
    if not options.json:
        for line in fires.explanation(cadence, now, count=options.count):
            say(line)
        return
    say_json(cadence_preview_shape(cadence, now, count=options.count))


def _next(options: Options) -> None:
    cadence, now = _asked(options)
    listed = [_written(fire) for fire in islice(cadence.after(now), options.count)]
    if options.json:
        say_json({"fires": listed})
        return
    for fire in listed:
        say(fire)


def _asked(options: Options) -> tuple[Cron, datetime]:
    from duly.bootstrap import moment

    cadence = cron(options.expression, tz=options.tz)
    whole_number_of(options.count, field="--count", least=1, most=_MOST)
    return cadence, moment()


def _written(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
