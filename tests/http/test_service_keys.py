"""The public key that signed internal calls are checked with: set from outside, Ed25519 or nothing."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey

from duly.bootstrap import Queue, Registry, Settings, serve
from duly.domain.errors import InvalidInput
from duly.http.services import AUDIENCE, TYPE, ServiceAccess
from duly.settings import settings_from

SECRET = "a secret that two services share, of 32 bytes or more"  # noqa: S105
LATER = 4_000_000_000
NAME = "DULY_INTERNAL_API_PUBLIC_KEY"


def pem(private: Any) -> str:
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    return str(private.public_key().public_bytes(serialization.Encoding.PEM, kind).decode())


def token(private: Any, **claims: Any) -> str:
    given = {"aud": AUDIENCE, "exp": LATER, "sub": "elsewhere", **claims}
    kept = {name: value for name, value in given.items() if value is not None}
    return jwt.encode(kept, private, algorithm="EdDSA", headers={"typ": TYPE})


@pytest.mark.req("GRAPH-17")
def test_a_served_graph_takes_what_the_key_of_the_settings_has_signed_and_nothing_else(tmp_path: Path) -> None:
    private, stranger = ed25519.Ed25519PrivateKey.generate(), ed25519.Ed25519PrivateKey.generate()
    settings = settings_from(
        {
            "DULY_DATABASE_URL": str(tmp_path / "duly.db"),
            "DULY_INTERNAL_API_TOKEN": SECRET,
            NAME: pem(private).replace("\n", "\\n"),
        }
    )
    shown = [
        token(private),
        SECRET,
        token(stranger),
        token(private, exp=None),
        token(private, exp=1),
        token(private, aud="another"),
        token(private, aud=None),
    ]

    assert asyncio.run(_statuses(settings, shown)) == [404, 404, 401, 401, 401, 401, 401]


async def _statuses(settings: Settings, shown: list[str]) -> list[int]:
    """404: let in, and there is no such graph."""
    queue, stop = await Queue.open(settings), asyncio.Event()
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve(queue, host="127.0.0.1", port=0, stop=stop, on_ready=ready.set_result, graphs=Registry())
    )
    try:
        async with httpx2.AsyncClient(base_url=await ready) as client:
            statuses = []
            for each in shown:
                headers = {"Authorization": f"Bearer {each}", "Idempotency-Key": "k"}
                body = {"execution_grant_id": "g", "input": {}}
                answer = await client.post("/api/internal/graphs/python:no/runs", json=body, headers=headers)
                statuses.append(answer.status_code)
            return statuses
    finally:
        stop.set()
        await serving
        await queue.close()


@pytest.mark.req("GRAPH-17", error=True)
@pytest.mark.parametrize("private", [rsa.generate_private_key(65_537, 2_048), Ed448PrivateKey.generate()])
def test_a_key_of_another_kind_is_refused_before_anything_is_served(private: Any) -> None:
    with pytest.raises(InvalidInput, match="another kind") as refused:
        ServiceAccess(secret=SECRET, public_key=pem(private))

    assert refused.value.field == NAME


@pytest.mark.parametrize("text", ["secret", "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----"])
def test_what_is_no_public_key_is_no_setting(text: str) -> None:
    with pytest.raises(InvalidInput, match=NAME):
        settings_from({NAME: text})


def test_a_key_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(InvalidInput, match="can be read"):
        ServiceAccess(secret=SECRET, public_key="-----BEGIN PUBLIC KEY-----\nxx\n-----END PUBLIC KEY-----")


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)

    with pytest.raises(InvalidInput, match=r"duly\[jwt\]"):
        ServiceAccess(secret=SECRET, public_key=pem(ed25519.Ed25519PrivateKey.generate()))
