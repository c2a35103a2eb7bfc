"""Where words go: data to stdout, notes and progress to stderr; colour for people only."""

import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from duly.cli.parser import Options
from duly.domain.instants import SECOND, Micros
from duly.ports.clock import Clock

WATCH_EVERY = Micros(2 * SECOND)

_CLEAR = "\x1b[H\x1b[2J\x1b[3J"
_PLAIN = "\x1b[0m"
_COLOURS = {
    "\x1b[32m": ("active", "success", "COMPLETED", "open", "ok"),
    "\x1b[33m": ("paused", "skipped", "SKIPPED", "draining", "cancelled", "CANCELLED", "warning"),
    "\x1b[31m": ("broken", "error", "FAILED", "bad", "revoked"),
    "\x1b[36m": ("running", "RUNNING", "claimed"),
}
_COLOUR_OF = {word: colour for colour, words in _COLOURS.items() for word in words}


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def note(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def say_json(value: Any) -> None:
    say(json.dumps(value, ensure_ascii=False))


def table(heads: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
    """Columns for people; `empty` is a note, because no row is no data."""
    if not rows:
        note(empty)
        return
    cells = [["-" if cell is None or cell == "" else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    say("  ".join(head.upper().ljust(width) for head, width in zip(heads, widths, strict=True)).rstrip())
    for row in cells:
        say("  ".join(_coloured(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip())


def tell(options: Options, shape: Callable[[], dict[str, Any]], sentence: str | None = None) -> None:
    """One thing: JSON for programs; for people the sentence, or else its fields."""
    if options.json:
        say_json(shape())
    elif sentence is not None:
        say(sentence)
    else:
        facts([(name.replace("_", " "), value) for name, value in shape().items()])


def facts(rows: Sequence[tuple[str, object]]) -> None:
    """A thing's fields, those that are empty left out."""
    told = [(name, value) for name, value in rows if value is not None and value != ""]
    width = max((len(name) for name, _ in told), default=0)
    for name, value in told:
        say(f"{name.ljust(width)}  {_coloured(written(value), 0)}")


def written(value: object) -> str:
    """What came as JSON is shown as JSON, so that it can be pasted back."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list | bool) else str(value)


def shortened(text: str, *, longest: int) -> str:
    """Without what would steer a terminal."""
    plain = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


async def watched(options: Options, clock: Clock, show: Callable[[], Awaitable[None]]) -> None:
    """Shows once, or again and again until Ctrl-C; a terminal is cleared in between."""
    if not options.watch:
        await show()
        return
    while True:
        if sys.stdout.isatty() and not options.json:
            sys.stdout.write(_CLEAR)
        await show()
        sys.stdout.flush()
        await clock.sleep(WATCH_EVERY)


def _coloured(cell: str, width: int) -> str:
    padded = cell.ljust(width)
    colour = _COLOUR_OF.get(cell)
    if colour is None or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return padded
    return f"{colour}{padded}{_PLAIN}"
