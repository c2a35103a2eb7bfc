"""Grants and tokens are good for a time, until they are revoked."""

from typing import TYPE_CHECKING, Protocol

from duly.cli.given import span_from
from duly.cli.parser import Options, Parser
from duly.domain.instants import Instant, Micros

if TYPE_CHECKING:
    from duly.ports.clock import Clock


class Revocable(Protocol):
    @property
    def expires_at(self) -> Instant | None: ...

    @property
    def revoked_at(self) -> Instant | None: ...


def add_expires(parser: Parser) -> None:
    parser.add_argument("--expires", metavar="SPAN", help="how long it is good for, such as 90d (default: for ever)")


def life_from(options: Options) -> Micros | None:
    """Read before the database is opened, so that a mistake opens none."""
    return None if options.expires is None else span_from(options.expires, field="--expires")


def end_of(life: Micros | None, clock: "Clock") -> Instant | None:
    return None if life is None else Instant(clock.now() + life)


def state_of(thing: Revocable, now: Instant) -> str:
    if thing.revoked_at is not None:
        return "revoked"
    return "expired" if thing.expires_at is not None and thing.expires_at <= now else "active"
