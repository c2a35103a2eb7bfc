"""Everything that can be set from outside, read once; each has a default, a unit and a line in the docs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from duly.application.batch import MOST_ROWS
from duly.application.pace import Pace
from duly.domain.billing import FreeModels, free_models_of
from duly.domain.coverage import OUTAGE_AFTER
from duly.domain.errors import InvalidInput
from duly.domain.instants import Micros
from duly.domain.policies import LONGEST_JITTER_MS, CatchUp, Overlap, Policies
from duly.domain.sessions import LEASE
from duly.domain.webhooks.addresses import AddressRule

PREFIX = "DULY_"
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
LOG_FORMATS = ("json", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`database_url` is a path or a `postgresql://` address; `lease_ms` is how long a silent worker counts as alive,
    and `grace_ms` how long what runs may go on when a worker is stopped.

    Then come those of schedules: how time is followed and caught up with, and the policies of one that names none.
    `free_models` cost nothing, whatever a table of prices says. `graph_secret` signs calls of graphs elsewhere,
    `internal_api_token` calls of the execution service, at `internal_api_url` or in this process, which also takes
    tokens signed for `internal_api_public_key`.
    `trace_url` leads from a run to its trace. Without `log_level` and `log_format` each front door logs as suits it.
    `inbound_secret` and `plane_secret` are what services sign with that send decisions of reviews.
    """

    database_url: str = "duly.db"
    listen_url: str | None = None
    host: str = "127.0.0.1"
    port: int = 8470
    loopback: str = "open"
    streams_per_token: int = 32
    lease_ms: int = LEASE // 1000
    grace_ms: int = 30_000
    tick_ms: int = 1_000
    lookahead_ms: int = 60_000
    max_catchup_per_tick: int = 100
    outage_after_ms: int = OUTAGE_AFTER // 1000
    default_overlap_policy: str = Overlap.SKIP
    default_catchup_policy: str = CatchUp.NONE
    default_jitter_ms: int = 0
    free_models: FreeModels | None = None
    graph_secret: str | None = field(default=None, repr=False)
    internal_api_token: str | None = field(default=None, repr=False)
    internal_api_public_key: str | None = None
    internal_api_url: str | None = None
    webhook_loopback: str = "refused"
    trace_url: str | None = None
    inbound_secret: str | None = field(default=None, repr=False)
    plane_secret: str | None = field(default=None, repr=False)
    log_level: str | None = None
    log_format: str | None = None

    @property
    def lease(self) -> Micros:
        return Micros(self.lease_ms * 1000)

    @property
    def grace(self) -> Micros:
        return Micros(self.grace_ms * 1000)

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
    def addresses(self) -> AddressRule:
        return AddressRule(loopback=self.webhook_loopback == "allowed")

    @property
    def logs_json(self) -> bool | None:
        """None leaves it to where the lines go: a terminal is for people."""
        return None if self.log_format is None else self.log_format == "json"

    @property
    def database_shown(self) -> str:
        """For people to read: without user, password and options."""
        if "://" not in self.database_url:
            return self.database_url
        url = urlsplit(self.database_url)
        return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


class Variable(NamedTuple):
    """One setting from outside: `DULY_` and the field's name. `read` refuses what it cannot mean."""

    field: str
    means: str
    read: Callable[[str, str], object]

    @property
    def name(self) -> str:
        return PREFIX + self.field.upper()


def _text(name: str, text: str) -> str:  # noqa: ARG001 - any text will do, whatever its name
    return text


def _number(least: int, most: int) -> Callable[[str, str], int]:
    def read(name: str, text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 8 and least <= int(text) <= most):
            unit = "a time in milliseconds" if name.endswith("_MS") else "a number"
            raise InvalidInput(name, f"{text[:40]!r} is not {unit}", fix=f"use {least} to {most}")
        return int(text)

    return read


def _one_of(choices: Sequence[str]) -> Callable[[str, str], str]:
    def read(name: str, text: str) -> str:
        if text.lower() not in choices:
            raise InvalidInput(name, f"{text[:40]!r} is none of them", fix=f"use one of {', '.join(choices)}")
        return text.lower()

    return read


def _secret(shortest: int) -> Callable[[str, str], str]:
    def read(name: str, text: str) -> str:
        if len(text.encode()) < shortest:
            raise InvalidInput(name, f"has fewer than {shortest} bytes", fix="draw a longer one")
        return text

    return read


def _pem(name: str, text: str) -> str:
    """Public alone: whoever checks signatures has no use for what makes them."""
    key = text.replace("\\n", "\n").strip()
    if not (key.startswith("-----BEGIN PUBLIC KEY-----") and key.endswith("-----END PUBLIC KEY-----")):
        raise InvalidInput(name, "is no public key in PEM", fix="use what `openssl pkey -pubout` prints")
    return key


def _template(name: str, text: str) -> str:
    if not text.startswith(("http://", "https://")) or "{trace_id}" not in text:
        raise InvalidInput(name, f"{text[:60]!r} leads to no trace", fix="write it as https://…/{trace_id}")
    return text


def _policy(policies: type[StrEnum]) -> Callable[[str, str], str]:
    def read(name: str, text: str) -> str:
        if text not in list(policies):
            raise InvalidInput(name, f"{text[:40]!r} is not a policy", fix=f"use one of {', '.join(policies)}")
        return text

    return read


