"""kill -9 in the middle of groups and chains of retries: nothing lost, nothing doubled, and order kept.

`DULY_GROUP_KILLS` sets how many kills each store gets; 200 of them take some minutes. `DULY_SEED` repeats the choices
of a run, though not its timing.
"""

import asyncio
import os
import random
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from duly.bootstrap import Queue
from duly.domain.groups import GroupMode, NewGroup, NewMember
from duly.domain.ids import PoolName
from duly.domain.retries import RetryPolicy
from duly.domain.templates import NewTemplate
from tests.acceptance import checker
from tests.acceptance.checker import Facts, Finished, Run
from tests.acceptance.processes import POLL_SECONDS, Workers, opened, until, until_in
from tests.acceptance.worker_process import session_name

pytestmark = pytest.mark.serial

WIDE = PoolName("wide")
EXECUTORS = {WIDE: 4}
PROCESSES = 3
KILLS = int(os.environ.get("DULY_GROUP_KILLS") or 4)
LEASE_MS = 1_000
LONGEST_PAUSE = 0.3
MOST_UNDONE = 40
PATIENCE_SECONDS = 120
OWNER = "ann"
_ARTIFACT = "artifacts.0.name"
AT_ONCE_AND_ALWAYS = RetryPolicy(max_attempts=1_000, backoff_ms=0)


@dataclass(frozen=True, slots=True)
class Put:
    """What was acknowledged: the first jobs of its chains, by place. Of a sequence each waits for the one before."""

    chains: tuple[str, ...]
    is_sequence: bool


class Supervisor:
    """Keeps workers alive and groups coming, and kills at random."""

    def __init__(self, workers: Workers, queue: Queue) -> None:
        self._workers = workers
        self._queue = queue
        self.seed = int(os.environ.get("DULY_SEED") or secrets.randbelow(10**9))
        self._dice = random.Random(self.seed)
        self.puts: list[Put] = []
        self._enough = False

    @property
    def undone(self) -> int:
        left = {line.chain for line in self._workers.journal.left()}
        return sum(chain not in left for put in self.puts for chain in put.chains)

    async def run(self) -> None:
        template = NewTemplate(name="relay", kind="relay", pool=WIDE, retry=AT_ONCE_AND_ALWAYS)
        await self._queue.templates.create(template, owner=OWNER)
        for _ in range(PROCESSES):
            self._workers.start(EXECUTORS)
        putting = asyncio.create_task(self._keep_putting())
        try:
            for _ in range(KILLS):
                await self._kill_one()
        finally:
            self._enough = True
            await putting

    async def _keep_putting(self) -> None:
        while not self._enough:
            if self.undone > MOST_UNDONE:
                await asyncio.sleep(POLL_SECONDS)
                continue
            await self._dice.choice((self._put_parallel, self._put_sequence, self._put_chain))()

    async def _put_parallel(self) -> None:
        members = [NewMember(template="relay", params=self._params(n)) for n in range(self._dice.randint(2, 5))]
        await self._put_group(NewGroup(mode=GroupMode.PARALLEL, members=members))

    async def _put_sequence(self) -> None:
        members = [NewMember(template="relay", params=self._params(0))]
        for n in range(1, self._dice.randint(2, 5)):
            handed = {"result": {"from": n - 1, "path": "result.job"}, "artifact": {"from": n - 1, "path": _ARTIFACT}}
            members.append(NewMember(template="relay", params={**self._params(n), **handed}))
        await self._put_group(NewGroup(mode=GroupMode.SEQUENTIAL, members=members))

    async def _put_group(self, asked: NewGroup) -> None:
        group = await self._queue.groups.create(asked, owner=OWNER)
        members = await self._queue.groups.members(group.id, owner=OWNER)
        self.puts.append(Put(tuple(each.job_id for each in members), asked.mode is GroupMode.SEQUENTIAL))

    async def _put_chain(self) -> None:
        put = await self._queue.jobs.put_from("relay", {**self._params(0), "fails": 2}, owner=OWNER)
        self.puts.append(Put((put.job_id,), is_sequence=False))

    def _params(self, n: int) -> dict[str, Any]:
        fails = self._dice.choice((0, 0, 0, 1))
        return {"n": n, "work_ms": self._dice.choice((0, 5, 20, 60)), "fails": fails}

    async def _kill_one(self) -> None:
        """One that has begun to work, at any moment of its work, while another lives that can take over."""
        await until(lambda: len(self._working()) >= PROCESSES - 1, within=PATIENCE_SECONDS, what="workers work")
        await asyncio.sleep(self._dice.uniform(0, LONGEST_PAUSE))
        self._workers.kill(self._dice.choice(self._working()))
        self._workers.start(EXECUTORS)

    def _working(self) -> list[int]:
        seen = {line.pid for line in self._workers.journal.entered()}
        return [pid for pid in self._workers.alive if pid in seen]


