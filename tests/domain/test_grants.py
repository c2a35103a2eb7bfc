"""What a grant covers, and the ways in which it may be no good."""

import pytest

from duly.domain.errors import DulyError, InvalidInput
from duly.domain.grants import EVERY_GRAPH, Grant, scopes_of
from duly.domain.ids import AccountId, GrantId, Owner
from duly.domain.instants import Instant

NOW = Instant(1_000)


def grant(*scopes: str, expires_at: int | None = None, revoked_at: int | None = None) -> Grant:
    return Grant(
        id=GrantId("grant_1"),
        user_id=Owner("ann"),
        account_id=AccountId("acct_1"),
        scopes=scopes_of(scopes or [EVERY_GRAPH]),
        created_at=Instant(0),
        expires_at=None if expires_at is None else Instant(expires_at),
        revoked_at=None if revoked_at is None else Instant(revoked_at),
    )


def refusal(good: Grant, graph_id: str = "dag:any") -> str:
    try:
        good.require_good(NOW)
        good.require_covers(graph_id)
    except DulyError as refused:
        return refused.code
    return "none"


@pytest.mark.req("GRAPH-03")
def test_a_grant_covers_the_graphs_it_names_and_no_others() -> None:
    narrow = grant("graph:execute:dag:digest", "graph:execute:langgraph:agent@2")

    assert narrow.covers("dag:digest")
    assert narrow.covers("langgraph:agent@2")
    assert not narrow.covers("langgraph:agent")
    assert not narrow.covers("dag:digest2")
    assert not narrow.covers("*")
    assert grant(EVERY_GRAPH).covers("dag:whatever")


@pytest.mark.req("GRAPH-02")
@pytest.mark.req("GRAPH-03", error=True)
def test_expired_revoked_and_too_narrow_are_three_errors() -> None:
    assert refusal(grant(expires_at=1_000)) == "grant_expired"
    assert refusal(grant(revoked_at=5)) == "grant_revoked"
    assert refusal(grant(revoked_at=5, expires_at=6)) == "grant_revoked"
    assert refusal(grant("graph:execute:dag:digest"), "dag:other") == "grant_scope"
    assert refusal(grant(expires_at=1_001)) == "none"


@pytest.mark.req("GRAPH-03", error=True)
@pytest.mark.parametrize(
    "scope",
    [
        "",
        "graph:execute:",
        "graph:*",
        "*",
        "graph:execute:a b",
        "graph:execute:a*",
        "Graph:execute:a",
        "graph:read:a",
        7,
    ],
)
def test_what_is_no_scope_is_refused(scope: str) -> None:
    with pytest.raises(InvalidInput, match="scopes"):
        scopes_of([scope])


@pytest.mark.parametrize("scopes", [[], "graph:execute:*", [f"graph:execute:g{n}" for n in range(51)]])
def test_a_grant_has_between_one_and_fifty_scopes(scopes: list[str]) -> None:
    with pytest.raises(InvalidInput, match="scopes"):
        scopes_of(scopes)


def test_scopes_are_kept_once_each() -> None:
    assert scopes_of(["graph:execute:b", "graph:execute:a", "graph:execute:b"]) == (
        "graph:execute:a",
        "graph:execute:b",
    )
