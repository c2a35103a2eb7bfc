"""`duly backup`: a complete copy of a SQLite database in use; of a big one, how far it has come."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from duly.cli.output import note, tell
from duly.cli.parser import Options, Parser, add_json

# Below some 40 MB, a copy is done before anybody would look.
_MANY_PAGES = 20_000
_STEPS = 10


def define(parser: Parser) -> None:
    parser.add_argument("to", metavar="FILE", help="a file that does not exist yet")
    add_json(parser)
    parser.set_defaults(run=backup)


def backup(options: Options) -> None:
    from duly.bootstrap import backup as copy
    from duly.bootstrap import settings_of_environment

    asyncio.run(copy(settings_of_environment(), options.to, on_progress=progress(note)))
    size = Path(options.to).stat().st_size
    tell(options, lambda: {"file": options.to, "bytes": size}, f"copied {size} bytes to {options.to}")


def progress(tell: Callable[[str], None]) -> Callable[[int, int], None]:
    """Tells each tenth once."""
    told = 0

    def on_progress(copied: int, pages: int) -> None:
        nonlocal told
        tenths = copied * _STEPS // max(pages, 1)
        if pages >= _MANY_PAGES and tenths > told:
            told = tenths
            tell(f"copied {tenths * 100 // _STEPS} %")

    return on_progress
