"""`duly account`, `duly grant` and `duly budget` on both stores."""

import asyncio
import json
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest

from duly.wire.money import Account, AccountStatement, Budget, Grant, GrantDetail
from tests.commands.conftest import Said, Shell


def done(said: Said) -> Any:
    assert said.code == 0, said.err
    return json.loads(said.out)


def graph_schedule(shell: Shell, *, model: str | None = None) -> Said:
    given = {"graph_id": "python:news", "input": {} if model is None else {"model": model}}
    target = ("--target", "graph.run", "--input", json.dumps(given))
    return shell("schedule", "add", "news", "--every", "1h", *target, "--json", "--owner", "ann")


def test_an_account_is_opened_credited_and_its_statement_read(shell: Shell) -> None:
    opened = done(shell("account", "add", "main", "--owner", "ann", "--json"))
    said = shell("account", "credit", opened["id"], "5.00", "--key", "invoice 17")
    again = done(shell("account", "credit", opened["id"], "5.00", "--key", "invoice 17", "--json"))

    assert set(opened) == set(Account.model_fields)
    assert "available   5.00" in said.out
    assert again["granted"] == "5.00"
    assert done(shell("account", "show", opened["id"], "--json")) == again
    assert done(shell("account", "list", "--json"))["items"] == [again]
    statement = done(shell("account", "statement", opened["id"], "--json"))
    assert set(statement) == set(AccountStatement.model_fields)
    assert "invoice 17" in shell("account", "statement", opened["id"], "--most", "5").out
    assert shell("account", "list", "--owner", "bob").err.startswith("no accounts")


@pytest.mark.parametrize("amount", ["NaN", "0", "1e9", "99999999999", "abc"])
def test_what_is_no_amount_is_refused(here: Shell, amount: str) -> None:
    account = done(here("account", "add", "main", "--json", DULY_DATABASE_URL="work.db"))["id"]

    refused = here("account", "credit", account, amount, "--key", "k", DULY_DATABASE_URL="work.db")

    assert refused.code == 2
    assert done(here("account", "show", account, "--json", DULY_DATABASE_URL="work.db"))["granted"] == "0.00"
    assert here("account", "show", "acct_nowhere", DULY_DATABASE_URL="work.db").code == 3


@pytest.mark.req("GRAPH-06", error=True)
def test_a_paid_model_on_an_empty_account_is_refused_in_the_shell_too(shell: Shell) -> None:
    refused = graph_schedule(shell, model="gpt-4o")

    assert refused.code == 5
    (account,) = done(shell("account", "list", "--json"))["items"]
    assert f"duly account credit {account['id']}" in refused.err
    assert shell("schedule", "show", "news").code == 3
    shell("account", "credit", account["id"], "1.00", "--key", "k")
    assert graph_schedule(shell, model="gpt-4o").code == 0


@pytest.mark.req("GRAPH-02")
def test_revoking_a_grant_says_what_stops_and_asks(shell: Shell) -> None:
    grant_id = done(graph_schedule(shell))["grant_id"]

    shown = done(shell("grant", "show", grant_id, "--json"))
    assert set(shown) == set(GrantDetail.model_fields)
    assert (shown["scopes"], shown["stops"]) == (["graph:execute:python:news"], ["news"])
    assert shell("grant", "revoke", grant_id).code == 2
    assert "stops 1 schedule: news" in shell("grant", "revoke", grant_id, "--dry-run").err
    declined = shell("grant", "revoke", grant_id, answer="n\n")
    assert (declined.code, "it stops 1 schedule: news [y/N]" in declined.err) == (1, True)
    assert done(shell("grant", "list", "--json"))["items"][0]["revoked_at"] is None
    assert "revoked" in shell("grant", "revoke", grant_id, answer="y\n").out
    assert "revoked" in shell("grant", "list").out
    assert shell("grant", "show", "grant_nowhere").code == 3


def test_a_grant_is_made_for_an_accounts_owner(shell: Shell) -> None:
    account = done(shell("account", "add", "main", "--owner", "ann", "--json"))["id"]

    grant = done(
        shell("grant", "add", "--account", account, "--scope", "graph:execute:*", "--expires", "90d", "--json")
    )

    assert set(grant) == set(Grant.model_fields)
    assert (grant["user_id"], grant["expires_at"] is None) == ("ann", False)
    assert shell("grant", "add", "--account", account, "--scope", "everything").code == 2
    assert shell("grant", "add", "--account", "acct_nowhere", "--scope", "graph:execute:*").code == 3


