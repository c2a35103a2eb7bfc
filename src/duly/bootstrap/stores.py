"""Which database the settings name, opened to use, to read, to look at or to copy."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from duly.domain.errors import InvalidInput, NotFound
from duly.ports.storage import ReadOnlyStorage, Storage
from duly.settings import Settings
from duly.storage.facts import StoreFacts

T = TypeVar("T")


async def open_storage(settings: Settings, *, for_heart: bool = False) -> Storage:
    """Drivers are imported where they are chosen: SQLite users need no Postgres driver.

    A heart needs one connection and no hints.
    """
    url = settings.database_url
    if is_postgres(url):
        _require_postgres_driver()
        from duly.storage.postgres.limits import Limits
        from duly.storage.postgres.storage import PostgresStorage

        if for_heart:
            return await PostgresStorage.open(url, limits=Limits(connections=1), migrate=False, listening=False)
        return await PostgresStorage.open(url, listen_url=settings.listen_url)
    from duly.storage.sqlite.storage import SqliteStorage

    return await SqliteStorage.open(path_of(url))


async def reading(settings: Settings, look: Callable[[ReadOnlyStorage], Awaitable[T]]) -> T:
    """What `look` sees of a database as it is: nothing is created, migrated or written."""
    storage = await _open_to_read(settings)
    try:
        return await look(storage)
    finally:
        await storage.close()


async def store_facts(settings: Settings) -> StoreFacts:
    """What the database says of itself, whatever its schema is."""
    if is_postgres(settings.database_url):
        _require_postgres_driver()
        from duly.storage.postgres.facts import postgres_facts

        return await postgres_facts(settings.database_url)
    require_database(settings, "look at")
    from duly.storage.sqlite.facts import sqlite_facts

    return sqlite_facts(path_of(settings.database_url))


async def backup(settings: Settings, to: str, *, on_progress: Callable[[int, int], None] | None = None) -> None:
    """Copies a SQLite database while others use it; a path that leads nowhere is not an empty database to copy."""
    if is_postgres(settings.database_url):
        raise InvalidInput("DULY_DATABASE_URL", "names a Postgres database", fix="back it up with pg_dump")
    require_database(settings, "copy")
    path = path_of(settings.database_url)
    from duly.storage.sqlite.storage import SqliteStorage

    storage = await SqliteStorage.open(path)
    try:
        await storage.backup(to, on_progress=on_progress)
    finally:
        await storage.close()


def is_postgres(url: str) -> bool:
    return url.startswith(("postgresql://", "postgres://"))


def path_of(url: str) -> str:
    if "://" in url and not url.startswith("sqlite:///"):
        raise InvalidInput(
            "DULY_DATABASE_URL", f"{url.partition('://')[0]!r} is no store of Duly", fix="use a path or postgresql://…"
        )
    return url.removeprefix("sqlite:///")


def database_file(settings: Settings) -> Path | None:
    """None if the database is no file."""
    url = settings.database_url
    return None if is_postgres(url) or url == ":memory:" else Path(path_of(url)).absolute()


def storage_opener(settings: Settings) -> Callable[[], Awaitable[Storage]]:
    return lambda: open_storage(settings, for_heart=True)


def require_database(settings: Settings, purpose: str) -> None:
    if is_postgres(settings.database_url):
        return
    path = path_of(settings.database_url)
    if not Path(path).exists():
        raise NotFound(f"there is no database {path}; name the one to {purpose} in DULY_DATABASE_URL")


def _require_postgres_driver() -> None:
    try:
        import duly.storage.postgres.connections  # noqa: F401
    except ImportError as missing:
        raise InvalidInput(
            "DULY_DATABASE_URL", "names a Postgres database", fix="pip install 'duly[postgres]'"
        ) from missing


async def _open_to_read(settings: Settings) -> ReadOnlyStorage:
    if is_postgres(settings.database_url):
        return await open_storage(settings, for_heart=True)
    require_database(settings, "read")
    path = path_of(settings.database_url)
    from duly.storage.sqlite.reader import SqliteReader

    return await SqliteReader.open(path)
