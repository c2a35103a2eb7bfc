"""`duly schedule` add, edit, pause, resume and delete."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from duly.cli import exits, fires
from duly.cli.consent import is_agreed, is_somebody_there
from duly.cli.output import note, say, say_json
from duly.cli.parser import Options
from duly.cli.plans import cadence_from, policies_from, target_from
from duly.cli.shapes import differences, schedule_shape
from duly.cli.store import changing, looking
from duly.domain.cadence import Cadence
from duly.domain.errors import InvalidInput
from duly.domain.instants import SECOND, Instant, instant_of, moment_of
from duly.domain.policies import Policies
from duly.domain.schedules import Schedule, new_schedule, require_fires
from duly.domain.sessions import warning_about_schedule

if TYPE_CHECKING:
    from duly.bootstrap import Queue

_SHOWN = 5
_UNNAMED = "(drawn when it is saved)"


def add(options: Options) -> int:
    """Shown and judged before there need be a database."""
    from duly.bootstrap import moment, settings_of_environment

    now, defaults = moment(), settings_of_environment().policies
    asked = _new(options, defaults, instant_of(now, field="now"))
    _preview(options, now, asked.cadence)
    if options.dry_run:
        return _told_only(options, asked, "add")
    if is_somebody_there() and not is_agreed(options, "add it?"):
        return exits.FAILED

    async def change(queue: "Queue") -> int:
        saved = await queue.schedules.create(
            owner=options.owner,
            cadence=asked.cadence,
            target=asked.target,
            policies=asked.policies,
            schedule_id=options.id,
        )
        await _warn(queue, saved)
        return _told(options, saved, "added")

    return changing(change, creates=True)


def _new(options: Options, defaults: Policies, now: Instant) -> Schedule:
    cadence = cadence_from(options)
    if cadence is None:
        raise InvalidInput("cadence", "is missing", fix="give one of --cron, --every and --at")
    return new_schedule(
        schedule_id=options.id or _UNNAMED,
        owner=options.owner,
        cadence=cadence,
        target=target_from(options),
        policies=policies_from(options, defaults),
        now=now,
    )


def edit(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        old = await queue.schedules.get(options.id, owner=None)
        cadence = cadence_from(options, old.cadence)
        target = target_from(options, old.target)
        policies = policies_from(options, old.policies)
        new = replace(old, cadence=cadence or old.cadence, target=target, policies=policies)
        changed = differences(schedule_shape(old), schedule_shape(new))
        for line in changed:
            note(f"  {line}")
        if cadence is not None:
            require_fires(cadence, after=queue.storage.clock.now() // SECOND)
            _preview(options, moment_of(queue.storage.clock.now()), cadence)
        if options.dry_run or not changed:
            return _told_only(options, old, "edit") if changed else _told(options, old, "is so already:")
        if is_somebody_there() and not is_agreed(options, "save it?"):
            return exits.FAILED
        saved = await queue.schedules.edit(
            old.id,
            owner=None,
            cadence=cadence,
            target=target,
            policies=policies,
            expected_revision=options.expect_revision or old.revision,
            withdraw=options.withdraw,
        )
        await _warn(queue, saved)
        return _told(options, saved, "edited")

    return changing(change)


def pause(options: Options) -> int:
    return _changed(
        options,
        "paused",
        lambda queue: queue.schedules.pause(
            options.id, owner=None, expected_revision=options.expect_revision, withdraw=options.withdraw
        ),
    )


def resume(options: Options) -> int:
    return _changed(
        options,
        "resumed",
        lambda queue: queue.schedules.resume(options.id, owner=None, expected_revision=options.expect_revision),
    )


def delete(options: Options) -> int:
    if not options.dry_run:
        _require_known(options)
        if not is_agreed(options, f"delete schedule {options.id!r}?"):
            return exits.FAILED
    return _changed(
        options,
        "deleted",
        lambda queue: queue.schedules.delete(
            options.id, owner=None, expected_revision=options.expect_revision, withdraw=options.withdraw
        ),
    )


def _changed(options: Options, done: str, change: "Callable[[Queue], Awaitable[Schedule]]") -> int:
    async def work(queue: "Queue") -> int:
        if options.dry_run:
            schedule = await queue.schedules.get(options.id, owner=None)
            schedule.require_revision(options.expect_revision)
            return _told_only(options, schedule, done.removesuffix("d"))
        return _told(options, await change(queue), done)

    return changing(work)


async def _warn(queue: "Queue", schedule: Schedule) -> None:
    warning = warning_about_schedule(schedule, await queue.sessions.live_kinds())
    if warning is not None:
        note(f"warning: {warning}")


def _require_known(options: Options) -> None:
    """Nobody is asked about what is not there."""
    looking(lambda queue: queue.schedules.get(options.id, owner=None))


def _preview(options: Options, now: datetime, cadence: Cadence) -> None:
    """Before it is saved: for people as data, beside JSON as a note."""
    for line in fires.preview(cadence, now, count=_SHOWN):
        (note if options.json else say)(line)


def _told(options: Options, schedule: Schedule, done: str) -> int:
    if options.json:
        say_json(schedule_shape(schedule))
    else:
        say(f"{done} {schedule.id}, revision {schedule.revision}, {schedule.state.value}")
    return exits.OK


def _told_only(options: Options, schedule: Schedule, what: str) -> int:
    if options.json:
        say_json(schedule_shape(schedule))
    note(f"dry run: would {what} {schedule.id}; nothing was changed")
    return exits.OK
