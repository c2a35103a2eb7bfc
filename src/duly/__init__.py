"""Duly: a durable scheduler for AI workflows."""

from duly.domain.errors import Conflict, DulyError, InvalidInput, NotFound, Refused, Unavailable

__version__ = "0.1.0"

__all__ = ["Conflict", "DulyError", "InvalidInput", "NotFound", "Refused", "Unavailable", "__version__"]
