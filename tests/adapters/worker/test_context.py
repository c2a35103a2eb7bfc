"""What functions are given when they ask, and how params reach them."""

import asyncio
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Optional

import pytest

import duly
from duly.domain.ids import ScheduleId
from duly.domain.logs import LogLevel
from duly.domain.schedules import slot_key
from duly.domain.sessions import ClaimedJob
from duly.domain.slots import Slot
from duly.worker.calls import Call
from duly.worker.context import JobContext, Stopped
from duly.worker.coroutines import in_loop
from duly.worker.handlers import DoNotRetry, Handler
from duly.worker.threads import in_thread
from tests.adapters.worker.working import claimed

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)


class Ear:
    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def say(self, level: LogLevel, lines: bytes) -> None:
        self.heard.append((level, lines))

    def progress(self, permille: int, note: str) -> None:
        self.heard.append((permille, note))


def context_of(job: ClaimedJob, *, asked: bool = False) -> JobContext:
    return JobContext(job, Ear(), lambda: asked)


def test_a_context_tells_which_run_it_is() -> None:
    context = context_of(claimed(to="you"))

    assert (context.job_id, context.kind, context.attempt) == ("job-2", "work", 2)
    assert context.params == {"to": "you"}
    assert context.slot is None


@pytest.mark.parametrize("key", ["news:2026-11-16T09:00:00Z", "manual:7:a:b:2026-11-16T09:00:00Z"])
def test_a_run_of_a_schedule_knows_its_slot(key: str) -> None:
    assert slot_key(ScheduleId("news"), int(NINE.timestamp())) == "news:2026-11-16T09:00:00Z"

    assert context_of(claimed(key=key, ledger_run="run")).slot == Slot(
        at=NINE, schedule_id=ScheduleId("a:b" if "a:b" in key else "news"), key=key
    )


@pytest.mark.parametrize(("key", "ledger_run"), [("news:2026-11-16T09:00:00Z", None), ("short", "run"), (None, "run")])
def test_a_job_that_no_schedule_put_has_no_slot(key: str | None, ledger_run: str | None) -> None:
    assert context_of(claimed(key=key, ledger_run=ledger_run)).slot is None


def test_the_idempotency_key_is_the_same_for_every_attempt() -> None:
    assert context_of(claimed()).idempotency_key == "job-1"
    assert context_of(claimed(key="mine")).idempotency_key == "mine"


def test_whoever_checks_stops_when_asked() -> None:
    context_of(claimed()).check()

    with pytest.raises(Stopped):
        context_of(claimed(), asked=True).check()
    assert not issubclass(Stopped, Exception)


def test_words_and_progress_are_handed_on_bounded_and_clean() -> None:
    context = context_of(claimed())

    context.log("plain")
    context.log("half a pair: \ud800", level="error")
    context.progress(-1)
    context.progress(0.25, "a\0")

    assert isinstance(context._voice, Ear)
    assert context._voice.heard == [
        ("info", b"plain"),
        ("error", b"half a pair: ?"),
        (0, ""),
        (250, "a\N{REPLACEMENT CHARACTER}"),
    ]
    with pytest.raises(ValueError, match="loud"):
        context.log("?", level="loud")


def _by_annotation(to: str, told: JobContext) -> object:
    return to, told.job_id


def _by_written_annotation(to: str, told: "JobContext") -> object:
    return to, told.job_id


def _by_name(to, context):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    return to, context.job_id


def _by_job(to: str, it: ClaimedJob) -> object:
    return to, it.id


def _by_job_name(job, **rest):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
    return rest["to"], job.id


@pytest.mark.parametrize("function", [_by_annotation, _by_written_annotation, _by_name, _by_job, _by_job_name])
def test_a_function_is_given_what_it_asks_for(function: Callable[..., object]) -> None:
    assert Call(function)(context_of(claimed(to="you"))) == ("you", "job-2")


def test_a_parameter_of_that_name_and_another_type_is_a_param() -> None:
    def function(context: dict[str, int], slot: datetime) -> object:
        return context, slot

    job = claimed(context={"a": 1}, key="news:2026-11-16T09:00:00Z", ledger_run="run")

    assert not Call(function).takes_context
    assert Call(function)(context_of(job)) == ({"a": 1}, NINE)


