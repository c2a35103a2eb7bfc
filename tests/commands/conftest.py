"""The command in this process, on either store."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from duly.__main__ import main


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


class Terminal(StringIO):
    """A person who answers."""

    def isatty(self) -> bool:
        return True


Shell = Callable[..., Said]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database_url(store: str, request: pytest.FixtureRequest) -> str:
    return "work.db" if store == "sqlite" else str(request.getfixturevalue("fresh_postgres_url"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Runs `duly` in an empty folder; settings are given as keywords, a person's answer as `answer`."""

    def run(*arguments: str, answer: str | None = None, **environment: str) -> Said:
        monkeypatch.chdir(tmp_path)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "stdin", StringIO() if answer is None else Terminal(answer))
        capsys.readouterr()
        try:
            code: Any = main(arguments)
        except SystemExit as ended:
            code = ended.code
        captured = capsys.readouterr()
        return Said(int(code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def shell(here: Shell, database_url: str) -> Shell:
    def run(*arguments: str, answer: str | None = None, **environment: str) -> Said:
        return here(*arguments, answer=answer, **{"DULY_DATABASE_URL": database_url, **environment})

    return run
