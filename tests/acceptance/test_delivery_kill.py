"""kill -9 of workers that end jobs and groups and of couriers that tell it: no webhook is lost, none has two ids.

`DULY_DELIVERY_KILLS` sets how many kills each store gets, two of three of couriers; 200 of them take some minutes.
`DULY_SEED` repeats the choices of a run, though not its timing.
"""

import asyncio
import json
import os
import random
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from duly.bootstrap import Queue, Settings
from duly.domain.groups import GroupMode, NewGroup, NewMember
from duly.domain.pools import Pool
from duly.domain.retries import RetryPolicy
from duly.domain.templates import NewTemplate
from duly.domain.webhooks.events import RETRYING
from tests.acceptance import checker, delivery_laws
from tests.acceptance.conftest import NewPlace
from tests.acceptance.crash_points import CrashPoint
from tests.acceptance.delivery_laws import Told, told_in, untold_in
from tests.acceptance.delivery_lives import PATIENCE_SECONDS, Mortal
from tests.acceptance.delivery_process import LEASE_SECONDS, POOL
from tests.acceptance.delivery_receiver import NotingReceiver, noting
from tests.acceptance.journal import JournalReader, boottime
from tests.acceptance.processes import POLL_SECONDS, side_by_side, until

KILLS = int(os.environ.get("DULY_DELIVERY_KILLS") or 3)
ROOT = Path(__file__).parents[2]
OWNER = "ann"
WORKER_LEASE_MS = 1_000
MOST_UNDONE = 12
MOST_UNTOLD = 200
# One courier lives, as another does wherever there are two: it takes over from those that are killed.
STEADY = 3
ALWAYS = RetryPolicy(max_attempts=1_000, backoff_ms=0)
ALL, GROUPS, NAMED, STRANGERS = "/all", "/groups", "/named", "/strangers"


class Scene:
    def __init__(self, database_url: str, folder: Path) -> None:
        self.database_url = database_url
        self.folder = folder
        self.seed = int(os.environ.get("DULY_SEED") or secrets.randbelow(10**9))
        self.dice = random.Random(self.seed)
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "DULY_DATABASE_URL": database_url,
            "DULY_LEASE_MS": str(WORKER_LEASE_MS),
            "DULY_WEBHOOK_LOOPBACK": "allowed",
        }
        died_at: dict[str, set[CrashPoint]] = {"courier": set(), "worker": set()}
        self.mortals = [
            Mortal(
                role=role,
                name=f"{role}-{number}",
                folder=folder,
                environment=self.environment,
                kills=0 if number == STEADY else KILLS // 3 + (number < KILLS % 3),
                dice=random.Random(self.seed + number),
                died_at=died_at[role],
                # Two couriers die at different points.
                first=2 * number,
            )
            for number, role in enumerate(("courier", "courier", "worker", "courier"))
        ]
        self.chains: list[str] = []
        self.is_enough = False
        self._left = JournalReader(folder / "worker.journal")

    @property
    def undone(self) -> int:
        left = {line.chain for line in self._left.left()}
        return sum(chain not in left for chain in self.chains)

    @property
    def couriers(self) -> list[Mortal]:
        return [each for each in self.mortals if each.role == "courier"]

    @property
    def couriers_deaths(self) -> dict[int, float]:
        return {pid: at for each in self.couriers for pid, at in each.deaths.items()}

    async def keep_putting(self, queue: Queue) -> None:
        """Parallel groups, sequences and single jobs; some attempts fail as they are asked to."""
        while not self.is_enough:
            if self.undone > MOST_UNDONE or await untold_in(self.database_url) > MOST_UNTOLD:
                await asyncio.sleep(POLL_SECONDS)
                continue
            if self.dice.random() < 0.4:
                put = await queue.jobs.put_from("relay", self._params(0), owner=OWNER)
                self.chains.append(put.job_id)
                continue
            mode = self.dice.choice((GroupMode.PARALLEL, GroupMode.SEQUENTIAL))
            members = [NewMember(template="relay", params=self._params(n)) for n in range(self.dice.randint(1, 3))]
            group = await queue.groups.create(NewGroup(mode=mode, members=members), owner=OWNER)
            self.chains += [each.job_id for each in await queue.groups.members(group.id, owner=OWNER)]

    def _params(self, n: int) -> dict[str, Any]:
        return {"n": n, "work_ms": self.dice.choice((0, 5, 30)), "fails": self.dice.choice((0, 0, 0, 1))}


@pytest.mark.req("DEC-009")
@pytest.mark.store("sqlite")
@pytest.mark.store("postgres")
def test_couriers_and_workers_are_killed_at_every_point_and_each_end_is_told_under_one_id(new_place: NewPlace) -> None:
    scenes = [Scene(place.database_url, place.folder) for place in map(new_place, ("sqlite", "postgres"))]
    print(f"seeds {[scene.seed for scene in scenes]}")
    asyncio.run(side_by_side(*map(_scenario, scenes)))


