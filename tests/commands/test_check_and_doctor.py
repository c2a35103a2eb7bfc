"""`duly check`, `duly doctor`, `duly db` and `duly backup`: what is wrong, what is so, what is kept."""

import asyncio
import json
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest

from duly.cli.backup import progress
from duly.cli.doctor import file_system_of
from duly.storage.sqlite.facts import is_affected
from tests.commands.conftest import Said, Shell


def done(said: Said) -> Any:
    assert said.code == 0, said.err
    return json.loads(said.out)


def changed(database_url: str, folder: Path, sql: str) -> None:
    async def on_postgres() -> None:
        connection = await asyncpg.connect(database_url)
        try:
            await connection.execute(sql)
        finally:
            await connection.close()

    if database_url.startswith("postgres"):
        asyncio.run(on_postgres())
    else:
        connection = apsw.Connection(str(folder / database_url))
        connection.execute(sql)
        connection.close()


def test_nothing_is_wrong_with_a_fresh_database(shell: Shell) -> None:
    shell("db", "migrate")

    said = shell("check")

    assert (said.code, said.out, said.err) == (0, "", "no problems\n")
    assert done(shell("check", "--json")) == {"problems": [], "ok": True}


@pytest.mark.store("sqlite")
def test_everything_that_is_wrong_with_the_settings_is_said_at_once(here: Shell) -> None:
    said = here("check", DULY_LEASE_MS="soon", DULY_PORT="99999", DULY_DATABSE_URL="typo.db", DULY_LOG_LEVEL="loud")

    names = [line.split(":")[0] for line in said.out.splitlines()]
    assert said.code == 1
    assert names == ["DULY_PORT", "DULY_LEASE_MS", "DULY_LOG_LEVEL", "DULY_DATABSE_URL"]
    assert "did you mean DULY_DATABASE_URL?" in said.out


@pytest.mark.store("sqlite")
@pytest.mark.parametrize(
    "url", ["nowhere.db", "mysql://here", "postgresql://nobody@127.0.0.1:1/none?connect_timeout=1"]
)
def test_a_database_that_cannot_be_used_is_a_problem(here: Shell, url: str, tmp_path: Path) -> None:
    said = here("check", DULY_DATABASE_URL=url)

    assert said.code == 1
    assert len(said.out.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_broken_schedules_and_lost_pools_are_problems(shell: Shell, database_url: str, tmp_path: Path) -> None:
    shell("pool", "set", "mine", "--slots", "1")
    shell("schedule", "add", "a", "--every", "1h", "--target", "work", "--pool", "mine")
    shell("schedule", "add", "b", "--every", "1h", "--target", "work")
    broken = "state = 'broken', state_reason = 'gone', fire_at = NULL, next_run_at = NULL"
    changed(database_url, tmp_path, f"UPDATE schedules SET {broken} WHERE id = 'b'")
    changed(database_url, tmp_path, "UPDATE schedules SET pool = 'lost' WHERE id = 'a'")

    said = shell("check")

    assert said.code == 1
    assert [line.split(":")[0] for line in said.out.splitlines()] == ["schedule a", "schedule b"]


def test_a_schema_of_another_version_is_a_problem(shell: Shell, database_url: str, tmp_path: Path) -> None:
    shell("db", "migrate")
    changed(database_url, tmp_path, "INSERT INTO schema_migrations (version, name, applied_at) VALUES (99, 'later', 0)")

    assert "upgrade duly" in shell("check").out
    assert shell("db", "version").code == 1
    said = shell("doctor")
    assert said.code == 1
    assert "upgrade duly" in said.out
    assert "db migrate" not in said.out


def test_the_doctor_tells_facts_with_verdicts(shell: Shell, store: str) -> None:
    shell("schedule", "add", "a", "--every", "1h", "--target", "work")

    told = done(shell("doctor", "--json"))

    facts = {fact["name"]: fact for fact in told["facts"]}
    assert told["healthy"] is True
    assert {"schema", "engine", "tz data", "timekeeper", "overdue schedules", "sessions", "stuck jobs"} <= set(facts)
    assert ("clock offset" in facts) is (store == "postgres")
    assert ("journal mode" in facts) is (store == "sqlite")
    assert all(set(fact) == {"name", "value", "verdict", "remedy"} for fact in told["facts"])


def test_slots_that_nobody_opens_make_the_doctor_frown(shell: Shell, database_url: str, tmp_path: Path) -> None:
    shell("schedule", "add", "a", "--every", "1h", "--target", "work")
    changed(database_url, tmp_path, "UPDATE schedules SET fire_at = 1, next_run_at = 1")

    told = shell("doctor", "--json")

    assert told.code == 1
    overdue = next(fact for fact in json.loads(told.out)["facts"] if fact["name"] == "overdue schedules")
    assert (overdue["value"], overdue["verdict"]) == ("1", "bad")


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ("3.6.23", False),
        ("3.7.0", True),
        ("3.44.5", True),
        ("3.44.6", False),
        ("3.45.0", True),
        ("3.50.6", True),
        ("3.50.7", False),
        ("3.51.2", True),
        ("3.51.3", False),
        ("3.53.0", False),
    ],
)
def test_sqlite_versions_that_may_lose_a_reset_log_are_known(version: str, affected: bool) -> None:
    assert is_affected(version) is affected


