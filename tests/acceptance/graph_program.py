"""Graphs that spend twice and say so in a journal of their own; one goes on after a crash, one starts afresh."""

import asyncio
import os
from pathlib import Path

from duly import Duly, every
from duly.domain.executions import EventKind, ModelCall
from duly.graphs.telling import Tell
from duly.ports.graphs import GraphCall, GraphEvent
from tests.acceptance.journal import Journal

UNITS = ("first", "second")
# By the attempt and the run: most are short, some outlast a renewal of their lease.
TAKES_SECONDS = (0.05, 0.05, 0.2, 1.0)

app = Duly(name="killed")


async def work(call: GraphCall, tell: Tell) -> dict[str, int]:
    journal = Journal(Path(os.environ["GRAPH_JOURNAL"]), fsync=True)
    facts = {"run": call.run_id, "attempt": call.attempt}
    try:
        journal.note("entered", **facts, graph=call.graph_id, continues=call.continues)
        for unit in UNITS:
            tell(_spent(unit))
            await asyncio.sleep(TAKES_SECONDS[sum(call.run_id.encode()) % 4] / 2)
        journal.note("left", **facts)
    finally:
        journal.close()
    return {"attempt": call.attempt}


def _spent(unit: str) -> GraphEvent:
    call = ModelCall(unit=unit, model="gpt-4o", input_tokens=1_000, output_tokens=100)
    return GraphEvent(EventKind.USAGE, {"unit": unit}, call)


for on_crash in ("resume", "rerun"):
    app.graph(f"python:{on_crash}", work, schedule=every("2s"), overlap="allow", max_cost="0.50", on_crash=on_crash)
