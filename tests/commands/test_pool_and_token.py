"""`duly pool` and `duly token` on both stores."""

import json
from typing import Any

from duly.wire.pools import Pool
from duly.wire.tokens import CreatedToken, Token
from tests.commands.conftest import Said, Shell


def done(said: Said) -> Any:
    assert said.code == 0, said.err
    return json.loads(said.out)


def test_a_pool_is_defined_changed_and_shown(shell: Shell) -> None:
    defined = done(shell("pool", "set", "mine", "--slots", "3", "--ageing", "90s", "--json"))
    paused = done(shell("pool", "set", "mine", "--mode", "paused", "--json"))

    assert set(defined) == set(Pool.model_fields)
    assert (defined["slots"], defined["ageing_ms"], defined["mode"]) == (3, 90_000, "open")
    assert (paused["slots"], paused["mode"]) == (3, "paused")
    assert done(shell("pool", "set", "mine", "--ageing", "off", "--json"))["ageing_ms"] is None
    assert "mine" in [pool["name"] for pool in done(shell("pool", "list", "--json"))["items"]]
    assert "slots     3" in shell("pool", "show", "mine").out


def test_a_limit_per_owner_is_set_and_taken_away(shell: Shell) -> None:
    assert done(shell("pool", "set", "mine", "--slots", "3", "--per-owner", "2", "--json"))["per_owner"] == 2
    assert done(shell("pool", "set", "mine", "--slots", "4", "--json"))["per_owner"] == 2
    assert done(shell("pool", "set", "mine", "--per-owner", "off", "--json"))["per_owner"] is None
    assert shell("pool", "set", "mine", "--per-owner", "0").code == 2
    assert shell("pool", "set", "mine", "--per-owner", "two").code == 2


def test_a_pool_that_is_not_there_needs_a_limit(shell: Shell) -> None:
    shell("db", "migrate")

    assert shell("pool", "show", "mine").code == 3
    assert shell("pool", "set", "mine", "--mode", "open").code == 2
    assert shell("pool", "set", "Mine", "--slots", "3").code == 2
    assert shell("pool", "set", "mine", "--slots", "3", "--dry-run").code == 0
    assert shell("pool", "show", "mine").code == 3


def test_a_secret_is_printed_once_and_alone(shell: Shell) -> None:
    said = shell("token", "add", "--owner", "ann", "--role", "viewer", "--name", "laptop", "--expires", "90d")

    assert said.code == 0, said.err
    assert said.out.startswith("duly_")
    assert said.out.count("\n") == 1
    assert "not shown again" in said.err
    listed = shell("token", "list", "--json")
    (token,) = done(listed)["items"]
    assert set(token) == set(Token.model_fields)
    assert (token["owner"], token["role"], token["name"]) == ("ann", "viewer", "laptop")
    assert token["expires_at"] is not None
    assert said.out.strip() not in listed.out + shell("token", "list").out
    shown = shell("token", "show", token["id"], "--json")
    assert done(shown) == token
    assert shell("token", "show", "tok_nobody").code == 3


def test_a_token_is_revoked_only_if_somebody_said_yes(shell: Shell) -> None:
    created = done(shell("token", "add", "--json"))
    assert set(created) == set(CreatedToken.model_fields)

    assert shell("token", "revoke", created["id"]).code == 2
    assert shell("token", "revoke", created["id"], "--dry-run").code == 0
    assert done(shell("token", "list", "--json"))["items"][0]["revoked_at"] is None
    assert done(shell("token", "revoke", created["id"], "--yes", "--json"))["revoked_at"] is not None
    assert shell("token", "list").out.splitlines()[1].endswith("revoked")
    assert shell("token", "revoke", "tok_x", "--yes").code == 3


def test_a_secret_is_no_way_to_name_a_token(shell: Shell) -> None:
    secret = done(shell("token", "add", "--json"))["secret"]

    said = shell("token", "revoke", secret, "--yes")

    assert said.code == 2
    assert secret not in said.err


def test_what_no_token_can_be_is_refused(shell: Shell) -> None:
    assert shell("token", "add", "--owner", "").code == 2
    refused = shell("token", "add", "--role", "god")
    assert refused.code == 2
    assert "argument --role: 'god' is none of viewer, operator, admin" in refused.err
    assert shell("token", "add", "--expires", "soon").code == 2
