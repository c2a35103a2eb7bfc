"""What one run says, bounded: the first half as it comes, the last half when it ends, and how much was dropped."""

import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from duly.domain.ids import JobId
from duly.domain.instants import Instant
from duly.domain.logs import (
    LONGEST_LINE_BYTES,
    MOST_BYTES_PER_JOB,
    Artifact,
    LogLevel,
    LogLine,
    Progress,
    line_text,
)

# What a line costs besides its text, so that endless empty lines have an end, too.
ROW_BYTES = 64
_HALF = MOST_BYTES_PER_JOB // 2
_LONGEST_BLOCK = 65_536
# Of a line that is not over yet; leaves room to say how much more of it there was.
_LONGEST_OPEN = LONGEST_LINE_BYTES - 64


class Book(Protocol):
    """Where runs' words are gathered, from whichever thread."""

    def now(self) -> Instant: ...

    def add_line(self, line: LogLine) -> None: ...

    def add_progress(self, progress: Progress) -> None: ...

    def add_artifact(self, artifact: Artifact) -> None: ...


class _Block(NamedTuple):
    """Whole lines that were said at once."""

    at: Instant
    level: LogLevel
    lines: bytes


class JobLog:
    """Takes blocks of whole lines, as `blocks_of` makes them.

    Those beyond the first half are not even looked at before the end.
    """

    def __init__(self, job_id: JobId, book: Book) -> None:
        self._job_id = job_id
        self._book = book
        self._lock = threading.Lock()
        self._seq = 0
        self._room = _HALF
        self._tail: deque[_Block] = deque()
        self._tail_bytes = 0
        self._dropped = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def say(self, level: LogLevel, lines: bytes) -> None:
        with self._lock:
            block = _Block(self._book.now(), level, lines)
            rest = self._say_first(block) if self._room else block
            if rest is not None:
                self._keep_last(rest)

    def progress(self, permille: int, note: str) -> None:
        self._book.add_progress(Progress(self._job_id, self._book.now(), permille, note))

    def artifact(self, name: str, size: int, sha256: str) -> None:
        self._book.add_artifact(Artifact(self._job_id, name, size, sha256))

    def close(self) -> None:
        """Says what was kept of the last half."""
        with self._lock:
            kept = self._last_lines()
            if self._dropped:
                at = kept[-1].at if kept else self._book.now()
                self._add(at, LogLevel.WARNING, f"… {self._dropped:,} bytes were dropped here …".encode())
            for block in reversed(kept):
                self._add(*block)
            self._dropped = 0

    def _say_first(self, block: _Block) -> _Block | None:
        """Says as many lines as there is room for; answers the rest, if there is any."""
        lines = block.lines.split(b"\n")
        for place, line in enumerate(lines):
            cost = _cost(line)
            if cost > self._room:
                self._room = 0
                return block._replace(lines=b"\n".join(lines[place:]))
            self._room -= cost
            self._add(block.at, block.level, line)
        return None

    def _keep_last(self, block: _Block) -> None:
        self._tail.append(block)
        self._tail_bytes += len(block.lines) + ROW_BYTES
        while self._tail_bytes - len(self._tail[0].lines) - ROW_BYTES >= _HALF:
            oldest = self._tail.popleft()
            self._tail_bytes -= len(oldest.lines) + ROW_BYTES
            self._dropped += len(oldest.lines) + 1

    def _last_lines(self) -> list[_Block]:
        """One line each, the last one first."""
        kept: list[_Block] = []
        room = _HALF
        for block in reversed(self._tail):
            lines = block.lines.split(b"\n") if room else [block.lines]
            while lines and (cost := _cost(lines[-1])) <= room:
                room -= cost
                kept.append(block._replace(lines=lines.pop()))
            if lines:
                room = 0
                self._dropped += sum(map(len, lines)) + len(lines)
        self._tail.clear()
        self._tail_bytes = 0
        return kept

    def _add(self, at: Instant, level: LogLevel, line: bytes) -> None:
        self._seq += 1
        self._book.add_line(LogLine(self._job_id, self._seq, at, level, line_text(line)))


class Lines:
    """Bytes of one stream, handed on as whole lines, however they come."""

    def __init__(self, say: Callable[[bytes], None]) -> None:
        self._say = say
        self._open = b""
        self._length = 0

    def feed(self, chunk: bytes) -> None:
        first, newline, rest = chunk.partition(b"\n")
        self._extend(first)
        if newline:
            self._end_line()
            whole, newline, rest = rest.rpartition(b"\n")
            if newline:
                self._say(whole)
            self._extend(rest)

    def close(self) -> None:
        """The stream has ended; its last line may have no end."""
        if self._open:
            self._end_line()

    def _extend(self, more: bytes) -> None:
        self._open += more[: _LONGEST_OPEN - len(self._open)]
        self._length += len(more)

    def _end_line(self) -> None:
        beyond = self._length - len(self._open)
        self._say(self._open + f" … {beyond:,} more bytes".encode() if beyond else self._open)
        self._open, self._length = b"", 0


def blocks_of(text: bytes) -> list[bytes]:
    """Whole lines, a bounded part of the text at a time."""
    if len(text) <= _LONGEST_BLOCK:
        return [text]
    blocks: list[bytes] = []
    lines = Lines(blocks.append)
    for place in range(0, len(text), _LONGEST_BLOCK):
        lines.feed(text[place : place + _LONGEST_BLOCK])
    lines.close()
    return blocks


def _cost(line: bytes) -> int:
    return min(len(line), LONGEST_LINE_BYTES) + ROW_BYTES
