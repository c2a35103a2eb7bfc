"""`duly schedule` list, show, upcoming, runs and history: they only read."""

from typing import TYPE_CHECKING, NamedTuple

from duly.cli.listing import Listing, show_list
from duly.cli.output import facts, say_json, table, watched
from duly.cli.parser import Options
from duly.cli.run_words import runs_listing
from duly.cli.shapes import at, at_second, fire_shape, page, revision_shape, schedule_shape
from duly.cli.store import looking
from duly.cli.times import moment_from
from duly.domain.instants import Instant, instant_of
from duly.domain.payloads import EMPTY
from duly.domain.runs import Run
from duly.domain.schedules import Schedule
from duly.domain.sessions import warning_about_schedule

if TYPE_CHECKING:
    from duly.bootstrap import Queue


def list_all(options: Options) -> None:
    async def fetch(queue: "Queue") -> list[_Told]:
        found = await queue.schedules.list(owner=options.owner, after=options.after, most=options.most)
        last = await queue.runs.last_of([schedule.id for schedule in found])
        known = await queue.sessions.live_kinds()
        return [_Told(each, last.get(each.id), warning_about_schedule(each, known)) for each in found]

    show_list(options, _LISTING, fetch)


class _Told(NamedTuple):
    schedule: Schedule
    last: Run | None
    warning: str | None


def _row(told: _Told) -> tuple[object, ...]:
    schedule, last = told.schedule, told.last
    ended = None if last is None else f"{last.status.value} {at(last.scheduled_for)}"
    words, slot = schedule.cadence.explain(), at_second(schedule.next_slot)
    return schedule.id, schedule.state.value, words, schedule.target.kind, slot, ended


_LISTING: Listing[_Told] = Listing(
    heads=("id", "state", "when", "target", "next slot", "last run"),
    row=_row,
    shape=lambda told: schedule_shape(*told),
    key=lambda told: told.schedule.id,
    empty="no schedules; add one: duly schedule add ID --cron '0 9 * * *' --target KIND",
)


def show(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        schedule = await queue.schedules.get(options.id, owner=None)
        last = (await queue.runs.last_of([schedule.id])).get(schedule.id)
        if options.json:
            warning = warning_about_schedule(schedule, await queue.sessions.live_kinds())
            say_json(schedule_shape(schedule, last, warning))
        else:
            show_schedule(schedule, last)

    looking(look)


def show_schedule(schedule: Schedule, last: Run | None) -> None:
    facts(
        [
            ("id", schedule.id),
            ("owner", schedule.owner),
            ("state", schedule.state.value),
            ("because", schedule.state_reason),
            ("when", schedule.cadence.explain()),
            ("next slot", at_second(schedule.next_slot)),
            ("target", schedule.target.kind),
            ("input", None if schedule.target.payload == EMPTY else schedule.target.payload),
            ("pool", schedule.target.pool),
            ("priority", schedule.target.priority or None),
            ("attempts", schedule.target.retry.max_attempts),
            ("time limit", None if schedule.target.timeout_ms is None else f"{schedule.target.timeout_ms} ms"),
            ("overlap", schedule.policies.overlap.value),
            ("catch up", schedule.policies.catch_up.value),
            ("jitter", f"{schedule.policies.jitter_ms} ms" if schedule.policies.jitter_ms else None),
            ("revision", schedule.revision),
            ("last run", None if last is None else f"{last.id}, {last.status.value}, slot {at(last.scheduled_for)}"),
        ]
    )


def upcoming(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        async def once() -> None:
            fires = await queue.schedules.upcoming(options.id, owner=None, most=options.most)
            if options.json:
                say_json(page([fire_shape(fire) for fire in fires]))
                return
            rows = [(at(fire.slot), at(fire.fire_at)) for fire in fires]
            table(("slot", "fires at"), rows, empty="no slot is to come: it is not active, or over; ask duly why")

        await watched(options, queue.storage.clock, once)

    looking(look)


def runs(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        before = await _slot_before(queue, options.after or options.before)

        async def once() -> None:
            found = await queue.schedules.runs(options.id, owner=None, before=before, most=options.most)
            older = found and await queue.schedules.runs(options.id, owner=None, before=found[-1].scheduled_for, most=1)
            runs_listing(empty="no runs yet").tell(options, found, is_last=not older)

        await watched(options, queue.storage.clock, once)

    looking(look)


async def _slot_before(queue: "Queue", text: str | None) -> Instant | None:
    """Runs that share a slot are on one page, so the page behind a run begins with older slots."""
    if text is None:
        return None
    if text.startswith("run_"):
        return (await queue.runs.get(text, owner=None)).scheduled_for
    return instant_of(moment_from(text, field="--before"), field="at")


def history(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        revisions = await queue.schedules.revisions(options.id, owner=None)
        if options.json:
            say_json(page([revision_shape(each) for each in revisions]))
            return
        rows = [
            (each.number, at(each.recorded_at), each.state.value, each.cadence.explain(), each.target.kind)
            for each in revisions
        ]
        table(("revision", "recorded", "state", "when", "target"), rows, empty="no revisions")

    looking(look)
