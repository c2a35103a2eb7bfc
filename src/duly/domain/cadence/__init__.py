"""Cadences: cron, interval and once, and the law of time they keep."""

from duly.domain.cadence.blame import InvalidCron
from duly.domain.cadence.cadence import Bounded, Cadence
from duly.domain.cadence.cron import Cron, cron
from duly.domain.cadence.interval import Interval, InvalidInterval, every
from duly.domain.cadence.notes import Note, NoteKind
from duly.domain.cadence.once import Once, once
from duly.domain.cadence.unreadable import UnreadableCron
from duly.domain.cadence.wall import TZ_VERSION, InvalidZone, zone, zone_names

__all__ = [
    "TZ_VERSION",
    "Bounded",
    "Cadence",
    "Cron",
    "Interval",
    "InvalidCron",
    "InvalidInterval",
    "InvalidZone",
    "Note",
    "NoteKind",
    "Once",
    "UnreadableCron",
    "cron",
    "every",
    "once",
    "zone",
    "zone_names",
]