def _models(name: str, text: str) -> FreeModels:
    return free_models_of([part.strip() for part in text.split(",") if part.strip()], field=name)


_DAY_MS = 86_400_000
VARIABLES = (
    Variable("database_url", "a path, or `postgresql://…`", _text),
    Variable(
        "listen_url", "Postgres: another way to the same database, for LISTEN alone (default: the database's)", _text
    ),
    Variable("host", "the address that `duly serve` and `duly dev` bind", _text),
    Variable("port", "their port; 0 is any that is free; 0 to 65535", _number(0, 65_535)),
    Variable(
        "loopback",
        "whether a loopback address is `open` to every user of the machine, as admin, or asks for `tokens`, too",
        _one_of(("open", "tokens")),
    ),
    Variable(
        "streams_per_token",
        "how many [runs](../http.md) a token may follow at once at a server; 1 to 10000",
        _number(1, 10_000),
    ),
    Variable("lease_ms", "how long a silent worker counts as alive; 100 to 86400000", _number(100, _DAY_MS)),
    Variable("grace_ms", "how long what runs may go on when its worker is stopped; 0 to 86400000", _number(0, _DAY_MS)),
    Variable(
        "tick_ms",
        "how often a sleeping timekeeper reads its clock, and how far apart portions of missed slots are; 10 to 60000",
        _number(10, 60_000),
    ),
    Variable("lookahead_ms", "over how long missed slots are spread; 1000 to 3600000", _number(1_000, 3_600_000)),
    Variable(
        "max_catchup_per_tick", "how many missed slots a timekeeper opens in a tick; 1 to 1000", _number(1, MOST_ROWS)
    ),
    Variable(
        "outage_after_ms",
        "how long nobody may keep time before slots count as missed, not late; 15000 to 86400000",
        _number(15_000, _DAY_MS),
    ),
    Variable(
        "default_overlap_policy",
        "of schedules that name none: `allow`, `skip`, `queue`, `queue_one`, `replace`",
        _policy(Overlap),
    ),
    Variable(
        "default_catchup_policy", "of schedules that name none: `none`, `fire_immediately`, `spread`", _policy(CatchUp)
    ),
    Variable("default_jitter_ms", "of schedules that name none; 0 to 86400000", _number(0, LONGEST_JITTER_MS)),
    Variable(
        "free_models",
        "models that [cost nothing](../money.md), parted by commas; `ollama:*` is all that begin so (default: none)",
        _models,
    ),
    Variable("graph_secret", "signs calls of [graphs elsewhere](../graphs.md); 24 bytes or more", _secret(24)),
    Variable(
        "internal_api_token",
        "what callers of the [execution service](../graphs.md) must show; 32 bytes or more",
        _secret(32),
    ),
    Variable(
        "internal_api_public_key",
        "the Ed25519 key, in PEM, of whoever signs tokens for the [execution service](../graphs.md); "
        "its line breaks may be written as `\\n` (default: none; needs `duly[jwt]`)",
        _pem,
    ),
    Variable("internal_api_url", "where the [execution service](../graphs.md) is (default: in this process)", _text),
    Variable("inbound_secret", "signs [decisions](../reviews.md) that others send; 24 bytes or more", _secret(24)),
    Variable("plane_secret", "the secret of Plane's [webhook](../reviews.md); 16 bytes or more", _secret(16)),
    Variable(
        "webhook_loopback",
        "whether [webhooks](../webhooks.md) to this machine itself, by http too, are `allowed` or `refused`",
        _one_of(("allowed", "refused")),
    ),
    Variable(
        "trace_url",
        "where your tracing backend shows a [trace](../graphs.md), with `{trace_id}` in its place (default: no links)",
        _template,
    ),
    Variable(
        "log_level",
        "the least level of [log lines](../operations.md) (default: by front door): "
        "`debug`, `info`, `warning`, `error`, `critical`",
        _one_of(LOG_LEVELS),
    ),
    Variable(
        "log_format", "`json`, or `text`, which is for terminals (default: by where they go)", _one_of(LOG_FORMATS)
    ),
)


def settings_from(environment: Mapping[str, str]) -> Settings:
    """From variables named DULY_…; one that is empty counts as not set."""
    given: dict[str, Any] = {}
    for variable in VARIABLES:
        if text := environment.get(variable.name):
            given[variable.field] = variable.read(variable.name, text)
    return Settings(**given)


def all_problems(environment: Mapping[str, str]) -> list[InvalidInput]:
    """Everything that is wrong, not only the first; a name that is almost one of ours was meant to be it."""
    problems: list[InvalidInput] = []
    names = [variable.name for variable in VARIABLES]
    for variable in VARIABLES:
        try:
            if text := environment.get(variable.name):
                variable.read(variable.name, text)
        except InvalidInput as problem:
            problems.append(problem)
    problems.extend(
        InvalidInput(name, "is no setting", fix=f"did you mean {near[0]}?")
        for name in sorted(set(environment) - set(names))
        if name.startswith(PREFIX) and (near := get_close_matches(name, names, n=1, cutoff=0.85))
    )
    return problems
