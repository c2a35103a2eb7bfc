"""Runs Duly beside its peers, in turn, and prints how they compare: `scripts/bench [--quick] [SET …]`."""

import argparse
import asyncio
import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg

from bench import executions, idle
from bench.arena import Arena
from bench.node import NODE_PEERS
from bench.report import HEADER, Result, contestants, machine, save
from bench.rows import SETS, Row
from tests.postgres_server import running_postgres

_RESULTS = Path(__file__).parent / "results"
_CRON = "cron"
_SCHEDULES = "schedules-"


def main() -> None:
    chosen = _arguments()
    rows = [row for name in chosen.sets if name in SETS for row in SETS[name] if _matches(row, chosen.only)]
    if chosen.against:
        rows = [_without(row, *(peer for peer in row.peers if peer not in chosen.against)) for row in rows]
    for peer in NODE_PEERS.values():
        if any(peer.name in row.jobs for row in rows) and not peer.is_there():
            print(f"{peer.name} is left out: no Node.js {peer.least_node}, or no way to install it.", file=sys.stderr)
            rows = [_without(row, peer.name) for row in rows]
    content: dict[str, Any] = {"settings": vars(chosen)}
    stores = [name.removeprefix(_SCHEDULES) for name in chosen.sets if name.startswith(_SCHEDULES)]
    idle_on = stores if chosen.only in idle.TITLE else []
    executing_on = stores if chosen.only in executions.TITLE else []
    with contextlib.ExitStack() as stack:
        needs_server = "postgres" in {*idle_on, *executing_on, *(row.store for row in rows)}
        server = stack.enter_context(running_postgres()) if needs_server else None
        content["machine"] = machine(_version(server) if server else None)
        arena = Arena(server, seconds=chosen.seconds, share=chosen.share)
        print(HEADER, flush=True)
        results = [_compete(arena, row, chosen.rounds) for row in rows]
        if idle_on:
            print(idle.HEADER, flush=True)
            content["idle"] = [each for store in idle_on for each in idle.measure(arena, store, 20 * chosen.share)]
        if executing_on:
            print(executions.HEADER, flush=True)
            slots = int(executions.SLOTS * chosen.share)
            content["executions"] = [executions.measure(arena, store, slots) for store in executing_on]
    content["rows"] = [result.as_json() for result in results]
    content["contenders"] = contestants(rows)
    if _CRON in chosen.sets:
        content["cron"] = _cron()
    print(f"\nLoad average {os.getloadavg()[0]:.1f} at the end. Written to {save(content, _RESULTS)}", file=sys.stderr)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("sets", nargs="*", help=f"which rows: {', '.join([*SETS, _CRON])} (all)")
    parser.add_argument("--quick", action="store_true", help="2 rounds of a sixth of the work: to see that it runs")
    parser.add_argument("--rounds", type=int, help="how often each contender takes its turn (5)")
    parser.add_argument("--seconds", type=float, help="how long an enqueuer puts (3)")
    parser.add_argument("--only", default="", help="rows whose title holds this text")
    parser.add_argument("--against", nargs="+", default=[], help="these peers only")
    chosen = parser.parse_args()
    unknown = set(chosen.sets) - {*SETS, _CRON}
    if unknown:
        parser.error(f"no rows named {', '.join(sorted(unknown))}; there are {', '.join([*SETS, _CRON])}")
    chosen.sets = chosen.sets or [*SETS, _CRON]
    chosen.share = 1 / 6 if chosen.quick else 1.0
    chosen.rounds = chosen.rounds or (2 if chosen.quick else 5)
    chosen.seconds = chosen.seconds or (0.7 if chosen.quick else 3.0)
    return chosen


def _matches(row: Row, text: str) -> bool:
    return text in f"{row.store} {row.work}"


def _without(row: Row, *names: str) -> Row:
    return replace(row, jobs={name: jobs for name, jobs in row.jobs.items() if name not in names})


def _compete(arena: Arena, row: Row, rounds: int) -> Result:
    """Contenders take turns, in the opposite order every other round: a noisy machine is noisy for all of them."""
    result = Result(row, {name: [] for name in row.jobs} | {name: [f] * rounds for name, f in row.published.items()})
    for round_ in range(rounds):
        names: Sequence[str] = list(row.jobs) if round_ % 2 == 0 else list(reversed(row.jobs))
        for name in names:
            result.figures[name].append(arena.measure(row, name))
    for line in result.lines():
        print(line, flush=True)
    return result


def _cron() -> dict[str, Any] | None:
    """Its own module, with a function `run`; absent until there is something to measure."""
    try:
        module = importlib.import_module("bench.cron")
    except ModuleNotFoundError:
        print("cron is left out: there is no bench/cron.py yet.", file=sys.stderr)
        return None
    measured: dict[str, Any] = module.run()
    print(measured)
    return measured


def _version(server: str) -> str:
    async def ask() -> str:
        connection = await asyncpg.connect(server)
        try:
            return str(await connection.fetchval("SHOW server_version"))
        finally:
            await connection.close()

    return asyncio.run(ask())


if __name__ == "__main__":
    main()