def test_the_innermost_mount_says_the_file_system(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("disk / ext4 rw 0 0\nserver:/x /data nfs4 rw 0 0\nodd\n")

    assert file_system_of(Path("/data/duly.db"), mounts) == "nfs4"
    assert file_system_of(Path("/database/duly.db"), mounts) == "ext4"
    assert file_system_of(Path("/data/duly.db"), tmp_path / "nothing") is None


# The database itself


@pytest.mark.req("DEC-002")
def test_migrating_says_from_where_to_where(shell: Shell) -> None:
    first, again = done(shell("db", "migrate", "--json")), done(shell("db", "migrate", "--json"))

    assert first["from"] == 0
    assert first["to"] == again["from"] == again["to"] >= 4
    found = done(shell("db", "version", "--json"))
    assert found["schema_found"] == found["schema_known"] == first["to"]


@pytest.mark.req("OWN-05")
def test_jobs_that_ended_are_forgotten_only_if_somebody_said_yes(shell: Shell) -> None:
    job = done(shell("job", "put", "greet", "--json"))["id"]
    shell("job", "cancel", job)
    prune = ("db", "prune", "--before", "1s")

    assert shell(*prune).code == 2
    assert shell(*prune, "--dry-run").code == 0
    assert shell("db", "prune", "--before", "soon", "--yes").code == 2
    assert done(shell("db", "prune", "--before", "1d", "--yes", "--json")) == {"pruned": 0, "deliveries": 0}
    assert shell("job", "show", job).code == 0
    assert done(shell("db", "prune", "--before", "2099-01-01T00:00:00Z", "--yes", "--json")) == {
        "pruned": 1,
        "deliveries": 0,
    }
    assert shell("job", "show", job).code == 3


@pytest.mark.store("sqlite")
def test_a_dry_run_migrates_nothing(here: Shell, tmp_path: Path) -> None:
    assert here("db", "migrate", "--dry-run").code == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.store("sqlite")
def test_an_address_is_shown_without_its_password(here: Shell) -> None:
    said = here("db", "url", DULY_DATABASE_URL="postgresql://me:secret@db:5432/work?sslmode=require")

    assert said.out == "postgresql://db:5432/work\n"


def test_only_a_big_copy_tells_how_far_it_has_come() -> None:
    told: list[str] = []
    small, big = progress(told.append), progress(told.append)
    small(100, 100)
    assert told == []

    for copied in range(0, 40_001, 2_000):
        big(copied, 40_000)

    assert told == [f"copied {percent} %" for percent in range(10, 101, 10)]


def test_the_doctor_tells_of_ends_that_no_courier_can_read(shell: Shell, database_url: str, tmp_path: Path) -> None:
    shell("db", "migrate")
    columns, values = "noun, occurred_at, subject, aside_at, aside_reason", "'job', 1, 'x', 2, 'ValueError: no job'"
    changed(database_url, tmp_path, f"INSERT INTO webhook_outbox ({columns}) VALUES ({values})")

    facts = {fact["name"]: fact for fact in done(shell("doctor", "--json"))["facts"]}

    aside = facts["webhooks set aside"]
    assert (aside["value"], aside["verdict"]) == ("1", "warning")
    assert aside["remedy"].startswith("ValueError: no job: ")
