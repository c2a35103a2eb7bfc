"""How a job's params become the arguments of a function."""

import inspect
from collections.abc import Callable
from typing import Any

from duly.domain.sessions import ClaimedJob
from duly.worker.context import JobContext
from duly.worker.handlers import DoNotRetry


class Call:
    """Params go to the parameters of their names.

    A parameter annotated `JobContext` or named `context` is given the context, one annotated `ClaimedJob` or named
    `job` the job itself; one named `slot` the slot, unless the params have one.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._signature = _signature_of(function)
        parameters = self._signature.parameters.values() if self._signature else ()
        self._for_context = [each.name for each in parameters if _asks_for(each, JobContext, "context")]
        self._for_job = [each.name for each in parameters if _asks_for(each, ClaimedJob, "job")]
        self._has_slot = any(each.name == "slot" for each in parameters)

    @property
    def takes_context(self) -> bool:
        return bool(self._for_context)

    def __call__(self, context: JobContext) -> Any:
        return self._function(**self._arguments(context))

    def _arguments(self, context: JobContext) -> dict[str, Any]:
        given: dict[str, Any] = {"slot": context.slot} if self._has_slot else {}
        given |= context.params
        given |= dict.fromkeys(self._for_context, context)
        given |= dict.fromkeys(self._for_job, context.job)
        if self._signature:
            try:
                self._signature.bind(**given)
            except TypeError as error:
                raise DoNotRetry(f"the params do not fit the function: {error}") from None
        return given


def _signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """Some functions written in C have none; they are called and may judge for themselves."""
    try:
        return inspect.signature(function)
    except ValueError:
        return None


def _asks_for(parameter: inspect.Parameter, kind: type, name: str) -> bool:
    annotation = parameter.annotation
    if annotation is inspect.Parameter.empty:
        return parameter.name == name
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2] == kind.__name__
    return annotation is kind