async def _scenario(scene: Scene) -> None:
    queue = await Queue.open(Settings(database_url=scene.database_url, webhook_loopback="allowed"))
    try:
        async with noting(scene.folder / "received") as receiver:
            wanting = await _subscribed(queue, receiver)
            await _live_and_die(scene, queue)
            told = await _settled_down(scene)
            for mortal in scene.mortals:
                await mortal.stop()
            await _judged(scene, told, receiver, wanting)
        findings = [found async for verdict in queue.audit.verdicts() for found in verdict.findings.kept]
        assert findings == []
        await _healthy(scene)
    finally:
        for mortal in scene.mortals:
            mortal.end()
        await queue.close()


async def _subscribed(queue: Queue, receiver: NotingReceiver) -> Mapping[str, list[str]]:
    """Which addresses want which type of event; a stranger's gets nothing."""
    webhooks, url = queue.webhooks, receiver.url
    _, receiver.secrets[ALL] = await webhooks.create(url(ALL), owner=OWNER)
    _, receiver.secrets[GROUPS] = await webhooks.create(url(GROUPS), owner=OWNER, events=["group.*"])
    await webhooks.create(url(STRANGERS), owner="bob")
    await queue.pools.define(Pool(name=POOL, slots=1_000))
    template = NewTemplate(name="relay", kind="relay", pool=POOL, retry=ALWAYS, webhook_url=url(NAMED))
    await queue.templates.create(template, owner=OWNER)
    (named,) = [each for each in await webhooks.list(owner=OWNER) if each.url == url(NAMED)]
    _, receiver.secrets[NAMED] = await webhooks.rotate(named.id, owner=OWNER)
    return {
        RETRYING: [url(ALL)],
        **{f"job.{how}": [url(ALL), url(NAMED)] for how in ("completed", "failed", "cancelled", "skipped")},
        **{f"group.{how}": [url(ALL), url(GROUPS)] for how in ("completed", "partial", "cancelled")},
    }


async def _live_and_die(scene: Scene, queue: Queue) -> None:
    putting = asyncio.create_task(scene.keep_putting(queue))
    try:
        async with asyncio.TaskGroup() as group:
            for mortal in scene.mortals:
                group.create_task(mortal.be_killed())
    finally:
        scene.is_enough = True
        await putting


async def _settled_down(scene: Scene) -> Told:
    """All that was put has ended, and all of that was told."""
    await until(lambda: scene.undone == 0, within=PATIENCE_SECONDS, what="what was put is done")
    deadline = boottime() + PATIENCE_SECONDS
    while True:
        facts, told = await checker.facts_of(scene.database_url), await told_in(scene.database_url)
        left = [*delivery_laws.stuck(told)]
        if not left and not facts.live:
            checker.require(checker.lost_or_doubled(facts, scene.chains))
            return told
        why = "".join(each.complaints for each in scene.mortals)
        assert boottime() < deadline, f"{facts.live[:5]} {left[:5]} {why}"
        await asyncio.sleep(0.2)


async def _judged(scene: Scene, told: Told, receiver: NotingReceiver, wanting: Mapping[str, list[str]]) -> None:
    received, deaths = receiver.receptions(), scene.couriers_deaths
    notes = scene.couriers[0].notes.read()
    times = delivery_laws.recoveries(told, received, deaths, [each for each in notes if each["event"] == "claimed"])
    checker.require(
        receiver.complaints,
        delivery_laws.lost_or_doubled(told, wanting),
        delivery_laws.not_as_logged(told, received),
        delivery_laws.repeated_without_a_kill(told, received, deaths, notes),
        checker.slower_than(LEASE_SECONDS + 30, times),
    )
    assert {each.path for each in received} == {ALL, GROUPS, NAMED}
    print(
        f"{scene.database_url.partition(':')[0][-12:]}: {sum(len(each.deaths) for each in scene.mortals)} kills,"
        f" {len(deaths)} of them of couriers, {len(scene.chains)} chains, {len(told.events)} events,"
        f" {len(told.messages)} messages, {sum(map(len, told.logs.values()))} tries, {len(received)} receptions,"
        f" {delivery_laws.surplus(told, received)} repeats, {sum(each['event'] == 'late' for each in notes)} late,"
        f" worst recovery {max(times.values(), default=0):.2f} s of {len(times)}"
    )
    for mortal in scene.mortals[1:STEADY]:
        print(f"{mortal.role}: died at {len(mortal.died_at)} points, missed {sorted(mortal.wanted - mortal.died_at)}")
        if KILLS >= 100:
            assert mortal.wanted <= mortal.died_at, mortal.wanted - mortal.died_at


async def _healthy(scene: Scene) -> None:
    command = (sys.executable, "-m", "duly", "doctor", "--json")
    process = await asyncio.create_subprocess_exec(
        *command, env=scene.environment, cwd=scene.folder, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said
    assert json.loads(said)["healthy"] is True, said
