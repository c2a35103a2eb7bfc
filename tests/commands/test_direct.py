"""`duly direct` on both stores: the answer on stdout, what keeps people company on stderr."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from duly.bootstrap import Queue, Settings
from duly.domain.templates import NewTemplate
from tests.commands.conftest import Shell, Terminal

PROGRAM = """
from duly import Duly

app = Duly()

@app.job
async def report(total: int, by: str = "nobody") -> dict:
    return {"total": total, "by": by}

@app.job
def greet() -> str:
    return "hello"

@app.job
def fail() -> None:
    raise ValueError("as asked")
"""


@pytest.fixture
def program(tmp_path: Path, database_url: str) -> str:
    # A name of its own: one process imports a module once.
    file = "".join(filter(str.isalnum, f"jobs{tmp_path.name}")) + ".py"
    (tmp_path / file).write_text(PROGRAM)

    async def prepare() -> None:
        url = str(tmp_path / database_url) if database_url == "work.db" else database_url
        queue = await Queue.open(Settings(database_url=url))
        await queue.templates.create(NewTemplate(name="weekly", kind="report", params={"total": 7}), owner="ann")
        await queue.close()

    asyncio.run(prepare())
    return file


@pytest.mark.req("DEC-004")
def test_a_template_or_a_job_of_the_program_is_called_and_its_answer_printed(shell: Shell, program: str) -> None:
    said = shell("direct", "weekly", "--app", program, "--param", "by=ann", "--timeout", "60s")
    assert (said.code, json.loads(said.out), said.err) == (0, {"total": 7, "by": "ann"}, "")
    said = shell("direct", "report", "--app", program, "--params", '{"total": 1}', "--param", "total=2", "--json")
    assert json.loads(said.out) == {"total": 2, "by": "nobody"}
    assert shell("direct", "greet", "--app", program).out == "hello\n"


@pytest.mark.req("DEC-004", error=True)
def test_what_goes_wrong_is_one_line_and_an_exit_code(shell: Shell, program: str) -> None:
    failed = shell("direct", "fail", "--app", program)
    assert (failed.code, failed.err) == (1, "duly: ValueError: as asked\n")
    assert shell("direct", "nothing", "--app", program).code == 3
    assert shell("direct", "greet", "--app", program, "--param", "total").code == 2
    assert shell("direct", "greet", "--app", program, "--timeout", "soon").code == 2
    assert shell("direct", "greet", "--app", program, "--timeout", "1ms").code in (0, 6)


def test_people_see_that_it_goes_on(shell: Shell, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    assert shell("direct", "greet", "--app", program).out == "hello\n"
    assert "⠋ greet" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")
