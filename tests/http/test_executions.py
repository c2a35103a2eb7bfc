"""The internal API: a graph is executed once for each key, for services that may call it, and for nobody else."""

import asyncio
import base64
import json
import logging
from typing import Any

import httpx2
import jwt
import pytest

from duly.bootstrap import Registry
from duly.domain.errors import InvalidInput
from duly.domain.executions import GraphResult
from duly.http.executions import Beside, internal_api
from duly.http.services import AUDIENCE, TYPE, ServiceAccess
from tests.http.site import Site

SECRET = "a secret that two services share, of 32 bytes or more"  # noqa: S105
PATH = "/api/internal/graphs/python:news/runs"
LATER = 4_000_000_000


class Service:
    """The internal API over a site's store, for one graph."""

    def __init__(self, site: Site, graph: Any, *, public_key: str | None = None) -> None:
        self.site = site
        self.calls: list[Any] = []
        self.registry = Registry()

        async def counted(call: Any) -> Any:
            self.calls.append(call)
            return await graph(call)

        self.registry.add("python:news", counted)
        executions = site.queue.executions(self.registry)
        access = ServiceAccess(secret=SECRET, public_key=public_key)
        self.api = internal_api(site.queue, executions, access)
        self.client = site.client(self.api, "http://127.0.0.1:8000", Authorization=f"Bearer {SECRET}")

    async def grant(self, *, scope: str = "*") -> str:
        account = await self.site.queue.accounts.create(owner="ann", name="main")
        queue = self.site.queue
        return (await queue.grants.create(owner="ann", account_id=account.id, scopes=[f"graph:execute:{scope}"])).id

    async def ask(
        self, grant_id: str, *, key: str | None = "news:2026-01-01T09:00:00Z", **body: Any
    ) -> httpx2.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        sent = {"execution_grant_id": grant_id, "input": {"topic": "ai"}, **body}
        return await self.client.post(PATH, json=sent, headers=headers)


async def news(call: Any) -> dict[str, Any]:
    return {"news": call.input["topic"]}


@pytest.mark.req("GRAPH-16")
@pytest.mark.req("GRAPH-18")
async def test_a_graph_is_executed_once_and_its_outcome_answered_alike(site: Site) -> None:
    service = Service(site, news)
    grant_id = await service.grant()

    first = await service.ask(grant_id)
    second = await service.ask(grant_id)

    assert first.status_code == 200, first.text
    outcome = first.json()
    assert list(outcome) == ["ok", "run_id", "trace_id", "error_code"]
    assert (outcome["ok"], outcome["error_code"], len(outcome["trace_id"])) == (True, None, 32)
    assert outcome["run_id"].startswith("exe_")
    assert second.content == first.content
    assert len(service.calls) == 1
    assert service.calls[0].ingress_request_id == first.headers["x-request-id"]


@pytest.mark.req("GRAPH-18")
async def test_an_error_is_answered_as_an_outcome(site: Site) -> None:
    async def bad(_: Any) -> None:
        raise LookupError("no such town")

    service = Service(site, bad)
    grant_id = await service.grant()

    answers = [await service.ask(grant_id) for _ in range(2)]

    assert [each.status_code for each in answers] == [200, 200]
    assert [(each.json()["ok"], each.json()["error_code"]) for each in answers] == [(False, "graph_error")] * 2
    assert len(service.calls) == 1


@pytest.mark.req("GRAPH-16", error=True)
async def test_a_call_without_a_key_is_refused(quick_site: Site) -> None:
    service = Service(quick_site, news)

    refused = await service.ask(await service.grant(), key=None)

    assert (refused.status_code, refused.json()["code"]) == (400, "missing_idempotency_key")
    assert not service.calls


@pytest.mark.req("GRAPH-18", error=True)
async def test_another_body_under_the_key_is_422_and_a_running_one_409(site: Site) -> None:
    entered, gate = asyncio.Event(), asyncio.Event()

    async def slow(_: Any) -> None:
        entered.set()
        await gate.wait()

    service = Service(site, slow)
    grant_id = await service.grant()
    running = asyncio.create_task(service.ask(grant_id))
    await entered.wait()

    again = await service.ask(grant_id)
    other = await service.ask(grant_id, input={"topic": "other"})
    gate.set()

    assert (again.status_code, again.json()["code"]) == (409, "request_in_progress")
    assert 1 <= int(again.headers["retry-after"]) <= 5
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert (await running).json()["ok"] is True


