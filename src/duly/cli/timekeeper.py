"""`duly timekeeper`: opens the slots of schedules when they are due, until it is stopped."""

from duly.cli import processes
from duly.cli.output import note
from duly.cli.parser import Options, Parser


def define(parser: Parser) -> None:
    parser.set_defaults(run=timekeeper)


def timekeeper(options: Options) -> None:  # noqa: ARG001 - it takes none
    async def work(queue: processes.Queue) -> None:
        note(f"keeping time on {queue.settings.database_shown}; stop with Ctrl-C")
        await processes.until_stopped([queue.timekeeper()])

    processes.run(work)
