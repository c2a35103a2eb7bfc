"""A run that waits for a call-back outlives every process that is killed meanwhile, and its executor is called once."""

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_review_restart import PATIENCE_S, Place


class Executor(ThreadingHTTPServer):
    """Takes every run, and says nothing more of it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Takes)
        self.taken: list[Any] = []


class _Takes(BaseHTTPRequestHandler):
    server: Executor

    def do_POST(self) -> None:
        self.server.taken.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(202)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@contextmanager
def executing() -> Iterator[Executor]:
    with Executor() as executor:
        thread = threading.Thread(target=executor.serve_forever)
        thread.start()
        try:
            yield executor
        finally:
            executor.shutdown()
            thread.join()


def call_back(url: str, run_id: str, **said: Any) -> int:
    request = urllib.request.Request(  # noqa: S310 - of this test
        f"{url}/run-launcher/callbacks/{run_id}",
        data=json.dumps(said).encode(),
        headers={"content-type": "application/json"},
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
        return int(answer.status)


@pytest.mark.req("CRON-10")
@pytest.mark.store("sqlite")
def test_a_run_that_waits_for_a_call_back_outlives_all_processes(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with executing() as executor:
        url = f"http://127.0.0.1:{executor.server_port}/"
        document = {
            "name": "far",
            "nodes": [{"id": "a", "action": {"http": {"method": "GET", "url": "https://nowhere.example"}}}],
            "executor": {"url": url, "callback": True, "deadline_ms": 3_600_000},
        }
        (tmp_path / "far.json").write_text(json.dumps(document), encoding="utf-8")
        with place.everything():
            place.duly("workflow", "deploy", "far.json")
            job = place.duly("workflow", "run", "far")["job_id"]
            until(place, job, "backoff")
        run_id = executor.taken[0]["meta"]["run_id"]

        with place.everything() as serving:
            assert place.duly("job", "show", job)["state"] == "backoff"
            assert call_back(serving, run_id, status="SUCCESS", result={"n": 3}) == 204
            until(place, job, "COMPLETED")
    assert len(executor.taken) == 1


def until(place: Place, job: str, state: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (found := place.duly("job", "show", job)).get("state") != state and found.get("status") != state:
        assert time.monotonic() < deadline, found