def _as_slot(when: Slot) -> object:
    return when.at, when.schedule_id, str(when)


def _as_written_slot(when: "duly.Slot | None") -> object:
    return when and (when.at, when.schedule_id, str(when))


def _as_optional_slot(when: Optional[Slot]) -> object:  # noqa: UP045 - as older programs write it
    return when and (when.at, when.schedule_id, str(when))


def _as_named(slot):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    return slot and (slot.at, slot.schedule_id, str(slot))


def _as_instant(slot: datetime | None) -> object:
    return slot and (slot, "news", f"{slot:%Y-%m-%dT%H:%M:%SZ}")


def _as_written_instant(slot: "datetime | None" = None) -> object:
    return slot and (slot, "news", f"{slot:%Y-%m-%dT%H:%M:%SZ}")


_SLOT_TAKERS = [_as_slot, _as_written_slot, _as_optional_slot, _as_named, _as_instant, _as_written_instant]


@pytest.mark.parametrize("function", _SLOT_TAKERS)
def test_a_function_is_given_its_slot_in_the_shape_it_asks_for(function: Callable[..., object]) -> None:
    job = claimed(key="news:2026-11-16T09:00:00Z", ledger_run="run")

    assert Call(function)(context_of(job)) == (NINE, "news", "2026-11-16T09:00:00Z")
    assert Call(function).misfit({}, has_slot=True) is None


@pytest.mark.parametrize("function", _SLOT_TAKERS[1:])
def test_a_function_that_can_do_without_a_slot_is_given_none(function: Callable[..., object]) -> None:
    assert Call(function)(context_of(claimed())) is None
    assert Call(function).misfit({}, has_slot=False) is None


def test_a_function_that_needs_a_slot_is_not_entered_without_one() -> None:
    with pytest.raises(DoNotRetry, match="'when' needs a slot"):
        Call(_as_slot)(context_of(claimed()))
    assert "'when' needs a slot" in (Call(_as_slot).misfit({}, has_slot=False) or "")


def test_a_param_may_be_called_slot_where_nothing_else_is_said() -> None:
    job = claimed(key="news:2026-11-16T09:00:00Z", ledger_run="run", slot=7)

    assert Call(lambda slot: slot)(context_of(job)) == 7
    assert Call(_as_instant)(context_of(job)) == (NINE, "news", "2026-11-16T09:00:00Z")


@pytest.mark.parametrize("params", [{}, {"to": "you", "from_": "me"}])
def test_params_that_do_not_fit_are_not_tried_again(params: dict[str, Any]) -> None:
    def function(to: str) -> object:
        return to

    with pytest.raises(DoNotRetry, match="do not fit"):
        Call(function)(context_of(claimed(**params)))


def test_a_function_without_a_signature_judges_for_itself() -> None:
    with pytest.raises(TypeError):
        Call(math.hypot)(context_of(claimed(x=1)))


async def _async_word(to: str, context: JobContext) -> object:
    return f"{to} {context.attempt}"


def _plain_word(to: str, context: JobContext) -> object:
    return f"{to} {context.attempt}"


@pytest.mark.parametrize("handler", [in_loop(_async_word), in_thread(_plain_word)], ids=["in_loop", "in_thread"])
def test_handlers_can_be_called_without_a_worker(handler: Handler) -> None:
    async def scenario() -> None:
        answer: Any = handler(claimed(to="you"))
        said = await answer
        assert said == "you 2" or said.result == '"you 2"'

    asyncio.run(scenario())


def test_an_async_function_sees_that_it_was_asked_while_it_winds_up() -> None:
    async def scenario() -> None:
        seen: list[bool] = []

        async def wind_up(context: JobContext) -> None:
            seen.append(context.cancelled)
            try:
                await asyncio.Event().wait()
            finally:
                seen.append(context.cancelled)

        answer: Any = in_loop(wind_up)(claimed())
        task = asyncio.ensure_future(answer)
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert seen == [False, True]

    asyncio.run(scenario())
