"""How a job's params become the arguments of a function."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from duly.domain.errors import InvalidInput
from duly.domain.ids import ScheduleId
from duly.domain.payloads import value_of
from duly.domain.sessions import ClaimedJob
from duly.domain.slots import Slot
from duly.worker.context import JobContext
from duly.worker.handlers import DoNotRetry, Handler


class Call:
    """Params go to the parameters of their names.

    A parameter annotated `JobContext` or named `context` is given the context, one annotated `ClaimedJob` or named
    `job` the job itself. One annotated `Slot` or named `slot` is given the slot, as its instant if it is annotated
    `datetime`; without annotation it is a param like any other where the params have one of that name.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._signature = _signature_of(function)
        parameters = self._signature.parameters.values() if self._signature else ()
        self._for_context = [each.name for each in parameters if _asks_for(each, JobContext, "context")]
        self._for_job = [each.name for each in parameters if _asks_for(each, ClaimedJob, "job")]
        self._for_slot = [each for each in parameters if _asks_for_slot(each)]

    @property
    def takes_context(self) -> bool:
        return bool(self._for_context)

    def __call__(self, context: JobContext) -> Any:
        return self._function(**self._arguments(context))

    def misfit(self, params: Mapping[str, Any], *, has_slot: bool) -> str | None:
        """Why a job with these params could not be run, told before it is put."""
        slot = _ANY_SLOT if has_slot else None
        if missing := self._slot_missing(slot, params):
            return missing
        given = dict.fromkeys([*self._for_context, *self._for_job])
        return self._unbound({**params, **self._slots(slot, params), **given})

    def _arguments(self, context: JobContext) -> dict[str, Any]:
        params = context.params
        slot = context.slot if self._for_slot else None
        if missing := self._slot_missing(slot, params):
            raise DoNotRetry(missing)
        given = params | self._slots(slot, params)
        given |= dict.fromkeys(self._for_context, context)
        given |= dict.fromkeys(self._for_job, context.job)
        if misfit := self._unbound(given):
            raise DoNotRetry(f"the params do not fit the function: {misfit}")
        return given

    def _slots(self, slot: Slot | None, params: Mapping[str, Any]) -> dict[str, Any]:
        return {
            each.name: slot.at if slot is not None and _is_annotated(each, datetime) else slot
            for each in self._for_slot
            if not _is_param(each, params)
            if slot is not None or each.default is inspect.Parameter.empty
        }

    def _slot_missing(self, slot: Slot | None, params: Mapping[str, Any]) -> str | None:
        for each in self._for_slot if slot is None else ():
            if each.default is inspect.Parameter.empty and not _may_be_none(each) and not _is_param(each, params):
                return f"its parameter {each.name!r} needs a slot, and no schedule puts this job"
        return None

    def _unbound(self, given: Mapping[str, Any]) -> str | None:
        if self._signature:
            try:
                self._signature.bind(**given)
            except TypeError as error:
                return str(error)
        return None


@dataclass(frozen=True, slots=True)
class Fitted:
    """A handler that knows which params its function takes, so that whoever waits is told before anything runs."""

    call: Call
    run: Handler

    def __call__(self, job: ClaimedJob) -> object:
        return self.run(job)


def require_fit(handler: Handler, job: ClaimedJob) -> None:
    """One that does not say what it takes is left to judge for itself, when it runs."""
    misfit = handler.call.misfit(value_of(job.payload), has_slot=False) if isinstance(handler, Fitted) else None
    if misfit is not None:
        raise InvalidInput("params", f"do not fit {job.kind!r}: {misfit}", fix="name its parameters, and only those")


_ANY_SLOT = Slot(at=datetime(1970, 1, 1, tzinfo=UTC), schedule_id=ScheduleId("any"), key="any")


def _signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """Some functions written in C have none; they are called and may judge for themselves."""
    try:
        return inspect.signature(function)
    except ValueError:
        return None


def _asks_for(parameter: inspect.Parameter, kind: type, name: str) -> bool:
    if parameter.annotation is inspect.Parameter.empty:
        return parameter.name == name
    return _is_annotated(parameter, kind)


def _asks_for_slot(parameter: inspect.Parameter) -> bool:
    return _asks_for(parameter, Slot, "slot") or (parameter.name == "slot" and _is_annotated(parameter, datetime))


def _is_param(parameter: inspect.Parameter, params: Mapping[str, Any]) -> bool:
    return parameter.annotation is inspect.Parameter.empty and parameter.name in params


def _is_annotated(parameter: inspect.Parameter, kind: type) -> bool:
    return any(each is kind or _last_name(each) == kind.__name__ for each in _alternatives(parameter.annotation))


def _may_be_none(parameter: inspect.Parameter) -> bool:
    if parameter.annotation is inspect.Parameter.empty:
        return True
    return any(each in (None, NoneType, "None") for each in _alternatives(parameter.annotation))


def _alternatives(annotation: object) -> tuple[object, ...]:
    """What a union allows, even one that is only written down: such annotations are texts."""
    if isinstance(annotation, str):
        optional = annotation.rpartition("Optional[")
        if optional[1] and annotation.endswith("]"):
            return (optional[2].removesuffix("]").strip(), "None")
        return tuple(each.strip() for each in annotation.split("|"))
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _last_name(annotation: object) -> str | None:
    return annotation.rpartition(".")[2] if isinstance(annotation, str) else None
