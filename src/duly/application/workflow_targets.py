"""What a schedule or a launch of a workflow puts: a job that has it executed, under a grant for that version alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from duly.application.accounts import Accounts
from duly.application.graph_grants import GraphGrants
from duly.domain.executions import GRAPH_RUN
from duly.domain.grants import Grant, scopes_of
from duly.domain.ids import AccountId, GrantId, Owner, PoolName, ScheduleId
from duly.domain.instants import Instant
from duly.domain.retries import RetryPolicy
from duly.domain.schedules import Target
from duly.domain.workflows import Plan, WorkflowVersion
from duly.ports.storage import Transaction

POOL = PoolName("graphs")
# Under the same key each of them has the same outcome, so they only make up for workers that died.
RETRY = RetryPolicy(max_attempts=5, backoff_ms=1_000)


@dataclass(frozen=True, slots=True)
class Payer:
    """Who pays for what an owner runs: the first account, which is made if there is none."""

    accounts: Accounts
    graphs: GraphGrants

    async def account_of(self, owner: Owner) -> AccountId:
        found = await self.accounts.list(owner=owner, most=1)
        return (found[0] if found else await self.graphs.open_first(self.accounts.storage, owner)).id


def params_of(version: WorkflowVersion, plan: Plan, grant_id: GrantId, given: Mapping[str, Any]) -> dict[str, Any]:
    """As `graph.run` takes them."""
    params: dict[str, Any] = {
        "graph_id": version.graph_id,
        "grant_id": grant_id,
        "input": dict(given),
        "on_crash": plan.on_crash.value,
        "timeout_ms": plan.longest_ms,
    }
    return params if plan.max_cost is None else {**params, "max_cost": plan.max_cost}


def target_of(version: WorkflowVersion, plan: Plan, grant_id: GrantId, given: Mapping[str, Any]) -> Target:
    return Target(kind=GRAPH_RUN, params=params_of(version, plan, grant_id, given), pool=POOL, retry=RETRY)


def new_grant(grant_id: GrantId, version: WorkflowVersion, account_id: AccountId, now: Instant) -> Grant:
    return Grant(
        id=grant_id,
        user_id=version.owner,
        account_id=account_id,
        scopes=scopes_of([f"graph:execute:{version.graph_id}"]),
        created_at=now,
    )


async def serving_grant(
    tx: Transaction, schedule_id: ScheduleId, fresh: Grant, graph_id: str, now: Instant, *, renews: bool
) -> Grant:
    """The schedule's own while it serves, so that deploying the same again changes nothing; else the fresh one.

    One that was revoked is replaced only for whoever `renews` it: programs deploy the same whenever they start.
    """
    known = await tx.grants.of_schedule(schedule_id)
    if known is None or not known.covers(graph_id):
        return fresh
    if known.revoked_at is not None:
        return fresh if renews else known
    return fresh if known.expires_at is not None and known.expires_at <= now else known


async def serving_launch_grant(
    tx: Transaction, version: WorkflowVersion, account_id: AccountId, now: Instant
) -> Grant | None:
    """What launches of this version act under already; one that was revoked is not used again."""
    known = await tx.grants.of_launches(version.name, version.version)
    if known is None or known.revoked_at is not None or known.account_id != account_id:
        return None
    return None if known.expires_at is not None and known.expires_at <= now else known
