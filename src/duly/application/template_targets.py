"""A schedule's target that is a template: a snapshot of it when the slot fires, or the reason why there is none."""

from duly.application.templates import template_known
from duly.domain.errors import InvalidInput
from duly.domain.executions import GRAPH_RUN
from duly.domain.ids import Owner
from duly.domain.jobs import Entry, SlotJob
from duly.domain.payloads import Payload, value_of
from duly.domain.pools import UnknownPool
from duly.domain.schedules import template_in
from duly.domain.templates import Origin, Snapshot, UnknownTemplate
from duly.ports.storage import Transaction


async def snapshot_for(tx: Transaction, kind: str, params: Payload, owner: Owner) -> Snapshot:
    """What a target of that kind would run now; raises if there is no such template, or it does not take the params."""
    try:
        mould = await template_known(tx, str(template_in(kind)), owner)
    except UnknownTemplate as unknown:
        raise InvalidInput("target", str(unknown), fix="define it first: it must be the schedule's owner's") from None
    snapshot = mould.snapshot(value_of(params))
    snapshot.payload()
    if snapshot.new.kind == GRAPH_RUN:
        # It would have no grant of its own, and nobody would have asked whether its account can pay.
        fix = f"name {GRAPH_RUN} itself as the target"
        raise InvalidInput("target", f"template {mould.name!r} runs a graph, which a schedule runs itself", fix=fix)
    for name in snapshot.new.resources:
        if await tx.pools.get(name) is None:
            raise UnknownPool(name, field="resources")
    return snapshot


async def resolved_entry(tx: Transaction, entry: Entry, owner: Owner) -> tuple[Entry, Origin]:
    """The slot's job as the template says it. Its key is the slot's, and so is its lane if there is one."""
    made = await snapshot_for(tx, entry.new.kind, entry.payload, owner)
    asked, new = entry.new, made.new
    job = SlotJob(
        kind=new.kind,
        key=asked.key,  # type: ignore[arg-type] # a slot's job has one
        lane=asked.lane or new.lane,
        pool=new.pool,
        priority=new.priority,
        run_at=asked.run_at,
        retry=new.retry,
        timeout_ms=new.timeout_ms,
        resources=new.resources,
    )
    return entry._replace(new=job, payload=made.payload()), made.origin(owner)
