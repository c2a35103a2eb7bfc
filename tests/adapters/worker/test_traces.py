"""Whoever asks why a job failed finds the lines that raised, and not those of the machinery around them."""

import asyncio
import inspect
from collections.abc import Sequence

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.logs import LogLevel
from duly.worker.coroutines import in_loop
from duly.worker.handlers import Handler, failure_of
from duly.worker.isolation import isolated
from duly.worker.threads import in_thread
from duly.worker.traces import MOST_LINES, trace_lines
from tests.adapters.worker import functions
from tests.adapters.worker.working import ended, put, working

pytestmark = pytest.mark.store("sqlite")

WHERE = f"functions.py:{inspect.getsourcelines(functions._parsed)[1] + 1} in _parsed"


@pytest.mark.parametrize(
    ("handler", "entered"),
    [
        (in_loop(functions.parse_later), "parse_later"),
        (in_thread(functions.parse), "parse"),
        (isolated(functions.parse), "parse"),
        (isolated(functions.parse_later), "parse_later"),
    ],
    ids=["loop", "thread", "process", "process with a loop"],
)
def test_the_frames_of_a_function_that_raised_are_kept_with_its_job(handler: Handler, entered: str) -> None:
    async def scenario() -> None:
        async with working({"parse": handler}) as (queue, _):
            job_id = await put(queue, "parse", params={"text": "no"})
            await ended(queue, job_id)
            lines = await queue.logs.lines(job_id)

        assert {line.level for line in lines} == {LogLevel.ERROR}
        frames = [line.text for line in lines if line.text.startswith('  File "')]
        assert [frame.rpartition(" in ")[2] for frame in frames] == [entered, "_parsed", "raw_decode"]
        assert "    return json.loads(text)" in [line.text for line in lines]
        assert lines[-1].text == "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"

    asyncio.run(scenario())


def test_a_run_that_never_came_to_its_function_has_no_trace() -> None:
    async def scenario() -> None:
        async with working({"parse": in_thread(functions.parse)}) as (queue, _):
            job_id = await put(queue, "parse", params={"other": 1})
            job = await ended(queue, job_id)

            assert "do not fit" in (job.error or "")
            assert await queue.logs.lines(job_id) == []

    asyncio.run(scenario())


def _raised(function: str = "parse") -> BaseException:
    try:
        getattr(functions, function)("no")
    except ValueError as error:
        return error
    raise AssertionError


def test_the_place_of_a_failure_is_the_programs_own_last_line() -> None:
    assert failure_of(_raised()).place == WHERE


def test_a_long_trace_loses_its_middle() -> None:
    def deeper(left: int) -> None:
        if not left:
            raise RuntimeError("deep\n" + "x" * 10_000)
        by_turns(left)

    def by_turns(left: int) -> None:
        deeper(left - 1)

    with pytest.raises(RuntimeError) as raised:
        deeper(100)

    lines = trace_lines(raised.value)
    assert len(lines) == MOST_LINES
    assert sum(map(len, lines)) <= 8_192
    assert lines[0] == "Traceback (most recent call last):"
    assert any("lines are left out here" in line for line in lines)
    assert "RuntimeError: deep" in lines


def test_what_an_error_came_from_is_told_with_it() -> None:
    def translated() -> None:
        try:
            functions.parse("no")
        except ValueError as error:
            raise InvalidInput("text", "is no JSON", fix="write JSON") from error

    with pytest.raises(InvalidInput) as raised:
        translated()

    told = trace_lines(raised.value)
    assert _told_in_order(told, ["JSONDecodeError", "direct cause", "InvalidInput: text"])


def _told_in_order(lines: Sequence[str], words: Sequence[str]) -> bool:
    places = [next((at for at, line in enumerate(lines) if word in line), -1) for word in words]
    return -1 not in places and places == sorted(places)
