"""Direct calls by name: a template's, or else a job's that this program declares."""

from collections.abc import Callable
from typing import Any

from duly.app.declared import Params
from duly.app.durations import Duration, ms_of
from duly.app.register import Register
from duly.bootstrap import DirectCalls
from duly.domain.errors import InvalidInput
from duly.domain.instants import Micros
from duly.domain.retries import DAY_MS
from duly.domain.templates import UnknownTemplate

DEFAULT_TIMEOUT = "60s"


async def called(
    calls: DirectCalls,
    register: Register,
    named: str | Callable[..., Any],
    params: Params | None,
    *,
    owner: str | None,
    timeout: Duration | float | None,  # noqa: ASYNC109 - one time for place and run
) -> Any:
    """A function is a job of this program; a name is a template's first."""
    wait = _wait_of(timeout)
    if isinstance(named, str):
        try:
            return await calls.call(named, params, owner=owner, wait=wait)
        except UnknownTemplate as unknown:
            if unknown.name != named or named not in register.jobs:
                raise
    declared = register.job(named)
    declared.require_fit(params)
    return await calls.call_job(declared.new(params), wait=wait)


def _wait_of(timeout: Duration | float | None) -> Micros:
    if timeout is None:
        timeout = DEFAULT_TIMEOUT
    if isinstance(timeout, (int, float)):
        if isinstance(timeout, bool) or not 0 < timeout <= DAY_MS / 1_000:
            raise InvalidInput("timeout", f"{timeout} s is out of range", fix="use up to a day")
        return Micros(max(int(timeout * 1_000_000), 1))
    return Micros(ms_of(timeout, field="timeout", least=1, most=DAY_MS) * 1_000)
