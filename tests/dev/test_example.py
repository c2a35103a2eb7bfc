"""`duly init` writes a program that loads, and never writes over one."""

from pathlib import Path

import pytest

from duly.app.loading import load
from duly.dev.example import AlreadyThere, write_example
from duly.domain.errors import InvalidInput


def test_the_example_is_short_and_loads(tmp_path: Path) -> None:
    write_example(tmp_path / "my_example_schedules.py")

    app = load(str(tmp_path / "my_example_schedules.py"))

    assert set(app.jobs) == {"greet", "digest"}
    assert len((tmp_path / "my_example_schedules.py").read_text().splitlines()) <= 20


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "schedules.py").write_text("mine\n")

    with pytest.raises(AlreadyThere, match="left as it is"):
        write_example(tmp_path / "schedules.py")

    assert (tmp_path / "schedules.py").read_text() == "mine\n"


def test_a_folder_that_takes_no_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nowhere/schedules\.py: No such file or directory"):
        write_example(tmp_path / "nowhere" / "schedules.py")
