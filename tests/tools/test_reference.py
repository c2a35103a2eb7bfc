"""docs/reference says what the program says."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "scripts" / "reference"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(REFERENCE), *arguments], capture_output=True, text=True, check=False)


def test_the_reference_is_fresh() -> None:
    said = run("--check")

    assert said.returncode == 0, said.stdout + said.stderr


def test_a_stale_page_is_named_with_the_command_that_refreshes_it(tmp_path: Path) -> None:
    assert run("--to", str(tmp_path)).returncode == 0
    assert run("--to", str(tmp_path), "--check").returncode == 0
    with (tmp_path / "cli.md").open("a") as page:
        page.write("more\n")

    said = run("--to", str(tmp_path), "--check")

    assert said.returncode == 1
    assert said.stdout == f"{tmp_path / 'cli.md'} is stale: run scripts/reference\n"
