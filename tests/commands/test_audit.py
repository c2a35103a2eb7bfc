"""`duly audit` and `duly why` as a person runs them, on a database that they leave as it is."""

import asyncio
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import apsw
import asyncpg
import pytest

from duly import every
from duly.domain.ids import RunId
from duly.domain.instants import SECOND, Instant, moment_of, written
from duly.domain.policies import Policies
from duly.domain.runs import Reason, Run, RunStatus
from duly.domain.schedules import Schedule, Target, new_schedule
from duly.ports.storage import Storage, Transaction
from duly.storage.postgres.storage import PostgresStorage
from duly.storage.sqlite.storage import SqliteStorage
from tests.commands.test_duly import duly

BEGAN = Instant(1_700_000_040 * SECOND)
LOSE_ONE = "DELETE FROM schedule_runs WHERE id = 'run_3'"
LOST = "lost: 2023-11-14T22:17:00Z: opened, but has neither row nor gap, and is not owed"


def minute(number: float) -> Instant:
    return Instant(BEGAN + int(number * 60) * SECOND)


async def past_of_five_minutes(storage: Storage) -> None:
    """Each of its five slots was skipped, and there are no more."""
    schedule = new_schedule(
        schedule_id="digest",
        owner="me",
        cadence=every("1m").within(end_at=moment_of(minute(5))),
        target=Target(kind="work"),
        policies=Policies(),
        now=BEGAN,
    )

    async def work(tx: Transaction) -> None:
        await tx.schedules.add(schedule)
        await tx.ledger.add([_skipped(schedule, number) for number in range(1, 6)])
        await tx.schedules.advance([replace(schedule, opened_through=minute(5) // SECOND).planned()])

    try:
        await storage.transact(work)
    finally:
        await storage.close()


def _skipped(schedule: Schedule, number: int) -> Run:
    return Run(
        id=RunId(f"run_{number}"),
        schedule_id=schedule.id,
        owner=schedule.owner,
        revision=1,
        scheduled_for=minute(number),
        fire_at=minute(number),
        opened_at=minute(number),
        status=RunStatus.SKIPPED,
        reason=Reason.OVERLAP,
        detail="run_0 was still in flight",
        completed_at=minute(number),
    )


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The address of a sound ledger."""
    url = "digest.db" if store == "sqlite" else str(request.getfixturevalue("fresh_postgres_url"))

    async def fill() -> None:
        if store == "sqlite":
            await past_of_five_minutes(await SqliteStorage.open(tmp_path / url))
        else:
            await past_of_five_minutes(await PostgresStorage.open(url, listening=False))

    asyncio.run(fill())
    return url


def broken(database: str, folder: Path, sql: str) -> None:
    async def on_postgres() -> None:
        connection = await asyncpg.connect(database)
        await connection.execute(sql)
        await connection.close()

    if database.startswith("postgres"):
        asyncio.run(on_postgres())
    else:
        apsw.Connection(str(folder / database)).execute(sql)


def ran(database: str, folder: Path, *arguments: str) -> CompletedProcess[str]:
    return duly(*arguments, cwd=folder, DULY_DATABASE_URL=database)


@pytest.mark.req("OWN-01")
@pytest.mark.req("RISK-04")
def test_a_sound_ledger_is_counted_and_ends_with_0(database: str, tmp_path: Path) -> None:
    said = ran(database, tmp_path, "audit")

    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.splitlines() == [
        "digest                   5 due = 5 skipped (overlap)",
        "1 schedule               5 due = 5 skipped (overlap)",
        "the laws hold",
    ]


@pytest.mark.req("OWN-01", error=True)
@pytest.mark.req("RISK-04", error=True)
def test_a_broken_ledger_says_where_and_ends_with_1(database: str, tmp_path: Path) -> None:
    broken(database, tmp_path, LOSE_ONE)

    said = ran(database, tmp_path, "audit")

    assert (said.returncode, said.stderr) == (1, "")
    assert said.stdout.splitlines() == [
        "digest                   5 due = 4 skipped (overlap) + 1 lost",
        f"  {LOST}",
        "1 schedule               5 due = 4 skipped (overlap) + 1 lost",
        "the laws are broken: 1 lost",
    ]


@pytest.mark.req("OWN-01")
def test_programs_get_the_same_as_json(database: str, tmp_path: Path) -> None:
    broken(database, tmp_path, LOSE_ONE)

    said = ran(database, tmp_path, "audit", "--json")

    answer = json.loads(said.stdout)
    (schedule,) = answer["schedules"]
    assert said.returncode == 1
    assert (schedule["schedule"], schedule["due"], schedule["found"]) == ("digest", 5, {"lost": 1})
    assert schedule["became"] == [
        {"fate": "skipped", "reason": "overlap", "slots": 4},
        {"fate": "lost", "reason": None, "slots": 1},
    ]
    assert schedule["findings"][0]["law"] == "lost"
    assert schedule["findings"][0]["first"] == written(minute(3))
    assert answer["totals"]["laws_hold"] is False
    assert answer["totals"]["count"] == 1


@pytest.mark.parametrize("since", ["2023-11-14T22:18:00Z", "2023-11-14T23:18:00+01:00"])
def test_slots_before_an_instant_can_be_left_out(database: str, tmp_path: Path, since: str) -> None:
    broken(database, tmp_path, LOSE_ONE)

    said = ran(database, tmp_path, "audit", "--schedule", "digest", "--since", since)

    assert said.returncode == 0, said.stdout
    assert said.stdout.startswith("digest                   1 due = 1 skipped (overlap)\n")


def test_how_long_ago_is_an_instant_too(database: str, tmp_path: Path) -> None:
    assert ran(database, tmp_path, "audit", "--since", "1h").stdout.startswith("digest                   0 due\n")


@pytest.mark.req("OWN-01", error=True)
@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["audit", "--schedule", "nothing"], 3, "there is no schedule 'nothing'"),
        (["audit", "--schedule", "nothing", "--json"], 3, "there is no schedule 'nothing'"),
        (["audit", "--since", "yesterday"], 2, "--since: 'yesterday' is no instant"),
        (["audit", "--since", "2026-01-01"], 2, "--since: '2026-01-01' has no zone"),
        (["audit", "--grace"], 2, "there is no option --grace (see: duly audit --help)"),
        (["why", "nothing"], 3, "there is no schedule, run, job, group, execution or review 'nothing'"),
        (["why", "run_99"], 3, "there is no schedule, run, job, group, execution or review 'run_99'"),
        (["why", "job_99"], 3, "there is no schedule, run, job, group, execution or review 'job_99'"),
        (["why", "digest", "noon"], 2, "SLOT: 'noon' is no instant"),
        (["why", "digest", "2026-01-01T00:00:00.5Z"], 2, "SLOT: is not a whole second"),
        (["why"], 2, "ID"),
    ],
)
def test_a_mistake_is_named_and_has_its_exit_code(
    database: str, tmp_path: Path, arguments: list[str], code: int, complaint: str
) -> None:
    said = ran(database, tmp_path, *arguments)

    assert (said.returncode, said.stdout) == (code, "")
    assert complaint in said.stderr


@pytest.mark.req("OWN-02")
def test_why_says_what_became_of_a_slot(database: str, tmp_path: Path) -> None:
    said = ran(database, tmp_path, "why", "digest", "2023-11-14T22:17:00Z")

    assert said.returncode == 0, said.stderr
    assert said.stdout.splitlines()[1:] == [
        "It was opened at 2023-11-14T22:17:00Z, 0 ms after its time, as run_3.",
        "It was skipped at 2023-11-14T22:17:00Z (overlap): run_0 was still in flight.",
    ]


@pytest.mark.req("OWN-02")
def test_a_run_is_explained_by_its_slot(database: str, tmp_path: Path) -> None:
    by_run = ran(database, tmp_path, "why", "run_3")

    assert by_run.returncode == 0, by_run.stderr
    assert by_run.stdout == ran(database, tmp_path, "why", "digest", "2023-11-14T22:17:00Z").stdout


@pytest.mark.req("OWN-02")
def test_why_says_how_a_schedule_stands(database: str, tmp_path: Path) -> None:
    said = ran(database, tmp_path, "why", "digest", "--json")

    answer = json.loads(said.stdout)
    assert (answer["schedule"], answer["slot"], answer["answer"]) == ("digest", None, "finished")
    assert "no slot left" in answer["sentences"][1]


@pytest.mark.req("OWN-02", error=True)
def test_why_says_what_was_not_planned(database: str, tmp_path: Path) -> None:
    said = ran(database, tmp_path, "why", "digest", "2023-11-14T22:17:30Z", "--json")

    answer = json.loads(said.stdout)
    assert (said.returncode, answer["answer"], answer["slot"]) == (0, "not planned", "2023-11-14T22:17:30Z")


# The database stays as it is.


@pytest.mark.store("sqlite")
@pytest.mark.parametrize("arguments", [["audit"], ["why", "digest"]])
def test_looking_changes_no_byte_and_leaves_no_lock(tmp_path: Path, arguments: list[str]) -> None:
    async def fill() -> None:
        await past_of_five_minutes(await SqliteStorage.open(tmp_path / "digest.db"))

    asyncio.run(fill())
    before = hashlib.sha256((tmp_path / "digest.db").read_bytes()).digest()
    (tmp_path / "digest.db-lock").unlink(missing_ok=True)

    assert ran("digest.db", tmp_path, *arguments).returncode == 0

    assert hashlib.sha256((tmp_path / "digest.db").read_bytes()).digest() == before
    assert not (tmp_path / "digest.db-lock").exists()


@pytest.mark.store("sqlite")
@pytest.mark.req("OWN-01", error=True)
@pytest.mark.parametrize("arguments", [["audit"], ["why", "digest"]])
def test_no_database_is_made_in_order_to_look_at_it(tmp_path: Path, arguments: list[str]) -> None:
    said = ran("nowhere.db", tmp_path, *arguments)

    assert said.returncode == 3
    assert "nowhere.db" in said.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.store("sqlite")
def test_a_database_of_another_version_is_not_migrated(tmp_path: Path) -> None:
    apsw.Connection(str(tmp_path / "old.db")).execute("CREATE TABLE mine (id INTEGER)")
    before = (tmp_path / "old.db").read_bytes()

    said = ran("old.db", tmp_path, "audit")

    assert said.returncode == 4
    assert "schema version 0" in said.stderr
    assert (tmp_path / "old.db").read_bytes() == before


@pytest.mark.store("postgres")
def test_an_empty_postgres_is_not_migrated(tmp_path: Path, fresh_postgres_url: str) -> None:
    said = ran(fresh_postgres_url, tmp_path, "audit")

    async def tables() -> int:
        connection = await asyncpg.connect(fresh_postgres_url)
        try:
            return int(await connection.fetchval("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"))
        finally:
            await connection.close()

    assert said.returncode == 4
    assert asyncio.run(tables()) == 0
