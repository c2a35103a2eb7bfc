"""What type checkers make of programs: mypy reads this file, and refuses what does not hold."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, assert_type

import pytest

import duly
from duly import Duly, JobContext, Slot, every
from duly.domain.jobs import Put
from duly.domain.runs import Run
from duly.domain.schedules import Schedule

app = Duly()


@app.job
def resize(picture: str, width: int = 100) -> list[str]:
    return [picture] * width


@app.job(schedule=every("1h"), overlap="skip", retries=3, timeout="10m")
async def digest(slot: Slot, context: JobContext) -> dict[str, datetime]:
    context.log("on my way")
    return {"at": slot.at}


def test_a_decorated_function_keeps_its_type() -> None:
    assert_type(resize("a", width=2), list[str])
    as_given: Callable[[Slot, JobContext], Awaitable[dict[str, datetime]]] = digest
    assert as_given is digest


async def answers() -> None:
    """Never called: only read."""
    assert_type(await app.put(digest, {"x": 1}, key="k", run_at="in 5m"), Put)
    assert_type(await app.put_many("digest", [{}], priority=1), list[Put])
    assert_type(await app.result("job"), Any)
    assert_type(await app.trigger(digest), Run)
    assert_type(await app.schedules(), list[Schedule])
    assert_type(app.sync.put(digest), Put)
    assert_type(app.sync.trigger("digest"), Run)
    async with app as opened:
        assert_type(opened, Duly)
    resize(1)  # type: ignore[arg-type]
    await app.put(digest, keys="k")  # type: ignore[call-arg]
    app.job(retry=3)  # type: ignore[call-overload]


@pytest.mark.parametrize("name", duly.__all__)
def test_every_name_is_there_when_asked_for(name: str) -> None:
    assert getattr(duly, name) is not None
    assert name in dir(duly)


def test_what_is_not_there_is_said_not_to_be() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = duly.nothing