@pytest.mark.req("GRAPH-04", error=True)
async def test_a_grant_that_is_no_good_is_403_and_an_unknown_graph_404(site: Site) -> None:
    service = Service(site, news)
    narrow = await service.grant(scope="python:other")
    revoked = await service.grant()
    await site.queue.grants.revoke(revoked, owner=None)

    answers = [await service.ask(grant_id) for grant_id in (narrow, revoked, "grant_nowhere")]
    unknown = await service.client.post(
        PATH.replace("news", "nothing"),
        json={"execution_grant_id": await service.grant(), "input": {}},
        headers={"Idempotency-Key": "k"},
    )

    assert [(each.status_code, each.json()["code"]) for each in answers] == [
        (403, "grant_scope"),
        (403, "grant_revoked"),
        (403, "unknown_grant"),
    ]
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_graph")
    assert not service.calls


@pytest.mark.req("GRAPH-18")
async def test_a_cancel_that_comes_first_is_the_outcome_of_its_call(site: Site) -> None:
    service = Service(site, news)
    grant_id = await service.grant(scope="python:news")
    key = {"Idempotency-Key": "news:2026-01-01T09:00:00Z"}

    unknown = await service.client.delete(PATH, headers=key)
    strangers = [
        await service.client.delete(PATH, params={"execution_grant_id": given}, headers=key | more)
        for given, more in (("grant_nowhere", {}), (grant_id, {"Authorization": "Bearer wrong"}))
    ]
    free = await service.ask(grant_id, key="another")
    cancelled = await service.client.delete(PATH, params={"execution_grant_id": grant_id}, headers=key)
    called = await service.ask(grant_id, max_cost="0.50")

    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_execution")
    assert [each.status_code for each in strangers] == [403, 401]
    assert (cancelled.status_code, cancelled.json()["error_code"]) == (200, "cancelled")
    assert (called.status_code, called.json(), called.headers["duly-cost"]) == (200, cancelled.json(), "0.00")
    assert (free.json()["ok"], len(service.calls)) == (True, 1)


async def test_what_waits_for_a_decision_is_202(quick_site: Site) -> None:
    async def asks(_: Any) -> GraphResult:
        return GraphResult(output={}, waits=True)

    service = Service(quick_site, asks)

    waiting = await service.ask(await service.grant())

    assert (waiting.status_code, waiting.json()["ok"]) == (202, None)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("{", 400),
        ("[]", 422),
        ("{}", 422),
        ('{"execution_grant_id": 5, "input": {}}', 422),
        ('{"execution_grant_id": "g", "input": {}, "more": 1}', 422),
        ('{"execution_grant_id": "g", "input": {}, "max_cost": "-1"}', 422),
        ('{"execution_grant_id": "g", "input": {"messages": 5}}', 422),
        ('{"execution_grant_id": "g", "input": {}, "on_crash": "panic"}', 422),
    ],
)
async def test_a_body_that_means_nothing_is_refused(quick_site: Site, sent: str, status: int) -> None:
    service = Service(quick_site, news)

    refused = await service.client.post(PATH, content=sent, headers={"Idempotency-Key": "k"})

    assert refused.status_code == status, refused.text
    assert refused.headers["content-type"].startswith("application/problem+json")


def signed(
    claims: dict[str, Any] | None = None, *, key: Any = SECRET, algorithm: str = "HS256", typ: str = TYPE
) -> str:
    given = {"aud": AUDIENCE, "exp": LATER, "sub": "worker-1", **(claims or {})}
    kept = {name: value for name, value in given.items() if value is not None}
    return jwt.encode(kept, key, algorithm=algorithm, headers={"typ": typ})


def key_pair() -> tuple[Any, str]:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private, public.decode()


