"""What runs a job: a function of the claimed job, plain or async, and how its result becomes an ending."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from duly.domain.errors import InvalidInput
from duly.domain.jobs import COMPLETED, Ending, JobStatus
from duly.domain.payloads import json_of
from duly.domain.sessions import ClaimedJob
from duly.worker.traces import place_of

Handler = Callable[[ClaimedJob], object]

_LONGEST_ERROR = 2_000


class DoNotRetry(Exception):
    """Raised by a handler when trying again cannot help."""


def ending_of(value: object) -> Ending:
    """A handler's answer is kept as the job's result; an Ending says more than that."""
    match value:
        case Ending():
            return value
        case None:
            return COMPLETED
        case _:
            try:
                return Ending(status=JobStatus.COMPLETED, result=json_of(value, field="result"))
            except InvalidInput as error:
                return failure(f"the handler's result cannot be kept: {error}", retryable=False)


def failure_of(error: BaseException) -> Ending:
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - it failed even at saying why
        said = "(it cannot be shown)"
    ending = failure(f"{type(error).__name__}: {said}", retryable=not isinstance(error, DoNotRetry))
    return replace(ending, place=place_of(error))


def failure(reason: str, *, retryable: bool = True) -> Ending:
    """Bounded, and only characters that both databases keep."""
    text = reason.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    return Ending(status=JobStatus.FAILED, error=text[:_LONGEST_ERROR], retryable=retryable)


def enter(handlers: Mapping[str, Handler], job: ClaimedJob) -> Ending | Awaitable[object]:
    """Enters the handler: a plain one has ended when this returns, an async one goes on."""
    handler = handlers.get(job.kind)
    if handler is None:
        return failure(f"this worker has no handler for {job.kind!r}")
    try:
        answer = handler(job)
        if answer is None:
            return COMPLETED
        return answer if inspect.isawaitable(answer) else ending_of(answer)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its run's failure, not the worker's
        return failure_of(error)
