"""What a direct call asks for, before anybody waits for a place."""

import asyncio

import pytest

from duly.application.directs import Direct, Directs, wait_of
from duly.bootstrap import Queue, Settings
from duly.domain.errors import InvalidInput
from duly.domain.ids import Lane, PoolName
from duly.domain.templates import NewTemplate


def _asked(new: NewTemplate, **params: object) -> Direct:
    async def ask() -> Direct:
        queue = await Queue.open(Settings(database_url=":memory:"))
        try:
            await queue.templates.create(new, owner="ann")
            return await Directs(queue.storage, queue.dice).from_template(new.name, params, owner="ann")
        finally:
            await queue.close()

    return asyncio.run(ask())


@pytest.mark.req("DEC-004")
def test_a_call_is_its_template_with_what_is_given_and_has_one_attempt() -> None:
    new = NewTemplate(
        name="t",
        kind="k",
        params={"a": 1, "b": 2},
        timeout_ms=5,
        pool=PoolName("ollama"),
        resources=(PoolName("webhooks"), PoolName("default")),
    )
    direct = _asked(new, b=3)

    assert (direct.job.kind, direct.job.payload) == ("k", '{"a":1,"b":3}')
    assert (direct.job.attempt, direct.job.max_attempts, direct.job.timeout_ms) == (1, 1, 5)
    assert [pool for pool, _ in direct.places] == ["default", "ollama", "webhooks"], "in the order of their names"
    assert len({ticket for _, ticket in direct.places}) == 3


@pytest.mark.req("DEC-004", error=True)
def test_a_lane_a_schema_and_a_time_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidInput, match="lane"):
        _asked(NewTemplate(name="t", kind="k", lane=Lane("l")))
    with pytest.raises(InvalidInput, match=r"params\.a"):
        _asked(NewTemplate(name="t", kind="k", schema={"properties": {"a": {"type": "integer"}}}), a="x")
    for timeout_ms in (0, 86_400_001, True, "1"):
        with pytest.raises(InvalidInput, match="timeout_ms"):
            wait_of(timeout_ms)
