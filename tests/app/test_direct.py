"""`app.direct` and `app.sync.direct`: by template, by function, by name."""

import pytest

from duly import Duly, InvalidInput
from duly.domain.ids import PoolName
from duly.domain.templates import NewTemplate, UnknownTemplate
from duly.domain.tickets import Deadline


def _declare(app: Duly) -> None:
    @app.job
    async def double(n: int) -> int:
        return 2 * n

    @app.job(name="greet", lane="greetings")
    def greet() -> str:
        return "hello"


@pytest.mark.req("DEC-004")
async def test_a_template_comes_first_then_a_job_of_the_program(app: Duly) -> None:
    _declare(app)
    async with app:
        assert await app.direct("double", {"n": 4}) == 8
        await app.queue.templates.create(NewTemplate(name="double", kind="double", params={"n": 50}), owner="local")
        assert await app.direct("double", timeout="30s") == 100
        assert await app.direct(app._register.jobs["double"].call._function, {"n": 1}, timeout=30) == 2  # type: ignore[union-attr]
        assert (await app.queue.pools.get(PoolName("default"))).used == 0


@pytest.mark.req("DEC-004", error=True)
async def test_what_is_neither_or_does_not_fit_is_refused(app: Duly) -> None:
    _declare(app)
    async with app:
        with pytest.raises(UnknownTemplate):
            await app.direct("nothing")
        with pytest.raises(InvalidInput, match="do not fit 'double'"):
            await app.direct("double", {"m": 1})
        with pytest.raises(InvalidInput, match="lane"):
            await app.direct("greet")
        for timeout in (0, -1, 86_401, True, "1", "2d"):
            with pytest.raises(InvalidInput, match="timeout"):
                await app.direct("double", {"n": 1}, timeout=timeout)
        with pytest.raises(Deadline):
            await app.direct("double", {"n": 1}, timeout=0.000_001)


@pytest.mark.req("DEC-004")
def test_code_without_an_event_loop_calls_too(app: Duly) -> None:
    _declare(app)
    with app.sync as sync:
        assert sync.direct("double", {"n": 4}) == 8
