"""`duly schedule` trigger and backfill: runs that no cadence planned."""

from typing import TYPE_CHECKING

from duly.cli import exits
from duly.cli.consent import is_agreed
from duly.cli.costs import cost_from, told_cost
from duly.cli.output import note, say, say_json
from duly.cli.parser import Options
from duly.cli.run import told_end
from duly.cli.shapes import at, backfill_shape, backfilled_shape, run_shape
from duly.cli.store import changing
from duly.cli.times import when_from
from duly.cli.waiting import deadline_of, end_of_run
from duly.domain.amounts import Amount
from duly.domain.backfills import Backfill
from duly.domain.instants import moment_of

if TYPE_CHECKING:
    from duly.bootstrap import Queue


def trigger(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        if options.dry_run:
            schedule = await queue.schedules.get(options.id, owner=None)
            note(f"dry run: would run {schedule.target.kind} of {schedule.id} now; nothing was changed")
            return exits.OK
        deadline = deadline_of(options, queue.storage.clock)
        run = await queue.schedules.run_now(options.id, owner=None, key=options.key)
        if options.wait:
            note(f"waiting for {run.id}")
            return told_end(options, await end_of_run(queue, run.id, deadline=deadline))
        if options.json:
            say_json(run_shape(run))
        else:
            say(f"started {run.id}; follow it: duly run log {run.id} --follow")
        return exits.OK

    return changing(change)


def backfill(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        now = queue.storage.clock.now()
        start = when_from(options.start, field="--from", now=now)
        end = moment_of(now) if options.end is None else when_from(options.end, field="--to", now=now)
        max_cost = cost_from(options.max_cost)
        asked = await queue.schedules.preview_backfill(options.id, owner=None, start=start, end=end, cap=options.cap)
        _preview(options, asked, max_cost)
        asked.require_fit()
        if asked.cost is not None:
            asked.cost.require_within(max_cost)
        if options.dry_run:
            note("dry run: nothing was changed")
            return exits.OK
        if not is_agreed(options, f"run {options.id} for these {asked.count} fires?"):
            return exits.FAILED
        runs = await queue.schedules.backfill(
            options.id,
            owner=None,
            start=start,
            end=end,
            cap=options.cap,
            max_cost=max_cost,
            expected_revision=asked.revision,
            key=options.key,
        )
        if options.json:
            say_json(backfilled_shape(runs))
        else:
            say(f"started {len(runs)} runs; see them: duly schedule runs {options.id}")
        return exits.OK

    return changing(change)


def _preview(options: Options, asked: Backfill, max_cost: Amount | None) -> None:
    """What is asked for is the data of a dry run, and a note otherwise."""
    if options.json and options.dry_run:
        say_json(backfill_shape(asked, max_cost))
        return
    ends = f", from {at(asked.first)} to {at(asked.last)}" if asked.count else ""
    beyond = f"; the cap is {asked.cap}" if asked.count > asked.cap else ""
    tell = say if options.dry_run else note
    tell(f"{asked.count} {'fire' if asked.count == 1 else 'fires'}{ends}{beyond}")
    told_cost(asked.cost, tell)