@pytest.mark.req("INV-006")
@pytest.mark.req("DEC-007")
@pytest.mark.req("DEC-008")
def test_workers_are_killed_in_the_middle_of_groups_and_chains(database_url: str, tmp_path: Path) -> None:
    async def supervise(workers: Workers) -> Sequence[Put]:
        async with opened(database_url, {WIDE: 1_000}) as queue:
            supervisor = Supervisor(workers, queue)
            print(f"seed {supervisor.seed}")
            await supervisor.run()
            try:
                await until(lambda: supervisor.undone == 0, within=PATIENCE_SECONDS, what="what was put is done")
            except AssertionError as late:
                facts = await checker.facts_of(database_url)
                late.add_note(f"{supervisor.undone} undone\nlive {facts.live[:20]}\n{facts.sessions}\n{facts.pools}")
                raise
            await until_in(
                database_url,
                lambda facts: (
                    not facts.live
                    and {session.name for session in facts.sessions} == set(map(session_name, workers.alive))
                ),
                within=PATIENCE_SECONDS,
                what="all is recorded, all the living have a session, and none of the dead",
            )
        await workers.stop_all()
        return supervisor.puts

    with Workers(database_url, tmp_path, lease_ms=LEASE_MS, fsync=True) as workers:
        puts = asyncio.run(supervise(workers))

    facts = asyncio.run(checker.facts_of(database_url))
    groups, members = asyncio.run(
        checker.looked_up(database_url, ["SELECT status FROM job_groups", "SELECT state, last_job FROM group_members"])
    )
    runs = checker.runs_of(workers.journal.read(), workers.killed)
    chains = [chain for put in puts for chain in put.chains]
    failed = [row.error or "" for row in facts.finished if row.status == "FAILED"]
    print(
        f"{len(workers.killed)} kills, {len(chains)} chains, of them in {len(groups)} groups {len(members)},"
        f" {len(runs)} entries, {len(failed)} failed attempts, as asked {sum(map(_is_asked, failed))}"
    )
    assert len(workers.killed) == KILLS
    assert {row[0] for row in groups} == {"COMPLETED"}
    assert {row[0] for row in members} == {"COMPLETED"}
    checker.require(
        checker.lost_or_doubled(facts, chains),
        checker.left_behind(facts),
        checker.entered_twice(runs),
        checker.recorded_without_run(facts, runs),
        _unexplained(facts, runs, workers.killed),
        _out_of_sequence(puts, facts, runs),
    )
    assert len({row[1] for row in members}) == len(members), "no job ended two members"


def _unexplained(facts: Facts, runs: Sequence[Run], killed: Mapping[int, float]) -> Iterable[str]:
    """An attempt fails because it was asked to, or because its process was killed."""
    pids = {run.entered.job: run.entered.pid for run in runs}
    for row in facts.finished:
        if row.status == "FAILED" and not _is_asked(row.error or "") and row.id in pids and pids[row.id] not in killed:
            yield f"{row.id}: {row.error!r}, but {pids[row.id]} was not killed"


def _is_asked(error: str) -> bool:
    return error.startswith("AsAsked")


def _out_of_sequence(puts: Sequence[Put], facts: Facts, runs: Sequence[Run]) -> Iterable[str]:
    """A member's attempts are entered after the one that completed the member before, and are handed what it left."""
    completed: dict[str, Finished] = {row.chain: row for row in facts.finished if row.status == "COMPLETED"}
    of_chain: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        of_chain[run.entered.chain].append(run)
    left = {run.entered.job: run.end for run in runs if run.left}
    for put in (each for each in puts if each.is_sequence):
        for before, after in zip(put.chains, put.chains[1:], strict=False):
            job = completed[before].id
            for run in of_chain[after]:
                if run.entered.at < (left[job] or 0):
                    yield f"{after}: entered before {job} had left"
                if run.entered.said != f"{job} {job}.txt":
                    yield f"{after}: was handed {run.entered.said!r} instead of what {job} left"
