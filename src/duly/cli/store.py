"""How commands reach the database: to look, they change nothing; to change, they find it or may make it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from duly.bootstrap import Queue

T = TypeVar("T")


def looking(look: "Callable[[Queue], Awaitable[T]]") -> T:
    """Nothing is created, migrated or written."""
    from duly import bootstrap

    return asyncio.run(bootstrap.looking(bootstrap.settings_of_environment(), look))


def changing(change: "Callable[[Queue], Awaitable[T]]", *, creates: bool = False) -> T:
    """Only a command that begins something makes the database if there is none."""
    from duly import bootstrap

    return asyncio.run(bootstrap.changing(bootstrap.settings_of_environment(), change, creates=creates))
