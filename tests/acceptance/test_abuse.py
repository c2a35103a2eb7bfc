"""A real server on each store, and whatever a socket can carry at every door of it: all is refused, and it goes on."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2

from tests.http.test_every_route import BODIES, ROUTES

EFFORT = int(os.environ.get("DULY_TEST_EFFORT", "1"))
_TURNS = count()
_PATIENCE_S = 60
_JSON = {"Content-Type": "application/json"}
_GIGABYTE = 1 << 30
# A server that is idle takes some 80 MB; one that kept what it is sent would take as much again from each of them.
_MOST_MEMORY = 400 << 20
# Streams last as long as their runs, and calls are kept waiting for whoever answers them.
_LAST_LONG = frozenset({"follow_run"})
_DEEP = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
_NAMES = ["a/b", "a%2Fb", "..", ".", "a\nb", "a\r\nX-Evil: 1", "\u00e4\U0001f600", "\u202e", "x" * 1_000, "\0", "'; --"]
_ASKED = ["\0", "\ud7ff\U0010ffff", "9" * 400, "NaN", "x" * 5_000, "a\r\nX-Evil: 1"]
# As JSON is written by hand: a writer of JSON would refuse most of them.
_VALUES = [
    '"\\u0000"',
    '"\\ud800"',
    '"a\\u0000b"',
    "NaN",
    "-Infinity",
    "1e400",
    "9" * 400,
    "9223372036854775808",
    "-9223372036854775809",
    "170141183460469231731687303715884105728",
    '"0001-01-01T00:00:00+23:59"',
    '"9999-12-31T23:59:59-23:59"',
    '"a\\r\\nX-Evil: 1"',
    "[[[[1]]]]",
    '{"a":1,"a":2}',
]


@contextmanager
def _serving(database_url: str, folder: Path) -> Iterator[tuple[str, int]]:
    """The address of a server that is a process, and its id."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "duly", "serve", "--port", "0"],
        cwd=folder,
        env=os.environ | {"DULY_DATABASE_URL": database_url},
        stdout=subprocess.DEVNULL,
        stderr=(said := (folder / "said").open("w+")),
    ) as process:
        try:
            yield _address(process, folder / "said"), process.pid
            process.send_signal(signal.SIGTERM)
            process.wait(_PATIENCE_S)
            assert process.returncode == 0
        finally:
            process.kill()
            said.close()
    text = (folder / "said").read_text()
    assert "Traceback" not in text, text[-4_000:]


def _address(process: subprocess.Popen[bytes], said: Path) -> str:
    while process.poll() is None:
        for word in said.read_text().rpartition("\n")[0].split():
            if word.startswith("http://"):
                return word.rstrip(".,;").rstrip("/")
        time.sleep(0.02)
    raise AssertionError(said.read_text())


def _memory(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _poisoned(body: Mapping[str, Any]) -> Iterator[bytes]:
    """The body with one of its fields poisoned, or with one too many."""
    for field in [*body, "zzz"]:
        for value in _some(_VALUES):
            rest = ", ".join(
                f"{json.dumps(name)}: {json.dumps(given)}" for name, given in body.items() if name != field
            )
            yield f'{{{rest}{", " if rest else ""}"{field}": {value}}}'.encode()


def _some(poisons: list[str]) -> Iterator[str]:
    """A few in turn, so that all of them are tried all over; every one of them everywhere takes minutes."""
    turn = next(_TURNS)
    for place in range(len(poisons) if EFFORT > 1 else 1):
        yield poisons[(turn + place) % len(poisons)]


def _is_refused(answer: httpx2.Response, sent: object) -> None:
    assert answer.status_code < 500, f"{answer.request.method} {answer.request.url} {sent!r:.200}: {answer.text}"
    assert "x-evil" not in answer.headers
    assert int(answer.headers.get("content-length", 0)) < 1_000_000


def test_whatever_is_sent_to_any_door_is_answered_and_the_server_goes_on(database_url: str, tmp_path: Path) -> None:
    with _serving(database_url, tmp_path) as (url, pid), httpx2.Client(base_url=url, timeout=_PATIENCE_S) as client:
        for path, method, operation in ROUTES:
            if operation["operationId"] in _LAST_LONG:
                continue
            plain = path.format(**dict.fromkeys(("id", "name", "run_id", "version", "number", "source"), "a"))
            if "requestBody" in operation:
                for body in (_DEEP, b"[" * 10_000, *_poisoned(BODIES[operation["operationId"]])):
                    _is_refused(client.request(method, plain, content=body, headers=_JSON), body)
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "query":
                    for value in _some(_ASKED):
                        _is_refused(client.request(method, plain, params={parameter["name"]: value}), value)
            if plain != path and method != "delete":
                for name in _some(_NAMES):
                    named = path.replace("{id}", quote(name, safe="%")).replace("{name}", quote(name, safe="%"))
                    named = named.format(**dict.fromkeys(("run_id", "version", "number", "source"), "a"))
                    _is_refused(client.request(method, named, json=BODIES.get(operation["operationId"])), name)
        _no_endless_workflow(client)
        for length in (None, _GIGABYTE, 100):
            assert _sent(url, length) < 64 << 20, "most of a gigabyte was never taken, in pieces or with any length"
        assert client.get("/readyz").status_code in (200, 503)
        assert client.get("/api/v1/jobs").status_code == 200
        assert _memory(pid) < _MOST_MEMORY


def _no_endless_workflow(client: httpx2.Client) -> None:
    action = {"http": {"url": "https://a.example"}}
    for nodes, status, says in (
        ([{"id": "a", "action": action, "needs": ["b"]}, {"id": "b", "action": action, "needs": ["a"]}], 422, "circle"),
        ([{"id": f"n{number}", "action": "x"} for number in range(20_000)], 422, "1 to 1000"),
        ([{"id": f"n{number}", "action": "x"} for number in range(100_000)], 413, "1048576 bytes"),
    ):
        answer = client.post("/api/v1/workflows", json={"name": "endless", "nodes": nodes})
        assert answer.status_code == status
        assert says in answer.json()["detail"]


def _sent(url: str, length: int | None) -> int:
    """How much of a gigabyte the server let itself be sent, one piece after the other."""
    place = urlsplit(url)
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    head = (
        f"POST /api/v1/schedules HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\n{size}\r\n\r\n"
    )
    piece = b" " * 1_048_576
    framed = b"%x\r\n%s\r\n" % (len(piece), piece) if length is None else piece
    sent = 0
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=_PATIENCE_S) as caller:
        try:
            caller.sendall(head.encode())
            while sent < _GIGABYTE:
                caller.sendall(framed)
                sent += len(piece)
        except OSError:
            pass  # hung up on, as it should be
    return sent
