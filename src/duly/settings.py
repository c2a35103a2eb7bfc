"""Everything that can be set from outside, read once; each has a default, a unit and a line in the docs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from duly.application.batch import MOST_ROWS
from duly.application.pace import Pace
from duly.domain.billing import FreeModels, free_models_of
from duly.domain.coverage import OUTAGE_AFTER
from duly.domain.errors import InvalidInput
from duly.domain.instants import Micros
from duly.domain.policies import LONGEST_JITTER_MS, CatchUp, Overlap, Policies
from duly.domain.sessions import LEASE

PREFIX = "DULY_"
SHORTEST_SECRET = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`database_url` is a path or a `postgresql://` address; `lease_ms` is how long a silent worker counts as alive.

    `graph_secret` signs calls of graphs elsewhere; `internal_api_token` is what callers of the execution service must
    show. `free_models` cost nothing, whatever a table of prices says. The others are about schedules: how time is
    followed and caught up with, and the policies of one that names none.
    """

    database_url: str = "duly.db"
    listen_url: str | None = None
    lease_ms: int = LEASE // 1000
    tick_ms: int = 1_000
    lookahead_ms: int = 60_000
    max_catchup_per_tick: int = 100
    outage_after_ms: int = OUTAGE_AFTER // 1000
    default_overlap_policy: str = Overlap.SKIP
    default_catchup_policy: str = CatchUp.NONE
    default_jitter_ms: int = 0
    free_models: FreeModels = field(default_factory=FreeModels)
    graph_secret: str | None = field(default=None, repr=False)
    internal_api_token: str | None = field(default=None, repr=False)

    @property
    def lease(self) -> Micros:
        return Micros(self.lease_ms * 1000)

    @property
    def pace(self) -> Pace:
        return Pace(
            tick=Micros(self.tick_ms * 1000),
            lookahead=Micros(self.lookahead_ms * 1000),
            most_caught_up=self.max_catchup_per_tick,
            outage_after=Micros(self.outage_after_ms * 1000),
        )

    @property
    def policies(self) -> Policies:
        return Policies(
            overlap=Overlap(self.default_overlap_policy),
            catch_up=CatchUp(self.default_catchup_policy),
            jitter_ms=self.default_jitter_ms,
        )

    @property
    def database_shown(self) -> str:
        """For people to read: without user, password and options."""
        if "://" not in self.database_url:
            return self.database_url
        url = urlsplit(self.database_url)
        return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


def settings_from(environment: Mapping[str, str]) -> Settings:
    """From variables named DULY_…; one that is empty counts as not set."""
    given = {name: value for name, value in environment.items() if name.startswith(PREFIX) and value}
    default = Settings()
    return Settings(
        database_url=given.get("DULY_DATABASE_URL", default.database_url),
        listen_url=given.get("DULY_LISTEN_URL"),
        lease_ms=_number("DULY_LEASE_MS", given, default.lease_ms, least=100, most=86_400_000),
        tick_ms=_number("DULY_TICK_MS", given, default.tick_ms, least=10, most=60_000),
        lookahead_ms=_number("DULY_LOOKAHEAD_MS", given, default.lookahead_ms, least=1_000, most=3_600_000),
        max_catchup_per_tick=_number(
            "DULY_MAX_CATCHUP_PER_TICK", given, default.max_catchup_per_tick, least=1, most=MOST_ROWS
        ),
        outage_after_ms=_number("DULY_OUTAGE_AFTER_MS", given, default.outage_after_ms, least=15_000, most=86_400_000),
        default_overlap_policy=_choice("DULY_DEFAULT_OVERLAP_POLICY", given, Overlap, default.default_overlap_policy),
        default_catchup_policy=_choice("DULY_DEFAULT_CATCHUP_POLICY", given, CatchUp, default.default_catchup_policy),
        default_jitter_ms=_number(
            "DULY_DEFAULT_JITTER_MS", given, default.default_jitter_ms, least=0, most=LONGEST_JITTER_MS
        ),
        graph_secret=given.get("DULY_GRAPH_SECRET"),
        internal_api_token=_secret("DULY_INTERNAL_API_TOKEN", given),
        free_models=free_models_of(_names("DULY_FREE_MODELS", given), field="DULY_FREE_MODELS"),
    )


def _number(name: str, given: Mapping[str, str], default: int, *, least: int, most: int) -> int:
    text = given.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 8 and least <= int(text) <= most):
        unit = "a time in milliseconds" if name.endswith("_MS") else "a number"
        raise InvalidInput(name, f"{text[:40]!r} is not {unit}", fix=f"use {least} to {most}")
    return int(text)


def _secret(name: str, given: Mapping[str, str]) -> str | None:
    text = given.get(name)
    if text is not None and len(text.encode()) < SHORTEST_SECRET:
        raise InvalidInput(name, f"has fewer than {SHORTEST_SECRET} bytes", fix="draw a longer one")
    return text


def _choice(name: str, given: Mapping[str, str], policies: type[StrEnum], default: str) -> str:
    text = given.get(name, default)
    if text not in list(policies):
        raise InvalidInput(name, f"{text[:40]!r} is not a policy", fix=f"use one of {', '.join(policies)}")
    return text


def _names(name: str, given: Mapping[str, str]) -> list[str]:
    """Parted by commas."""
    return [text.strip() for text in given.get(name, "").split(",") if text.strip()]