@pytest.mark.req("GRAPH-17")
async def test_a_secret_or_a_signed_token_lets_a_service_in_and_its_name_is_logged(
    quick_site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    private, public = key_pair()
    service = Service(quick_site, news, public_key=public)
    grant_id = await service.grant()
    caplog.set_level(logging.INFO, logger="duly.http")
    shown = [
        {"Authorization": f"Bearer {SECRET}", "X-Duly-Service": "worker-0"},
        {"Authorization": f"Bearer {signed()}"},
        {"Authorization": f"bearer {signed({'sub': 'worker-2'}, key=private, algorithm='EdDSA')}"},
    ]

    for number, headers in enumerate(shown):
        body = {"execution_grant_id": grant_id, "input": {"topic": "ai"}}
        answer = await service.client.post(PATH, json=body, headers={**headers, "Idempotency-Key": f"k{number}"})
        assert answer.status_code == 200, answer.text

    said = [record.getMessage() for record in caplog.records if "executed" in record.getMessage()]
    assert [line.split()[0] for line in said] == ["service:worker-0", "service:worker-1", "service:worker-2"]
    assert not [line for line in said if SECRET in line]


def unsigned() -> str:
    parts = [{"alg": "none", "typ": TYPE}, {"aud": AUDIENCE, "exp": LATER, "sub": "x"}]
    return ".".join(base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in parts) + "."


@pytest.mark.req("GRAPH-17", error=True)
@pytest.mark.parametrize(
    "shown",
    [
        "",
        "Bearer",
        "Bearer wrong",
        f"Basic {SECRET}",
        f"Bearer {SECRET}x",
        f"Bearer {unsigned()}",
        f"Bearer {signed({'aud': 'another'})}",
        f"Bearer {signed({'aud': None})}",
        f"Bearer {signed({'exp': None})}",
        f"Bearer {signed({'exp': 1})}",
        f"Bearer {signed({'nbf': LATER - 1})}",
        f"Bearer {signed({'sub': None})}",
        f"Bearer {signed(typ='JWT')}",
        f"Bearer {signed(key='another secret of thirty-two bytes or more')}",
        f"Bearer {signed(algorithm='HS512', key=SECRET * 2)}",
    ],
)
async def test_nobody_else_is_let_in_not_even_from_this_machine(quick_site: Site, shown: str) -> None:
    _, public = key_pair()
    service = Service(quick_site, news, public_key=public)
    grant_id = await service.grant()
    headers = {"Idempotency-Key": "k", "Authorization": shown}

    refused = await service.client.post(PATH, json={"execution_grant_id": grant_id, "input": {}}, headers=headers)

    assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
    assert not service.calls


async def test_a_public_key_signs_nothing_as_if_it_were_the_secret(quick_site: Site) -> None:
    """The oldest trick: an HS256 token under the text of the public key."""
    import hashlib
    import hmac as hmac_

    _, public = key_pair()
    service = Service(quick_site, news, public_key=public)
    parts = [{"alg": "HS256", "typ": TYPE}, {"aud": AUDIENCE, "exp": LATER, "sub": "x"}]
    text = ".".join(base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in parts)
    digest = hmac_.new(public.encode(), text.encode(), hashlib.sha256).digest()
    forged = f"{text}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"

    refused = await service.client.post(PATH, headers={"Authorization": f"Bearer {forged}", "Idempotency-Key": "k"})

    assert refused.status_code == 401


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(InvalidInput, match="DULY_INTERNAL_API_TOKEN"):
        ServiceAccess(secret="short")  # noqa: S106


async def test_the_internal_api_beside_the_public_one_takes_no_users_token(quick_site: Site) -> None:
    service = Service(quick_site, news)
    both = quick_site.client(Beside(quick_site.api, service.api), "http://127.0.0.1:8000")
    _, users = await quick_site.queue.tokens.create(owner="ann", role="admin")  # type: ignore[arg-type]
    body = {"execution_grant_id": await service.grant(), "input": {"topic": "ai"}}

    public = await both.get("/api/v1/schedules")
    answers = [
        await both.post(PATH, json=body, headers={"Authorization": f"Bearer {shown}", "Idempotency-Key": "k"})
        for shown in (users, SECRET)
    ]

    assert public.status_code == 200
    assert [each.status_code for each in answers] == [401, 200]
