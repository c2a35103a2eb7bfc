"""Everything that can be set from outside, read once; each has a default, a unit and a line in the docs."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from duly.domain.errors import InvalidInput
from duly.domain.instants import Micros
from duly.domain.sessions import LEASE

PREFIX = "DULY_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`database_url` is a path or a `postgresql://` address; `lease_ms` is how long a silent worker counts as alive."""

    database_url: str = "duly.db"
    listen_url: str | None = None
    lease_ms: int = LEASE // 1000

    @property
    def lease(self) -> Micros:
        return Micros(self.lease_ms * 1000)

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
        lease_ms=_milliseconds("DULY_LEASE_MS", given, default.lease_ms),
    )


def _milliseconds(name: str, given: Mapping[str, str], default: int) -> int:
    text = given.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 8 and 100 <= int(text) <= 86_400_000):
        raise InvalidInput(name, f"{text[:40]!r} is not a time in milliseconds", fix="use 100 to 86400000")
    return int(text)
