"""Gathers what is recorded of groups, of runs of workflows and of executions, for whoever asks why."""

from duly.application.job_facts import Asking
from duly.application.spending import spending_of
from duly.domain.executions import Execution, UnknownExecution
from duly.domain.explanations import (
    Explained,
    GroupFacts,
    Spending,
    WorkflowRunFacts,
    explain_execution,
    explain_group,
    explain_unput,
    explain_workflow_run,
)
from duly.domain.groups import MOST_MEMBERS, Member, MemberState, UnknownGroup, member_of
from duly.domain.ids import GrantId, GroupId, JobId
from duly.domain.instants import Instant
from duly.domain.jobs import FinishedJob, Job
from duly.domain.reviews import Review
from duly.domain.workflows import DagRun
from duly.ports.storage import Transaction

_MOST_JOBS = 20


async def why_group(tx: Transaction, group_id: GroupId, asking: Asking) -> Explained:
    group = await tx.groups.get(group_id)
    if group is None or asking.owner not in (None, group.owner):
        raise UnknownGroup(group_id)
    members = await tx.groups.members(group.id, most=MOST_MEMBERS)
    return explain_group(GroupFacts(group=group, members=members, now=asking.now, jobs=await _jobs_of(tx, members)))


async def why_unput(tx: Transaction, job_id: JobId, asking: Asking) -> Explained | None:
    """Of an id that a member of a group has for its job, while there is no such job."""
    named = await tx.groups.member_of_chain(job_id)
    if named is None:
        return None
    group_id, place = member_of(named)
    group = await tx.groups.get(group_id)
    members = await tx.groups.members(group_id, after=place - 1, most=1)
    if group is None or not members or asking.owner not in (None, group.owner):
        return None
    return explain_unput(group, members[0])


async def _jobs_of(tx: Transaction, members: list[Member]) -> dict[JobId, Job | FinishedJob]:
    """Of the first that are live, and of the first that failed: no more are named."""
    jobs = {}
    for state in (MemberState.LIVE, MemberState.FAILED):
        for member in [each for each in members if each.state is state][:_MOST_JOBS]:
            found = None if member.last_job is None else await tx.jobs.get(member.last_job)
            if state is MemberState.LIVE and await tx.jobs.get(member.job_id) is not None:
                found = (await tx.jobs.chain(member.job_id))[-1]
            if found is not None:
                jobs[member.job_id] = found
    return jobs


async def why_workflow_run(tx: Transaction, run_id: str, asking: Asking, *, workflow: str | None = None) -> Explained:
    """Of a named workflow, if one is named."""
    run = await tx.workflows.run(run_id)
    execution = await tx.executions.by_run(run_id)
    if run is None or workflow not in (None, run.workflow):
        raise UnknownExecution(run_id)
    if execution is None or asking.owner not in (None, run.owner):
        raise UnknownExecution(run_id)
    return explain_workflow_run(await _run_facts(tx, run, execution, asking))


async def _run_facts(tx: Transaction, run: DagRun, execution: Execution, asking: Asking) -> WorkflowRunFacts:
    version = await tx.workflows.version(run.workflow, run.version)
    spending = await spending_of(tx, execution.grant_id, execution)
    return WorkflowRunFacts(
        run=run,
        execution=execution,
        now=asking.now,
        plan=None if version is None else version.plan,
        nodes=await tx.workflows.nodes(run.run_id),
        attempt_at=_begun_at(spending, execution.attempt),
        reviews=await _open_reviews(tx, run.run_id),
        accepted_at=await tx.why.accepted_at(run.run_id),
        called_back=await tx.workflows.called_back(run.run_id),
        spending=spending,
    )


async def why_execution(tx: Transaction, run_id: str, asking: Asking) -> Explained:
    """Of a graph that is no workflow, and that no run was opened for: an operator's, or a service's."""
    execution = await tx.executions.by_run(run_id)
    grant = None if execution is None else await tx.grants.get(GrantId(execution.grant_id))
    if execution is None or grant is None or asking.owner not in (None, grant.user_id):
        raise UnknownExecution(run_id)
    spending = await spending_of(tx, grant.id, execution)
    if spending is None:
        raise UnknownExecution(run_id)
    return explain_execution(execution, spending, await _open_reviews(tx, run_id), asking.now)


async def _open_reviews(tx: Transaction, run_id: str) -> list[Review]:
    return [review for review in await tx.reviews.of_run(run_id) if review.is_open]


def _begun_at(spending: Spending | None, attempt: int) -> Instant | None:
    """An attempt begins with its hold."""
    holds = () if spending is None else spending.holds
    return next((hold.held_at for hold in holds if hold.attempt == attempt), None)
