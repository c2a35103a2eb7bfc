"""`duly init`: a program to begin with."""

from pathlib import Path

from duly.cli.invoked import invoked
from duly.cli.output import note, tell
from duly.cli.parser import Options, Parser, add_json


def define(parser: Parser) -> None:
    parser.add_argument("file", nargs="?", default="schedules.py", metavar="FILE", help="default: schedules.py")
    add_json(parser)
    parser.set_defaults(run=init)


def init(options: Options) -> None:
    from duly.dev.example import write_example

    write_example(Path(options.file))
    tell(options, lambda: {"file": options.file}, options.file)
    note(f"run it: {invoked()} dev")
