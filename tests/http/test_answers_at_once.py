"""Answers leave when they are written: none waits for the caller's machine to acknowledge its first half."""

import asyncio
import socket
from typing import Any

import httpx2
import pytest

from duly.http.patience import PatientProtocol
from tests.http.site import Site


async def test_connections_do_not_hold_back_the_rest_of_an_answer(
    quick_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_back: list[bool] = []
    begin = PatientProtocol.connection_made

    def noted(self: PatientProtocol, transport: asyncio.Transport) -> None:
        accepted: Any = transport.get_extra_info("socket")
        held_back.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 0)
        begin(self, transport)

    monkeypatch.setattr(PatientProtocol, "connection_made", noted)
    async with quick_site.served() as served, httpx2.AsyncClient() as client:
        assert (await client.get(f"{served.url}/healthz")).status_code == 200

    assert held_back == [False]
