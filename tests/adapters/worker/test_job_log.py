"""A run may say as much as it likes: what is kept of it is bounded, whole lines, and says what is missing."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.domain.ids import JobId
from duly.domain.instants import Instant
from duly.domain.logs import LONGEST_LINE_BYTES, MOST_BYTES_PER_JOB, Artifact, LogLevel, LogLine, Progress
from duly.worker.job_log import ROW_BYTES, JobLog, Lines, blocks_of
from tests.adapters.worker.page import Page


def _logged(*blocks: bytes) -> Page:
    page = Page()
    with JobLog(JobId("job"), page) as log:
        for block in blocks:
            log.say(LogLevel.STDOUT, block)
    return page


def test_a_few_lines_are_kept_as_they_come() -> None:
    page = Page()
    log = JobLog(JobId("job"), page)

    log.say(LogLevel.INFO, b"one\ntwo")
    log.say(LogLevel.ERROR, b"")

    assert page.lines == [
        LogLine(JobId("job"), 1, Instant(1), LogLevel.INFO, "one"),
        LogLine(JobId("job"), 2, Instant(1), LogLevel.INFO, "two"),
        LogLine(JobId("job"), 3, Instant(2), LogLevel.ERROR, ""),
    ]
    log.close()
    assert len(page.lines) == 3


def test_of_too_many_lines_the_first_and_the_last_are_kept() -> None:
    numbers = [b"%07d" % number for number in range(100_000)]
    blocks = [b"\n".join(numbers[first : first + 1_000]) for first in range(0, len(numbers), 1_000)]

    page = _logged(*blocks)

    gap = next(place for place, text in enumerate(page.texts) if text.startswith("…"))
    first, last = page.texts[:gap], page.texts[gap + 1 :]
    half = MOST_BYTES_PER_JOB // 2 // (7 + ROW_BYTES)
    assert first == [number.decode() for number in numbers[:half]]
    assert last == [number.decode() for number in numbers[-half:]]
    dropped = (len(numbers) - 2 * half) * 8
    assert page.texts[gap] == f"… {dropped:,} bytes were dropped here …"
    assert page.lines[gap].level is LogLevel.WARNING
    assert [line.seq for line in page.lines] == list(range(1, len(page.lines) + 1))
    assert all(one.at <= next_one.at for one, next_one in pairwise(page.lines))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20_000)), max_size=40))
def test_whatever_is_said_stays_within_the_bound_and_every_byte_is_accounted_for(said: list[tuple[int, int]]) -> None:
    blocks = [b"\n".join([b"x" * length] * (lines * 20 + 1)) for lines, length in said]

    page = _logged(*blocks)

    assert sum(len(text.encode()) for text in page.texts) < MOST_BYTES_PER_JOB + 100 * len(page.texts)
    dropped = sum(int(text.split()[1].replace(",", "")) for text in page.texts if text.startswith("…"))
    kept = sum(_length_of(text) + 1 for text in page.texts if not text.startswith("…"))
    assert kept + dropped == sum(len(block) + 1 for block in blocks)


def _length_of(text: str) -> int:
    """Of the line as it was said."""
    if not text.endswith(" more bytes"):
        return len(text)
    return LONGEST_LINE_BYTES + int(text.split()[-3].replace(",", ""))


def test_small_words_in_the_last_half_take_bounded_memory() -> None:
    page = Page()
    log = JobLog(JobId("job"), page)
    for _ in range(200_000):
        log.say(LogLevel.INFO, b"")

    assert len(log._tail) <= MOST_BYTES_PER_JOB // 2 // ROW_BYTES + 1


def test_a_long_text_is_said_in_blocks_of_whole_lines() -> None:
    text = b"\n".join([b"x" * length for length in range(0, 8_000, 7)])

    blocks = blocks_of(text)

    assert b"\n".join(blocks) == text
    assert max(map(len, blocks)) < 80_000
    assert blocks_of(b"") == [b""]
    assert [len(block) for block in blocks_of(b"x" * 10_000_000)] == [
        LONGEST_LINE_BYTES - 64 + len(" … 9,991,872 more bytes".encode())
    ]


def test_progress_and_artifacts_carry_the_job() -> None:
    page = Page()
    log = JobLog(JobId("job"), page)

    log.progress(250, "a quarter")
    log.artifact("a.csv", 3, "00")

    assert page.progress == [Progress(JobId("job"), Instant(1), 250, "a quarter")]
    assert page.artifacts == [Artifact(JobId("job"), "a.csv", 3, "00")]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_lines_are_whole_however_their_bytes_come(size: int) -> None:
    text = b"one\n\ntwo\nthree\n\n\nfour"
    said: list[bytes] = []
    lines = Lines(said.append)

    for place in range(0, len(text), size):
        lines.feed(text[place : place + size])
    lines.close()
    lines.close()

    assert b"\n".join(said) == text


def test_a_line_without_an_end_is_cut_where_it_is_long_enough() -> None:
    said: list[bytes] = []
    lines = Lines(said.append)

    for _ in range(1_000):
        lines.feed(b"x" * 65_536)
    lines.feed(b"x\nnext")
    lines.close()

    assert len(said[0]) <= LONGEST_LINE_BYTES
    assert said[0].startswith(b"x" * 8_000)
    shown = said[0].index(b" ")
    assert said[0][shown:].decode() == f" … {1_000 * 65_536 + 1 - shown:,} more bytes"
    assert said[1] == b"next"
