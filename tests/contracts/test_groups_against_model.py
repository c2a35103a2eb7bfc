"""Any sequence of what may happen to groups and the jobs of their members, against a model of plain lists."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from duly.domain.errors import DulyError
from duly.domain.groups import GroupMode, NewGroup, NewMember
from duly.domain.ids import GroupId, JobId
from duly.domain.jobs import Ending, JobStatus, UnknownJob
from duly.domain.retries import RetryPolicy
from duly.domain.sessions import ClaimedJob
from tests.contracts.dice import CountingDice
from tests.contracts.group_model import GroupModel
from tests.contracts.laws import broken_laws
from tests.contracts.model import Refusal
from tests.contracts.shared_postgres import SharedPostgres
from tests.contracts.world import Hand, World, new

INDEX = st.integers(0, 10_000)
EFFORT = int(os.environ.get("DULY_TEST_EFFORT", "1"))
ENDINGS = {
    "COMPLETED": Ending(status=JobStatus.COMPLETED),
    "SKIPPED": Ending(status=JobStatus.SKIPPED),
    "FAILED": Ending(status=JobStatus.FAILED, error="as asked"),
    "hopeless": Ending(status=JobStatus.FAILED, error="as asked", retryable=False),
}

At = tuple[str, int]


class GroupsAgainstModel(RuleBasedStateMachine):
    """A job is known by the place of its member: `kind` says which."""

    def __init__(self, store: str, place: str) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.world = World(store, place)
        self.world.dice = CountingDice()
        self.model = GroupModel()
        self.ids: dict[str, GroupId] = {}
        self.hands: list[Hand] = []
        self.claims: dict[At, ClaimedJob] = {}
        self.lost: list[tuple[Hand, ClaimedJob]] = []

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    @initialize()
    def open(self) -> None:
        async def work() -> None:
            await self.world.open()
            self.hands = [await self.world.hand() for _ in range(2)]

        self.run(work())

    def teardown(self) -> None:
        self.run(self.world.close())
        self.runner.close()

    # Callers.

    @rule(
        sequential=st.booleans(),
        stops=st.booleans(),
        attempts=st.lists(st.integers(1, 2), min_size=1, max_size=4),
        lane=st.sampled_from([None, None, "lane"]),
    )
    def create(self, sequential: bool, stops: bool, attempts: list[int], lane: str | None) -> None:
        name = f"g{len(self.ids)}"
        members = [
            NewMember(
                job=new(f"{name}.{place}", lane=lane, retry=RetryPolicy(max_attempts=count, backoff_ms=0)),
            )
            for place, count in enumerate(attempts)
        ]
        group = NewGroup(
            members=members,
            mode=GroupMode.SEQUENTIAL if sequential else GroupMode.PARALLEL,
            stop_on_failure=sequential and stops,
        )
        self.ids[name] = self.run(self.world.queue.groups.create(group, owner="ann")).id
        self.model.create(name, sequential=sequential, stops=stops, attempts=attempts)

    @precondition(lambda self: self.ids)
    @rule(one=INDEX)
    def cancel(self, one: int) -> None:
        name = self._group(one)
        real = self._status(self.world.queue.groups.cancel(self.ids[name], owner="ann", reason="enough"))
        self._same(lambda: self.model.cancel(name), real)

    @precondition(lambda self: self.ids)
    @rule(one=INDEX)
    def retry(self, one: int) -> None:
        name = self._group(one)
        real = self._status(self.world.queue.groups.retry(self.ids[name], owner="ann"))
        self._same(lambda: self.model.retry(name), real)

    @precondition(lambda self: any(member.state == "live" for _, member in self.model.members()))
    @rule(one=INDEX)
    def cancel_a_job(self, one: int) -> None:
        live = [at for at, member in self.model.members() if member.state == "live"]
        at = live[one % len(live)]
        job_id = self.run(self._last_job(*at))
        self._same(lambda: self.model.cancel_job(*at), self.world.queue.jobs.cancel(job_id, reason="not this"))

    @precondition(lambda self: any(member.was_ever_put for _, member in self.model.members()))
    @rule(one=INDEX)
    def retry_a_job(self, one: int) -> None:
        put = [at for at, member in self.model.members() if member.was_put and member.state != "pending"]
        at = put[one % len(put)] if put else ("", 0)
        # What an ended group's members left may have been pruned.
        if put and (job_id := self.run(self._last_job(*at))) is not None:
            self._same(lambda: self.model.retry_job(*at), self._outcome(self.world.queue.jobs.retry(job_id)))

    @rule()
    def prune(self) -> None:
        """Nothing that a running group may still need goes."""
        self.run(self.world.queue.jobs.prune(before=self.world.clock.now()))

    # Workers.

    @rule(who=st.integers(0, 1), most=st.integers(1, 3))
    def claim(self, who: int, most: int) -> None:
        for job in self.run(self.hands[who].claim(most)):
            at = self._at(job.kind)
            self.model.claim(*at, who)
            self.claims[at] = job

    @precondition(lambda self: self.claims)
    @rule(one=INDEX, ending=st.sampled_from(sorted(ENDINGS)))
    def report(self, one: int, ending: str) -> None:
        at = sorted(self.claims)[one % len(self.claims)]
        hand, job = self._claim(at)
        exchange = self.run(hand.finish(job, ending=ENDINGS[ending]))
        self.model.report(*at, ending)
        assert list(exchange.stale) == []

    @precondition(lambda self: len(self.claims) > 1)
    @rule(ending=st.sampled_from(sorted(ENDINGS)))
    def report_all(self, ending: str) -> None:
        """Of one worker, in one exchange."""
        who = min(worker for _, m in self.model.members() if (worker := m.worker) is not None)
        held = [at for at in sorted(self.claims) if self.model.at(*at)[1].worker == who]
        jobs = [self._claim(at)[1] for at in held]
        self.run(self.hands[who].finish(*jobs, ending=ENDINGS[ending]))
        for at in held:
            self.model.report(*at, ending)

    @precondition(lambda self: self.lost)
    @rule(one=INDEX)
    def report_a_lost_claim(self, one: int) -> None:
        hand, job = self.lost[one % len(self.lost)]
        assert list(self.run(hand.finish(job)).stale) == [job.id]

    @precondition(lambda self: self.claims)
    @rule(one=INDEX)
    def revoke(self, one: int) -> None:
        """What was asked to stop and does not loses its claim."""
        at = sorted(self.claims)[one % len(self.claims)]
        group, member = self.model.at(*at)
        if member.asked_to_stop:
            self.lost.append(self._claim(at))
            assert self.run(self.world.queue.sessions.revoke(self.lost[-1][1].id, reason="too slow"))
            group.end(member, "CANCELLED")

    @rule(who=st.integers(0, 1))
    def lose_a_worker(self, who: int) -> None:
        async def work() -> None:
            self.world.clock.advance(20)
            await self.world.queue.sessions.beat(self.hands[1 - who].session)
            self.world.clock.advance(10)
            await self.world.queue.sessions.rescue_expired()
            self.hands[who] = await self.world.hand()

        for at in list(self.claims):
            if self.model.at(*at)[1].worker == who:
                self.lost.append(self._claim(at))
        self.run(work())
        self.model.lose(who)

    # What must be the same.

    @invariant()
    def agrees(self) -> None:
        if self.hands:
            self.run(self._agree())

    async def _agree(self) -> None:
        for name, group in self.model.groups.items():
            real = await self.world.queue.groups.get(self.ids[name], owner="ann")
            members = await self.world.queue.groups.members(self.ids[name], owner=None)
            assert [member.state for member in members] == [member.state for member in group.members]
            assert real.status == group.status
        assert await broken_laws(self.world.rows) == []

    def _same(self, expected: Callable[[], Any], real: Coroutine[Any, Any, Any]) -> None:
        try:
            answer: Any = expected()
        except Refusal as refusal:
            answer = str(refusal)
        try:
            answered = self.run(real)
        except DulyError as error:
            answered = error.code
        assert answered == answer

    async def _status(self, changing: Coroutine[Any, Any, Any]) -> str:
        return str((await changing).status)

    async def _outcome(self, putting: Coroutine[Any, Any, Any]) -> str:
        return str((await putting).outcome)

    async def _last_job(self, name: str, place: int) -> JobId | None:
        members = await self.world.queue.groups.members(self.ids[name], owner=None)
        try:
            return (await self.world.queue.jobs.chain(members[place].job_id))[-1].id
        except UnknownJob:
            return None

    def _claim(self, at: At) -> tuple[Hand, ClaimedJob]:
        worker = self.model.at(*at)[1].worker
        assert worker is not None
        return self.hands[worker], self.claims.pop(at)

    def _group(self, index: int) -> str:
        return sorted(self.ids)[index % len(self.ids)]

    def _at(self, kind: str) -> At:
        name, _, place = kind.partition(".")
        return name, int(place)


@pytest.mark.req("INV-006")
@pytest.mark.req("DEC-012")
def test_groups_do_what_their_model_does(store: str, request: pytest.FixtureRequest) -> None:
    shared: SharedPostgres | None = request.getfixturevalue("shared_postgres") if store == "postgres" else None

    def machine() -> GroupsAgainstModel:
        if shared is None:
            return GroupsAgainstModel(store, ":memory:")
        shared.empty()
        return GroupsAgainstModel(store, shared.url)

    run_state_machine_as_test(
        machine,  # type: ignore[arg-type]  # any factory will do
        settings=settings(
            max_examples=(100 if store == "sqlite" else 12) * EFFORT,
            stateful_step_count=40,
            deadline=None,
            database=None,
            derandomize=EFFORT == 1,
            suppress_health_check=list(HealthCheck),
        ),
    )
