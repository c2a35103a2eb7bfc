"""Why a run of a workflow is as it is: which nodes ended how, which run, and what the others wait for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from duly.domain.dags import Node
from duly.domain.executions import Execution, ExecutionStatus
from duly.domain.explanations.explanation import first_line
from duly.domain.explanations.facts import Explained, Fact, Subject, counted, several
from duly.domain.explanations.spending import Spending, spending_in_words
from duly.domain.instants import Instant, written
from duly.domain.reviews import Review
from duly.domain.workflows import CallBack, CalledBack, DagRun, NodeRun, NodeState, Plan

MOST_TOLD = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRunFacts:
    """`attempt_at` is when the last attempt at it began, as far as its hold says; `plan` is its version's."""

    run: DagRun
    execution: Execution
    now: Instant
    plan: Plan | None = None
    nodes: Sequence[NodeRun] = ()
    attempt_at: Instant | None = None
    reviews: Sequence[Review] = ()
    accepted_at: Instant | None = None
    called_back: CallBack | None = None
    spending: Spending | None = None

    @property
    def is_over(self) -> bool:
        return self.execution.status is ExecutionStatus.DONE


def explain_workflow_run(facts: WorkflowRunFacts) -> Explained:
    run = facts.run
    what = f"{run.run_id} is a run of version {run.version} of the workflow {run.workflow!r}"
    told = [Fact("begun", f"{what}, begun at {written(run.begun_at)}.", (run.run_id,)), *_elsewhere(facts)]
    told += _nodes(facts)
    told += [Fact("waits_for_review", review.waiting_in_words, (review.id,)) for review in facts.reviews]
    if facts.spending is not None:
        told += [Fact("spending", said) for said in spending_in_words(facts.spending, now=facts.now)]
    told += _next(facts)
    return Explained(subject=Subject.WORKFLOW_RUN, id=run.run_id, answer=execution_answer(facts.execution), facts=told)


def explain_execution(execution: Execution, spending: Spending, reviews: Sequence[Review], now: Instant) -> Explained:
    """One of a graph that is no workflow: what is known of it is what it was allowed, held and spent."""
    told = [Fact("spending", said) for said in spending_in_words(spending, now=now)]
    told += [Fact("waits_for_review", review.waiting_in_words, (review.id,)) for review in reviews]
    told += _decide(reviews)
    answer = execution_answer(execution)
    return Explained(subject=Subject.EXECUTION, id=execution.run_id, answer=answer, facts=told)


def execution_answer(execution: Execution) -> str:
    if execution.status is ExecutionStatus.DONE:
        return "ran" if execution.ok else "failed"
    return execution.status.value


def _elsewhere(facts: WorkflowRunFacts) -> Iterator[Fact]:
    executor = None if facts.plan is None else facts.plan.executor
    if executor is None:
        return
    yield Fact("elsewhere", f"An executor elsewhere runs it: {executor.url}.")
    if facts.accepted_at is not None:
        yield Fact("accepted", f"The executor took it at {written(facts.accepted_at)}.")
    if (said := facts.called_back) is not None:
        value = f": {first_line(said.value)}" if said.value is not None else ""
        yield Fact("called_back", f"The executor has said {said.status}{value}.")
    is_silent = said is None or said.status is CalledBack.STARTED
    if facts.accepted_at is not None and executor.callback and is_silent and not facts.is_over:
        until = Instant(facts.run.begun_at + executor.deadline_ms * 1_000)
        yield Fact("waits_for_call_back", f"It waits until {written(until)} for the executor to call back.")


def _nodes(facts: WorkflowRunFacts) -> Iterator[Fact]:
    if facts.plan is None or facts.plan.executor is not None:
        return
    rows = {row.node: row for row in facts.nodes}
    nodes = facts.plan.nodes
    counts = {state: sum(row.state is state for row in facts.nodes) for state in NodeState}
    parts = [f"{count} {state}" for state, count in counts.items() if count]
    parts += [f"{len(nodes) - len(rows)} not begun"] if len(nodes) > len(rows) else []
    yield Fact("progress", f"Of its {counted(len(nodes), 'node')}: {several(parts)}.")
    for node in nodes[:MOST_TOLD]:
        row = rows.get(node.id)
        yield _unbegun(node, rows, facts) if row is None else _begun(node, row, facts)
    if (more := len(nodes) - MOST_TOLD) > 0:
        yield Fact("more", f"It has {counted(more, 'node')} more; the run itself lists them.")


def _begun(node: Node, row: NodeRun, facts: WorkflowRunFacts) -> Fact:
    tries, about = counted(row.tries, "try", "tries"), (node.id,)
    ended = "" if row.ended_at is None else f" at {written(row.ended_at)}"
    match row.state:
        case NodeState.SUCCESS:
            is_kept = row.ended_at is not None and facts.attempt_at is not None and row.ended_at < facts.attempt_at
            kept = f", before attempt {facts.execution.attempt} began, and was not run again" if is_kept else ""
            name = "node_reused" if is_kept else "node_succeeded"
            return Fact(name, f"Node {node.id!r} succeeded{ended} after {tries}{kept}.", about)
        case NodeState.FAILED:
            said = f": {first_line(row.error)}" if row.error else ""
            code = f" ({row.error_code})" if row.error_code else ""
            return Fact("node_failed", f"Node {node.id!r} failed{ended} after {tries}{code}{said}.", about)
        case NodeState.SKIPPED:
            said = f": {first_line(row.error)}" if row.error else ""
            return Fact("node_skipped", f"Node {node.id!r} was skipped{ended}{said}.", about)
        case NodeState.RUNNING:
            return Fact("node_running", f"Node {node.id!r} {_running(node, row, facts)}.", about)


def _running(node: Node, row: NodeRun, facts: WorkflowRunFacts) -> str:
    began = "" if row.started_at is None else f" at {written(row.started_at)}"
    which = f"try {row.tries} of {node.retry.max_attempts}"
    if facts.is_over:
        return f"began {which}{began}, and the run ended before it did"
    is_lost = row.started_at is not None and facts.attempt_at is not None and row.started_at < facts.attempt_at
    if is_lost:
        return f"began {which}{began}, in an attempt before this one, and counts that try as lost"
    return f"is at {which}, begun{began}"


def _unbegun(node: Node, rows: Mapping[str, NodeRun], facts: WorkflowRunFacts) -> Fact:
    missing = [each for each in node.needs if each not in rows or rows[each].state is not NodeState.SUCCESS]
    if facts.is_over:
        return Fact("node_not_begun", f"Node {node.id!r} was not begun.", (node.id,))
    if missing:
        needs = several([repr(each) for each in missing])
        return Fact("node_waits", f"Node {node.id!r} waits for {needs}.", (node.id, *missing))
    running = sum(row.state is NodeState.RUNNING for row in rows.values())
    most = 0 if facts.plan is None else facts.plan.concurrency
    full = f", but {running} of at most {most} run already" if most and running >= most else ""
    return Fact("node_ready", f"Node {node.id!r} is ready{full}.", (node.id,))


def _next(facts: WorkflowRunFacts) -> Iterator[Fact]:
    yield from _decide(facts.reviews)
    if facts.is_over and not facts.execution.ok:
        yield Fact("next", f"Run the workflow again with `duly workflow run {facts.run.workflow}`.")


def _decide(reviews: Sequence[Review]) -> Iterator[Fact]:
    if reviews:
        yield Fact("next", f"Decide it with `duly review approve {reviews[0].id}`, or reject it.", (reviews[0].id,))
