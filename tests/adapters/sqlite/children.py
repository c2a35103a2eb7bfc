"""Starts the programs of `programs.py` as processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def command(program: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "tests.adapters.sqlite.programs", program, *map(str, arguments)]


def start(program: str, *arguments: object, wrapped_by: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*wrapped_by, *command(program, *arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def go(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()


def finish(child: subprocess.Popen[str]) -> str:
    """The rest of what it said; fails the test if it did not end well."""
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    return out


def kill(child: subprocess.Popen[str]) -> str:
    """The rest of what it said before it died."""
    child.kill()
    out, _ = child.communicate(timeout=60)
    return out
