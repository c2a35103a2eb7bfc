"""Duly: a durable scheduler for AI workflows."""

from duly.domain.cadence import cron, every, once
from duly.domain.errors import Conflict, DulyError, InvalidInput, NotFound, Refused, Unavailable

__version__ = "0.1.0"

__all__ = [
    "Conflict",
    "DulyError",
    "InvalidInput",
    "NotFound",
    "Refused",
    "Unavailable",
    "__version__",
    "cron",
    "every",
    "once",
]
