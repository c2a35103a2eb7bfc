"""Which commands there are. Only the one that is run is imported, so that help is there at once."""

import difflib
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from duly import __version__
from duly.cli import exits
from duly.cli.parser import Parser
from duly.domain.errors import DulyError

COMMANDS = {
    "dev": "run everything in one process, with a demo or your own schedules",
    "init": "write a schedules.py to begin with",
    "schedule": "add, look at, change, pause, trigger and backfill schedules",
    "sync": "make system schedules what a file says",
    "run": "look at the runs of schedules, follow and cancel them",
    "direct": "call a template now, ahead of the queue, and print its answer",
    "job": "put jobs, look at them, move, retry, follow and cancel them",
    "template": "define the moulds of jobs, and put jobs from them",
    "group": "make groups of jobs, follow, cancel and retry them",
    "workflow": "deploy workflows, look at them, run them",
    "review": "look at what runs ask people, and decide it",
    "pool": "look at pools and set their limits",
    "account": "open accounts, add credit, and see what was spent",
    "grant": "make and revoke grants, under which graphs run at an account's cost",
    "budget": "limit what accounts and schedules may spend",
    "cron": "say what a cron expression means and when it fires",
    "why": "say why a schedule, slot, run, job, group or workflow run is as it is",
    "audit": "prove that no slot was lost or doubled, and that every account adds up",
    "serve": "serve the HTTP API",
    "worker": "run the jobs of a program",
    "timekeeper": "open the slots of schedules when they are due",
    "token": "make and revoke the tokens that callers of the HTTP API show",
    "webhook": "tell others of what has ended, and see what became of it",
    "db": "migrate the database, and say which one it is",
    "check": "list everything that is wrong with the configuration",
    "doctor": "say how healthy the database and those who use it are",
    "backup": "copy a SQLite database while it is in use",
    "completion": "print the script that lets a shell complete `duly`",
}

# `duly cron EXPRESSION` was there before its sub-commands.
_CRON_COMMANDS = ("explain", "next", "-h", "--help")


# What there is, for whoever named what is not.
_LISTS = {
    "unknown_schedule": "; see: duly schedule list",
    "unknown_run": "; see: duly run list",
    "unknown_job": "; see: duly job list",
    "unknown_workflow": "; see: duly workflow list",
    "unknown_review": "; see: duly review list --state any",
    "unknown_pool": "; see: duly pool list",
    "unknown_template": "; see: duly template list",
    "unknown_group": "; see: duly group list",
    "unknown_account": "; see: duly account list",
    "unknown_grant": "; see: duly grant list",
    "unknown_budget": "; see: duly budget list",
    "unknown_token": "; see: duly token list",
    "unknown_webhook": "; see: duly webhook list",
    "unknown_delivery": "; see: duly webhook deliveries",
    "unknown_id": "; see: duly schedule list, duly run list, duly job list",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """What the command ends with; whatever Duly raises on purpose is one line, not a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = parser_for(given).parse_args(_written_out(given))
        code = options.run(options)
        sys.stdout.flush()
    except DulyError as error:
        sys.stderr.write(f"duly: {_one_line(error)}{_LISTS.get(error.code, '')}\n")
        return exits.exit_code_of(error)
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except BrokenPipeError:  # whoever reads has seen enough; what is left must not be flushed into the same pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.OK
    return exits.OK if code is None else int(code)


def parser_for(arguments: Sequence[str]) -> Parser:
    """Every command by name, and whole the one that is asked for."""
    parser = Parser(prog="duly", description="A durable scheduler for AI workflows.")
    parser.add_argument("--version", action="version", version=f"duly {__version__}")
    asked = next((argument for argument in arguments if not argument.startswith("-")), None)
    if asked is not None and asked not in COMMANDS:
        near = difflib.get_close_matches(asked, COMMANDS, n=1)
        parser.error(f"there is no command {asked[:40]!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    added = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        command = added.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if name == asked:
            define(name, command)
    return parser


def define(name: str, parser: Parser) -> None:
    import_module(f"duly.cli.{name}").define(parser)


def _written_out(arguments: list[str]) -> list[str]:
    if arguments[:1] == ["cron"] and len(arguments) > 1 and arguments[1] not in _CRON_COMMANDS:
        return ["cron", "explain", *arguments[1:]]
    return arguments


def _one_line(error: DulyError) -> str:
    return " ".join(str(error).split())
