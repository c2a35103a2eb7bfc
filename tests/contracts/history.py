"""Thousands of things that have ended, written straight into the tables: what is rare among them is also the oldest."""

from collections.abc import Awaitable, Callable

from duly.storage.statements import Dialect

ENDED = 10_000
_RARE = 20
_NUMBERS: dict[Dialect, str] = {
    "sqlite": f"WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < {ENDED})",
    "postgres": f"WITH g(n) AS (SELECT generate_series(CAST(1 AS bigint), {ENDED}))",
}
_ID: dict[Dialect, str] = {"sqlite": "printf('%08d', n)", "postgres": "lpad(CAST(n AS text), 8, '0')"}
_ONE: dict[Dialect, str] = dict.fromkeys(("sqlite", "postgres"), "WITH g(n) AS (SELECT 1)")


def _rare(every: int, usual: str, *rare: str) -> str:
    """Of the first few some are one of the rare words, all others the usual one."""
    some = " ".join(f"WHEN n <= {_RARE} AND n % {every} = {place} THEN '{word}'" for place, word in enumerate(rare))
    return f"CASE {some} ELSE '{usual}' END"


def _all(value: str, columns: str) -> dict[str, str]:
    return dict.fromkeys(columns.split(), value)


_WHO, _KIND = _rare(5, "ann", "bob"), _rare(3, "slot", "manual")
_RETRIED = _all("1", "max_attempts backoff_ms backoff_cap_ms")

_PEOPLE = [
    *[("users", {"id": f"'{who}'", "created_at": "1"}) for who in ("ann", "bob")],
    (
        "billing_accounts",
        {"id": "'acc'", "owner_user_id": "'ann'", "name": "''", "currency": "'usd'"}
        | _all("0", "granted available held charged overrun created_at"),
    ),
    (
        "execution_grants",
        {"id": "'grant'", "user_id": "'ann'", "billing_account_id": "'acc'", "scopes": "''"}
        | _all("1", "expires_at created_at"),
    ),
    (
        "execution_requests",
        {"grant_id": "'grant'", "run_id": "'exec'", "status": "'running'"}
        | _all("'x'", "idempotency_key request_hash request graph_id era")
        | _all("1", "attempt token expires_at created_at"),
    ),
    *[
        (
            "schedules",
            {"id": f"'of-{who}'", "owner_user_id": f"'{who}'", "state": "'paused'", "timezone": "'UTC'"}
            | {"overlap": "'skip'", "catch_up": "'none'", "pool": "'default'"}
            | _all("'x'", "kind input")
            | _all(
                "1", "revision opened_through created_at updated_at priority every_s anchor_at catch_up_cap jitter_ms"
            )
            | _RETRIED,
        )
        for who in ("ann", "bob")
    ],
    *[
        (
            "webhook_endpoints",
            {"id": f"'of-{who}'", "owner_user_id": f"'{who}'", "everything": "0"}
            | _all("'x'", "url host events note signing_key")
            | _all("1", "created_at updated_at"),
        )
        for who in ("ann", "bob")
    ],
]

_THINGS = [
    (
        "schedule_runs",
        {"id": "'run_' || {id}", "schedule_id": f"'of-' || {_WHO}", "owner_user_id": _WHO, "revision": "1"}
        | {"kind": _KIND, "own_key": f"CASE WHEN {_KIND} = 'slot' THEN '' ELSE 'key-' || {{id}} END"}
        | {"status": _rare(4, "success", "error", "skipped", "cancelled")}
        | _all("n", "scheduled_for fire_at opened_at completed_at"),
    ),
    (
        "finished_jobs",
        {"kind": "'k'", "payload": "'x'", "pool": _rare(3, "default", "ollama"), "owner_user_id": _WHO}
        | {"ledger_run": "'run_' || {id}", "status": _rare(4, "COMPLETED", "FAILED", "SKIPPED", "CANCELLED")}
        | _all("'job_' || {id}", "id chain")
        | _all("n", "run_at created_at finished_at")
        | _all("1", "priority attempt max_attempts"),
    ),
    (
        "job_groups",
        {"id": "'grp_' || {id}", "owner_user_id": _WHO, "name": "''", "mode": "'parallel'", "size": "1"}
        | {"stop_on_failure": "0", "open": "0", "status": _rare(3, "COMPLETED", "PARTIAL")}
        | _all("n", "created_at ended_at"),
    ),
    (
        "webhook_deliveries",
        {"id": "'dlv_' || {id}", "event_id": "'evt_' || {id}", "subject_id": "'job_' || {id}", "type": "'t'"}
        | {"endpoint_id": f"'of-' || {_WHO}", "owner_user_id": _WHO, "state": _rare(3, "delivered", "failed")}
        | _all("n", "tries attempts due_at give_up_at created_at ended_at"),
    ),
    (
        "reviews",
        {"id": "'rev_' || {id}", "run_id": "'exec'", "owner_user_id": _WHO, "kind": "'graph'", "on_silence": "'fail'"}
        | {"state": _rare(3, "approved", "rejected"), "attempt": "n"}
        | _all("'x'", "graph_id question_id question note decided_by")
        | _all("n", "created_at deadline decided_at"),
    ),
    ("execution_events", {"run_id": "'exec'", "kind": "'token'", "data": "'x'"} | _all("n", "seq attempt at")),
]


async def write_history(dialect: Dialect, execute: Callable[[str], Awaitable[object]]) -> None:
    for numbers, rows in ((_ONE, _PEOPLE), (_NUMBERS, _THINGS)):
        for table, columns in rows:
            names, values = ", ".join(columns), ", ".join(columns.values()).replace("{id}", _ID[dialect])
            known = " WHERE true ON CONFLICT DO NOTHING" if table == "users" else ""
            await execute(f"{numbers[dialect]} INSERT INTO {table} ({names}) SELECT {values} FROM g{known}")
    if dialect == "postgres":
        await execute("ANALYZE")
