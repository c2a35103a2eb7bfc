"""A program to watch when there is none yet: no network, no account, no file."""

import asyncio
import sys
from importlib.util import find_spec
from pathlib import Path

from duly.app.duly import Duly
from duly.bootstrap import JobContext, Queue
from duly.domain.amounts import UNIT
from duly.domain.cadence import cron, every
from duly.domain.reviews import ReviewState
from duly.domain.slots import Slot

NAME = "demo"
OWNER = "local"
REVIEW = "demo-review"

_CREDIT = 10 * UNIT


def demo() -> Duly:
    """A schedule of each kind, one that fails at first, one that is slower than its own cadence, and two graphs."""
    app = Duly(name=NAME, owner=OWNER)
    pool = app.pool("demo", limit=8)  # so that they run beside each other: in the pool `default` one runs at a time

    @app.job(schedule=every("5s"), schedule_id="demo-interval", pool=pool)
    async def interval(slot: Slot) -> dict[str, str]:
        return {"slot": str(slot)}

    @app.job(schedule=cron("* * * * *"), schedule_id="demo-cron", pool=pool)
    def minutely(slot: Slot) -> dict[str, str]:
        return {"minute": f"{slot.at:%H:%M}"}

    program = [sys.executable, "-c", "print('a program of its own')"]
    app.command("program", program, schedule=every("4s"), schedule_id="demo-program", pool=pool)

    @app.job(schedule=every("15s"), schedule_id="demo-retry", pool=pool, retries=2, backoff="1s")
    def stumbling(context: JobContext) -> str:
        if context.attempt == 1:
            raise RuntimeError("the demo stumbles on purpose")
        return "got up again"

    @app.job(schedule=every("3s"), schedule_id="demo-slow", pool=pool, overlap="skip")
    async def slow() -> None:
        await asyncio.sleep(8)  # noqa: TID251 - as anyone would write it

    if has_graphs():
        _declare_graphs(app)
    return app


def has_graphs() -> bool:
    return find_spec("langgraph") is not None


def how_to_get_graphs(command: str) -> str:
    """With the pip that is beside the `duly` that runs: another one would fill another environment."""
    pip = Path(command).with_name("pip")
    return f"`{pip} install 'duly[langgraph]'` adds a LangGraph graph and its costs, and a run that asks you"


def _declare_graphs(app: Duly) -> None:
    """By their places: what they need is loaded when the first of them runs."""
    here, topic = "duly.graphs.demo", {"topic": "the sea"}
    app.graph("demo-graph", f"{here}:poem", schedule=every("10s"), input=topic, max_cost="0.01")
    app.graph(
        REVIEW,
        f"{here}:published",
        schedule=every("1h"),
        overlap="skip",
        input=topic,
        max_cost="0.01",
        review_within="1d",
    )


async def fund(queue: Queue) -> None:
    """Before its graphs run: an account with a little money that is nobody's."""
    accounts = await queue.accounts.list(owner=OWNER, most=1)
    account = accounts[0] if accounts else await queue.accounts.create(owner=OWNER, name="main")
    await queue.accounts.credit(account.id, amount=_CREDIT, key="demo")


async def ask(queue: Queue) -> None:
    """So that a run waits for whoever watches, and only one."""
    waiting = await queue.reviews.list(owner=OWNER, state=ReviewState.OPEN, most=1)
    if has_graphs() and not waiting:
        await queue.schedules.run_now(REVIEW, owner=OWNER, key=queue.dice.new_id("demo"))
