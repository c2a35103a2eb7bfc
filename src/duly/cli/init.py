"""`duly init`: a schedules.py to begin with."""

from duly.cli.parser import Options, Parser


def define(parser: Parser) -> None:
    parser.set_defaults(run=init)


def init(options: Options) -> None:
    raise NotImplementedError