@pytest.mark.req("OWN-03")
def test_a_budget_is_set_listed_and_deleted(shell: Shell) -> None:
    account = done(shell("account", "add", "main", "--json"))["id"]
    asked = ("budget", "set", "--account", account, "--window", "day", "--on-exceeded", "pause", "--json")

    budget = done(shell(*asked, "--limit", "1.00"))
    changed = done(shell(*asked, "--limit", "2.00"))

    assert set(budget) == set(Budget.model_fields)
    assert (changed["id"], changed["limit"], changed["on_exceeded"]) == (budget["id"], "2.00", "pause")
    assert done(shell("budget", "list", "--json"))["items"] == [changed]
    assert done(shell("budget", "show", budget["id"], "--json")) == changed
    assert "pause" in shell("budget", "list").out
    assert shell("budget", "set", "--window", "day", "--limit", "1").code == 2
    assert shell(*asked, "--limit=-1").code == 2
    assert shell("budget", "delete", budget["id"]).code == 2
    assert shell("budget", "delete", budget["id"], "--yes").code == 0
    assert shell("budget", "show", budget["id"]).code == 3


def test_an_audit_adds_up_every_account(shell: Shell) -> None:
    account = done(shell("account", "add", "main", "--json"))["id"]
    shell("account", "credit", account, "5.00", "--key", "k")
    done(shell("account", "add", "other", "--currency", "EUR", "--json"))

    said, told = shell("audit"), done(shell("audit", "--json"))

    assert said.code == 0
    assert f"{account} 5.00 USD granted = 5.00 available + 0.00 held + 0.00 charged" in said.out
    assert "1 account                0.00 EUR granted" in said.out
    assert said.out.endswith("the laws hold\n")
    assert told["money"]["totals"] == {"count": 2, "found": {}, "laws_hold": True}


def test_an_audit_finds_money_that_came_from_nowhere(shell: Shell, database_url: str, tmp_path: Path) -> None:
    account = done(shell("account", "add", "main", "--json"))["id"]
    execute(database_url, tmp_path, "UPDATE billing_accounts SET granted = granted + 7, available = available + 7")

    said, told = shell("audit"), shell("audit", "--json")

    assert (said.code, told.code) == (1, 1)
    assert "  unbalanced: " in said.out
    assert said.out.endswith("the laws are broken: 2 unbalanced\n")
    assert json.loads(told.out)["money"]["accounts"][0]["account"] == account


def execute(database_url: str, folder: Path, sql: str) -> None:
    async def on_postgres() -> None:
        connection = await asyncpg.connect(database_url)
        await connection.execute(sql)
        await connection.close()

    if database_url.startswith("postgres"):
        asyncio.run(on_postgres())
    else:
        apsw.Connection(str(folder / database_url)).execute(sql)


def _dear(shell: Shell) -> tuple[str, ...]:
    """A schedule whose runs hold half a dollar each, and three fires of its past."""
    account = done(shell("account", "create", "main", "--owner", "ann", "--json"))["id"]
    shell("account", "credit", account, "1.00", "--key", "first")
    given = json.dumps({"graph_id": "python:news", "input": {}, "max_cost": "0.50"})
    target = ("--target", "graph.run", "--input", given)
    assert shell("schedule", "add", "news", "--cron", "0 * * * *", *target, "--owner", "ann").code == 0
    return ("schedule", "backfill", "news", "--from", "2026-03-01T00:00:00Z", "--to", "2026-03-01T02:30:00Z")


@pytest.mark.req("OWN-05")
def test_a_backfill_shows_its_cost_and_that_the_account_does_not_cover_it(shell: Shell) -> None:
    span = _dear(shell)

    preview = done(shell(*span, "--dry-run", "--json"))
    said = shell(*span, "--dry-run").out.splitlines()

    (held,) = preview["cost"]["held"]
    assert (held["amount"], held["available"], held["covered"], held["runs"]) == ("1.50", "1.00", False, 3)
    assert said[1].startswith("1.50 USD is held for 3 runs at most; ")
    assert said[1].endswith(" has 1.00 USD available, which does not cover it.")


@pytest.mark.req("OWN-05", error=True)
def test_a_backfill_that_would_cost_too_much_runs_nothing(shell: Shell) -> None:
    span = _dear(shell)

    refused = shell(*span, "--max-cost", "1.49", "--yes")
    wrong = shell(*span, "--max-cost", "much", "--yes")

    assert (refused.code, wrong.code) == (2, 2)
    assert "max_cost: 1.50 USD would be held, more than 1.49 (choose fewer runs, or raise it)" in refused.err
    assert "--max-cost: 'much' is not an amount" in wrong.err
    assert done(shell("schedule", "runs", "news", "--json"))["items"] == []
    assert len(done(shell(*span, "--max-cost", "1.50", "--yes", "--json"))["runs"]) == 3
