"""What the schema refuses costs those nothing who do not ask for it."""

from importlib.resources import files

import apsw
import pytest

from duly.storage.migrations import load_migrations
from duly.storage.statements import load_statements

pytestmark = pytest.mark.store("sqlite")


@pytest.fixture
def database() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    for migration in load_migrations(files("duly.storage.sqlite").joinpath("migrations")):
        connection.execute(migration.sql)
    return connection


def _runs_a_trigger(database: apsw.Connection, sql: str, parameters: int = 0) -> bool:
    return any(row[1] == "Program" for row in database.execute(f"EXPLAIN {sql}", (None,) * parameters))


@pytest.mark.req("INV-001")
@pytest.mark.parametrize(
    "name",
    [
        "insert_jobs",
        "insert_alike",
        "claim",
        "start",
        "give_back",
        "record_finished",
        "finish",
        "record_alike",
        "finish_alike",
        "promote",
        "demote",
        "set_state",
        "park",
        "unpark",
        "request_cancel",
    ],
)
def test_a_jobs_way_through_the_queue_meets_no_trigger(database: apsw.Connection, name: str) -> None:
    # Of that one, which tells webhooks, each end of a job runs the one look that finds nobody to tell.
    database.execute("DROP TRIGGER finished_jobs_told")
    statement = load_statements("sqlite")[name]

    assert not _runs_a_trigger(database, statement.sql, len(statement.parameters))


@pytest.mark.req("INV-001")
@pytest.mark.req("INV-002")
def test_what_must_not_change_does_meet_one(database: apsw.Connection) -> None:
    assert _runs_a_trigger(database, "UPDATE jobs SET payload = '{}'")
    assert _runs_a_trigger(database, "UPDATE jobs SET kind = ''")
    assert _runs_a_trigger(database, "UPDATE finished_jobs SET payload = '{}'")
    assert not _runs_a_trigger(database, "UPDATE finished_jobs SET status = 'FAILED', error = '', result = ''")
