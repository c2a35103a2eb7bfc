"""Schedules of workflows as deployers know them: upserted, paused, deleted and looked at by one id."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from duly.application.schedules import Changed, Schedules
from duly.application.workflow_schedules import WorkflowSchedule
from duly.application.workflow_targets import Payer, new_grant
from duly.application.workflows import version_known, workflow_known
from duly.domain.cadence import Cadence
from duly.domain.errors import InvalidInput
from duly.domain.ids import AccountId, GrantId, Owner, ScheduleId
from duly.domain.instants import SECOND
from duly.domain.keys import key_of_own_run
from duly.domain.payloads import value_of
from duly.domain.policies import Policies
from duly.domain.runs import Run, RunKind
from duly.domain.schedules import LONGEST_ID, Fire, Schedule, UnknownSchedule, slot_key
from duly.domain.texts import text_of
from duly.domain.workflows import Bound, cron_of, named_by, run_key
from duly.ports.dice import Dice
from duly.ports.storage import Storage, Transaction

PREVIEWED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleInput:
    """What `upsert` takes; what is left out has its default."""

    workflow_id: str
    version: int
    user_id: str
    cron_expr: str
    timezone: str = "UTC"
    schedule_id: str | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    jitter_ms: int | None = None
    overlap_policy: str | None = None
    catchup_policy: str | None = None

    def cadence(self) -> Cadence:
        cadence = cron_of(self.cron_expr, self.timezone)
        if self.start_at is None and self.end_at is None:
            return cadence
        return cadence.within(start_at=self.start_at, end_at=self.end_at)

    def policies(self, defaults: Policies) -> Policies:
        try:
            return Policies(
                overlap=defaults.overlap if self.overlap_policy is None else self.overlap_policy,  # type: ignore[arg-type]
                catch_up=defaults.catch_up if self.catchup_policy is None else self.catchup_policy,  # type: ignore[arg-type]
                catch_up_cap=defaults.catch_up_cap,
                jitter_ms=defaults.jitter_ms if self.jitter_ms is None else self.jitter_ms,
            )
        except InvalidInput as error:
            said = {"overlap": "overlap_policy", "catch_up": "catchup_policy"}.get(error.field, error.field)
            raise InvalidInput(said, error.reason, fix=error.fix) from None


@dataclass(frozen=True, slots=True)
class Registered:
    """A schedule that runs a workflow, which of its versions, and when it fires next."""

    schedule: Schedule
    bound: Bound
    version: int | None
    preview: Sequence[Fire] = ()


@dataclass(frozen=True, slots=True)
class Registrar:
    storage: Storage
    dice: Dice
    schedules: Schedules
    payer: Payer

    async def upsert(self, asked: ScheduleInput) -> Schedule:
        """Creates it, or makes it this and active: a pause ends. Without an id, one is drawn."""
        owner = Owner(text_of(asked.user_id, field="user_id"))
        known = self.dice.new_id("sch") if asked.schedule_id is None else asked.schedule_id
        schedule_id = ScheduleId(text_of(known, field="schedule_id", longest=LONGEST_ID))
        if "/" in schedule_id:
            raise InvalidInput("schedule_id", "cannot stand in a path", fix="use no slash")
        cadence, policies = asked.cadence(), asked.policies(self.schedules.defaults)
        account, grant_id = await self._account(asked, owner), GrantId(self.dice.new_id("grant"))
        drawn = self.schedules.draw()

        async def work(tx: Transaction) -> Changed:
            version = await version_known(tx, asked.workflow_id, asked.version, owner)
            wanted = WorkflowSchedule(
                id=schedule_id,
                version=version,
                plan=version.plan,
                given=version.plan.input_for(None),
                cadence=cadence,
                policies=policies,
                fresh_grant=new_grant(grant_id, version, account, drawn.now),
                activates=True,
            )
            return await wanted.made_in(tx, self.schedules, drawn)

        return self.schedules.told(await self.storage.transact(work))

    async def _account(self, asked: ScheduleInput, owner: Owner) -> AccountId:
        """Nobody is given an account for naming what is not there."""
        await self.storage.read(lambda tx: workflow_known(tx, asked.workflow_id, owner))
        return await self.payer.account_of(owner)

    async def pause(self, schedule_id: str, paused: bool, *, owner: str | None) -> Schedule:
        await self._bound(schedule_id, owner)
        if paused:
            return await self.schedules.pause(schedule_id, owner=owner)
        return await self.schedules.resume(schedule_id, owner=owner)

    async def delete(self, schedule_id: str, *, owner: str | None) -> None:
        await self._bound(schedule_id, owner)
        await self.schedules.delete(schedule_id, owner=owner)

    async def get(self, schedule_id: str, *, owner: str | None) -> Registered:
        """With the next five times it fires."""
        bound = await self._bound(schedule_id, owner)
        schedule = await self.schedules.get(schedule_id, owner=owner)
        return Registered(schedule, bound, _version_of(schedule), schedule.upcoming(PREVIEWED))

    async def runs(self, schedule_id: str, *, owner: str | None, most: int) -> Sequence[Run]:
        """The newest slots first."""
        await self._bound(schedule_id, owner)
        return await self.schedules.runs(schedule_id, owner=owner, most=most)

    async def _bound(self, schedule_id: str, owner: str | None) -> Bound:
        """One that runs no workflow is not for the registrar, and one of somebody else's does not exist."""
        known = ScheduleId(text_of(schedule_id, field="schedule_id"))
        bound = await self.storage.read(lambda tx: tx.workflows.bound(known))
        if bound is None or owner not in (None, bound.owner):
            raise UnknownSchedule(schedule_id)
        return bound


def key_of(run: Run) -> str:
    """A slot's key; a run that shares its instant with a slot has that of its job, which executors are given, too."""
    slot = run.scheduled_for // SECOND
    if run.kind is RunKind.SLOT:
        return run_key(run.schedule_id, slot)
    return key_of_own_run(run.own_key, slot_key(run.schedule_id, slot))


def _version_of(schedule: Schedule) -> int | None:
    named = named_by(str(value_of(schedule.target.payload).get("graph_id")))
    return None if named is None else named[1]
