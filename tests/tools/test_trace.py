"""The requirement trace finds what backs each promise, and fails on a gap."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TRACE = Path(__file__).parents[2] / "scripts" / "trace"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout in which INV-004 has landed and has everything it needs."""
    write(tmp_path / "docs/requirements.md", register(landed="yes"))
    write(tmp_path / "docs/queue.md", "Jobs run by priority (INV-004).")
    write(tmp_path / "tests/domain/test_jobs.py", marked('"INV-004"'))
    write(tmp_path / "tests/contracts/test_queue.py", marked('"INV-004"') + marked('"INV-004", error=True'))
    return tmp_path


def test_a_complete_landed_requirement_passes(tree: Path) -> None:
    result = trace(tree)

    assert result.returncode == 0, result.stderr
    assert "INV-004   landed   unit 1, integration 1, error 1, docs docs/queue.md" in result.stdout
    assert "INV-005   not yet" in result.stdout


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("tests/domain/test_jobs.py", "unit"),
        ("tests/contracts/test_queue.py", "integration"),
        ("docs/queue.md", "docs"),
    ],
)
def test_a_landed_requirement_with_a_gap_fails_and_says_what_is_missing(tree: Path, file: str, kind: str) -> None:
    (tree / file).unlink()

    result = trace(tree)

    assert result.returncode == 1
    assert "INV-004 has landed without:" in result.stderr
    assert kind in result.stderr


def test_a_refusal_is_its_own_kind_and_counts_for_no_other(tree: Path) -> None:
    write(tree / "tests/domain/test_jobs.py", marked('"INV-004", error=True'))

    result = trace(tree)

    assert result.returncode == 1
    assert "INV-004 has landed without: unit" in result.stderr


@pytest.mark.parametrize("landed", ["", "next"])
def test_what_has_not_landed_may_have_gaps(tree: Path, landed: str) -> None:
    write(tree / "docs/requirements.md", register(landed=landed))
    (tree / "docs/queue.md").unlink()

    assert trace(tree).returncode == 0


def test_a_test_that_names_an_unknown_requirement_is_an_error(tree: Path) -> None:
    write(tree / "tests/domain/test_more.py", marked('"INV-444"'))

    result = trace(tree)

    assert result.returncode == 1
    assert "tests/domain/test_more.py:3 test_it names INV-444" in result.stderr


def test_a_requirement_named_by_a_variable_is_an_error(tree: Path) -> None:
    write(tree / "tests/domain/test_more.py", marked("SOME_ID"))

    assert "something else than a plain string" in trace(tree).stderr


@pytest.mark.parametrize(
    "source",
    [
        'pytestmark = pytest.mark.req("INV-005")\ndef test_it(): ...',
        'pytestmark = [pytest.mark.serial, pytest.mark.req("INV-005")]\ndef test_it(): ...',
        '@pytest.mark.req("INV-005")\nclass TestIt:\n    async def test_it(self): ...',
        'class TestIt:\n    pytestmark = pytest.mark.req("INV-005")\n    def test_it(self): ...',
        '@pytest.mark.req("INV-004")\n@pytest.mark.req("INV-005")\ndef test_it(): ...',
        '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.req("INV-005"))])\ndef test_x(x):1',
    ],
)
def test_markers_count_wherever_pytest_accepts_them(tree: Path, source: str) -> None:
    write(tree / "tests/application/test_more.py", f"import pytest\n{source}\n")

    assert len(requirement(tree, "INV-005")["unit"]) == 1


@pytest.mark.parametrize(
    "source",
    [
        '@pytest.mark.skip\n@pytest.mark.req("INV-005")\ndef test_it(): ...',
        '@pytest.mark.xfail(reason="later")\n@pytest.mark.req("INV-005")\ndef test_it(): ...',
        'pytestmark = pytest.mark.req("INV-005")',
    ],
)
def test_a_test_that_does_not_run_shows_nothing(tree: Path, source: str) -> None:
    write(tree / "tests/application/test_more.py", f"import pytest\n{source}\n")

    assert requirement(tree, "INV-005")["unit"] == []


def test_the_register_and_the_decision_records_describe_nothing(tree: Path) -> None:
    (tree / "docs/queue.md").rename(tree / "docs/decisions.md")
    write(tree / "docs/decisions/0001-order.md", "INV-005")

    assert requirement(tree, "INV-005")["docs"] == []
    assert requirement(tree, "INV-004")["docs"] == ["docs/decisions.md"]


def test_a_page_that_is_linked_but_missing_is_an_error(tree: Path) -> None:
    write(tree / "docs/requirements.md", register(landed="yes", page="[queue](gone.md)"))

    assert "links to gone.md, which is not there" in trace(tree).stderr


def test_a_misspelt_state_is_an_error_not_a_way_out(tree: Path) -> None:
    write(tree / "docs/requirements.md", register(landed="ja"))

    assert trace(tree).returncode == 1


def test_missing_lists_only_what_is_incomplete(tree: Path) -> None:
    write(tree / "docs/requirements.md", register(landed="next"))
    (tree / "docs/queue.md").unlink()

    lines = trace(tree, "--missing").stdout.splitlines()

    assert lines == [
        "INV-004   next     unit 1, integration 1, error 1, docs 0; missing docs",
        "2 requirements, 0 landed, 0 problems",
    ]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def register(*, landed: str, page: str = "") -> str:
    return f"""
| id | promise | page | landed |
|---|---|---|---|
| INV-004 | Urgent jobs first. | {page} | {landed} |
| INV-005 | A job is a snapshot. | | |
"""


def marked(arguments: str) -> str:
    return f"\n@pytest.mark.req({arguments})\ndef test_it(): ...\n"


def trace(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TRACE), "--root", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def requirement(root: Path, name: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = json.loads(trace(root, "--json").stdout)["requirements"]
    return next(row for row in rows if row["id"] == name)
