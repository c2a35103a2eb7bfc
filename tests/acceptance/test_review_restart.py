"""A run that waits for a review outlives every process, and goes on from the decision made while none was there."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 120
PROGRAM = """
import sys
from duly import Duly, every
app = Duly()
app.graph("reviewed", "tests.adapters.graphs.news:reviewed", schedule=every("1d"), input={"topic": "ai"})

@app.job(schedule=every("1d"))
async def loaded() -> list[str]:
    return [name for name in ("langgraph", "langchain_core") if name in sys.modules]
"""


class Place:
    """A folder with a program, and the `duly` command in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "schedules.py").write_text(PROGRAM, encoding="utf-8")
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "DULY_DATABASE_URL": str(folder / "duly.db"),
            "DULY_INTERNAL_API_TOKEN": "a secret that two services share, 32 bytes",
        }

    def duly(self, *arguments: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "duly", *arguments, "--json"],
            cwd=self._folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @contextmanager
    def process(self, word: str, *arguments: str, **environment: str) -> Iterator[str]:
        """Killed in the end, without a chance to say goodbye; answers its first line that says where it is."""
        command = [sys.executable, "-m", "duly", *arguments]
        with subprocess.Popen(
            command, cwd=self._folder, env={**self.environment, **environment}, stderr=subprocess.PIPE, text=True
        ) as started:
            assert started.stderr is not None
            try:
                yield next(line for line in started.stderr if line.startswith(word))
            finally:
                started.kill()
                started.communicate()

    @contextmanager
    def everything(self) -> Iterator[str]:
        """The execution service, and a worker elsewhere that keeps time as well."""
        with self.process("serving ", "serve", "--app", "schedules.py", "--port", "0") as serving:
            url = serving.split()[1].rstrip(";")
            words = ("worker", "--app", "schedules.py", "--keep-time")
            with self.process("working on", *words, DULY_INTERNAL_API_URL=url, DULY_LEASE_MS="3000"):
                yield url

    def open_review(self) -> Mapping[str, Any]:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if found := self.duly("review", "list")["items"]:
                return dict(found[0])
        raise AssertionError("nobody asked")

    def until_it_waits(self, run: str) -> None:
        """Until its job has let go of its worker."""
        deadline = time.monotonic() + PATIENCE_S
        while self.duly("run", "show", run)["attempts"][-1]["state"] != "backoff":
            assert time.monotonic() < deadline


@pytest.mark.req("GRAPH-29")
@pytest.mark.req("GRAPH-16")
@pytest.mark.store("sqlite")
def test_a_run_that_waits_outlives_all_processes_and_no_worker_loads_graphs(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with place.everything():
        run = place.duly("schedule", "trigger", "reviewed")["id"]
        review = place.open_review()
        place.until_it_waits(run)
    assert review["question"] == {"publish": "news of ai"}

    why = place.duly("why", run)
    assert any(f"waits for review {review['id']} until" in sentence for sentence in why["sentences"])
    place.duly("review", "edit", review["id"], '{"by": "ann"}', "--by", "ann")
    assert place.duly("run", "show", run)["status"] == "running"

    with place.everything():
        ended = place.duly("run", "show", run, "--wait", "--timeout", "100s")
        loaded = place.duly("schedule", "trigger", "loaded", "--wait", "--timeout", "100s")

    assert ended["status"] == "success", ended
    assert (ended["attempt_count"], ended["run_id"]) == (1, review["run_id"])
    assert place.duly("run", "show", loaded["id"])["attempts"][0]["result"] == []
