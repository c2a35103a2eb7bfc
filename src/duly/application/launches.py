"""Starts runs of workflows that are asked for by name and key; a key launches once, whoever asks again."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from duly.application.places import Places
from duly.application.workflow_targets import POOL, RETRY, Payer, new_grant, params_of, serving_launch_grant
from duly.application.workflows import version_known, workflow_known
from duly.domain.executions import GRAPH_RUN
from duly.domain.ids import AccountId, GrantId, JobId, JobKey, Owner
from duly.domain.instants import SECOND, Instant
from duly.domain.jobs import Entry, NewJob
from duly.domain.payloads import json_of
from duly.domain.requests import KeyReused
from duly.domain.runs import Run
from duly.domain.templates import Origin
from duly.domain.texts import text_of
from duly.domain.workflows import Launch, NotDeployed, UnknownWorkflow, launch_key, run_key
from duly.ports.dice import Dice
from duly.ports.storage import Storage, Transaction

LONGEST_KEY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What was asked for, and what was drawn for it."""

    name: str
    version: int | None
    params: Mapping[str, Any] | None
    owner: Owner
    key: str
    scheduled_for: Instant | None
    account: AccountId
    grant_id: GrantId
    job_id: JobId
    position: int
    now: Instant

    @property
    def hash(self) -> str:
        asked = json_of([self.name, self.version, dict(self.params or {}), self.scheduled_for], field="params")
        return hashlib.sha256(asked.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Launches:
    storage: Storage
    dice: Dice
    payer: Payer
    _places: Places = field(default_factory=Places)

    async def start(
        self, workflow_id: str, version: int, user_id: str, scheduled_for: Instant, idempotency_key: str
    ) -> bool:
        """Whether it runs or ran: False if there is no such workflow, or the slot of that key was never launched.

        The key of a slot that a schedule of ours has is the ledger's, and launches nothing a second time.
        """
        owner = Owner(text_of(user_id, field="user_id"))
        try:
            slot = await self.storage.read(lambda tx: _slot_of(tx, workflow_id, owner, scheduled_for, idempotency_key))
            if slot is not None:
                return slot[0] is not None and slot[0].job_id is not None
            await self.launch(
                workflow_id, owner=owner, version=version, key=idempotency_key, scheduled_for=scheduled_for
            )
        except UnknownWorkflow:
            return False
        return True

    async def launch(
        self,
        name: str,
        *,
        owner: str,
        version: int | None = None,
        params: Mapping[str, Any] | None = None,
        key: str | None = None,
        scheduled_for: Instant | None = None,
    ) -> Launch:
        """A run of the newest version unless one is named; the same key again answers the same launch."""
        whose, now = Owner(text_of(owner, field="owner")), self.storage.clock.now()
        asked = _Asked(
            name=name,
            version=version,
            params=params,
            owner=whose,
            key=self.dice.new_id("launch") if key is None else text_of(key, field="key", longest=LONGEST_KEY),
            scheduled_for=scheduled_for,
            account=await self._account(name, whose),
            grant_id=GrantId(self.dice.new_id("grant")),
            job_id=JobId(self.dice.new_id("job")),
            position=self._places.take(now),
            now=now,
        )
        return await self.storage.transact(lambda tx: _launched(tx, asked))

    async def _account(self, name: str, owner: Owner) -> AccountId:
        """Nobody is given an account for naming what is not there."""
        await self.storage.read(lambda tx: workflow_known(tx, name, owner))
        return await self.payer.account_of(owner)


async def _launched(tx: Transaction, asked: _Asked, *, is_alone: bool = False) -> Launch:
    known = await tx.workflows.launch(launch_key(asked.owner, asked.key))
    if known is not None:
        if known.request_hash != asked.hash:
            raise KeyReused
        return known
    workflow = await workflow_known(tx, asked.name, asked.owner)
    if asked.version is None and not workflow.deployed:
        raise NotDeployed(asked.name)
    version = await version_known(tx, asked.name, asked.version, asked.owner)
    grant = await serving_launch_grant(tx, version, asked.account, asked.now)
    if grant is None and not is_alone:
        await tx.workflows.lock(asked.name)  # so that one grant is minted, however many launch it now
        return await _launched(tx, asked, is_alone=True)
    launch = Launch(
        key=asked.key,
        owner=asked.owner,
        workflow=asked.name,
        version=version.version,
        scheduled_for=asked.scheduled_for,
        job_id=asked.job_id,
        request_hash=asked.hash,
        created_at=asked.now,
    )
    if not await tx.workflows.add_launch(launch):
        return await _launched(tx, asked)  # somebody was faster, and has committed
    plan = version.plan
    if grant is None:
        grant = new_grant(asked.grant_id, version, asked.account, asked.now)
        await tx.grants.add(grant)
        await tx.grants.launch_under(version.name, version.version, grant.id)
    params = params_of(version, plan, grant.id, plan.input_for(asked.params))
    new = NewJob(
        kind=GRAPH_RUN,
        params={**params, "key": launch.execution_key},
        key=JobKey(launch.execution_key),
        pool=POOL,
        retry=RETRY,
    )
    await tx.jobs.put([Entry(asked.job_id, new, new.payload, asked.now, asked.position)])
    await tx.origins.save([(asked.job_id, Origin(owner=asked.owner))])
    return launch


async def _slot_of(
    tx: Transaction, workflow: str, owner: Owner, scheduled_for: Instant, key: str
) -> tuple[Run | None] | None:
    """The row of the slot that a key stands for, if it is one of a schedule that runs this workflow."""
    await workflow_known(tx, workflow, owner)
    for bound in await tx.workflows.bound_to(workflow):
        if run_key(bound.schedule_id, scheduled_for // SECOND) == key:
            slot = Instant(scheduled_for // SECOND * SECOND)
            return (await tx.ledger.slot(bound.schedule_id, slot),)
    return None
