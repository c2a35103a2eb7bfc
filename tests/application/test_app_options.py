"""What `@app.job` understands, and what it refuses where it is written."""

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duly import Duly, InvalidInput, JobContext, Settings, Slot, cron, every, once
from duly.app.declared import DeclaredJob, DeclaredSchedule
from duly.app.durations import ms_of
from duly.domain.policies import CatchUp, Overlap, Policies
from duly.domain.pools import Pool
from duly.domain.retries import RetryPolicy


def plain(n: int = 0) -> int:
    return n


def needs_slot(slot: Slot) -> None: ...


def needs_topic(topic: str, context: JobContext, slot: Slot | None = None) -> None: ...


def yields() -> Iterator[int]:
    yield 1


async def yields_later() -> AsyncIterator[int]:
    yield 1


def unnamed(n: int, /) -> None: ...


def declared(app: Duly, name: str) -> tuple[DeclaredJob, DeclaredSchedule | None]:
    return app._register.jobs[name], app._register.schedules.get(name)


@pytest.mark.req("CON-001")
def test_a_job_that_says_nothing_has_the_defaults_and_stays_the_function_it_was() -> None:
    app = Duly()

    assert app.job(plain) is plain

    job, schedule = declared(app, "plain")
    assert (job.pool, job.priority, job.lane, job.timeout_ms) == ("default", 0, None, None)
    assert job.retry == RetryPolicy(max_attempts=3, backoff_ms=2_000)
    assert schedule is None
    assert plain(3) == 3


def test_a_job_says_how_it_is_scheduled_retried_and_limited() -> None:
    app = Duly()
    cadence = cron("0 9 * * MON-FRI", tz="Europe/Berlin")

    app.job(
        name="digest",
        schedule=cadence,
        schedule_id="morning",
        params={"topic": "ai"},
        overlap="queue_one",
        catch_up="spread",
        catch_up_cap=7,
        jitter="30s",
        retries=5,
        backoff="1s",
        timeout="1h30m",
        pool="ollama",
        priority=3,
        lane="mail",
    )(needs_topic)

    job = app._register.jobs["digest"]
    schedule = app._register.schedules["morning"]
    assert job.retry == RetryPolicy(max_attempts=6, backoff_ms=1_000)
    assert (job.timeout_ms, job.pool, job.priority, job.lane) == (5_400_000, "ollama", 3, "mail")
    made = schedule.declared(Policies())
    assert (made.id, made.cadence, made.target.payload) == ("morning", cadence, '{"topic":"ai"}')
    assert (made.target.kind, made.target.retry, made.target.pool) == ("digest", job.retry, "ollama")
    assert made.policies == Policies(
        overlap=Overlap.QUEUE_ONE, catch_up=CatchUp.SPREAD, catch_up_cap=7, jitter_ms=30_000
    )


def test_policies_that_a_job_does_not_name_are_those_of_the_settings() -> None:
    app = Duly()
    app.job(schedule=every("1h"), jitter=5)(plain)
    _, schedule = declared(app, "plain")

    assert schedule is not None
    assert schedule.declared(Policies(overlap=Overlap.ALLOW)).policies == Policies(overlap=Overlap.ALLOW, jitter_ms=5)


@pytest.mark.req("CON-001", error=True)
@pytest.mark.parametrize(
    ("options", "field", "told"),
    [
        ({"overlap": "sometimes", "schedule": every("1h")}, "overlap", "skip"),
        ({"catch_up": "all", "schedule": every("1h")}, "catch_up", "spread"),
        ({"catch_up_cap": 0, "schedule": every("1h")}, "catch_up_cap", "1 to"),
        ({"jitter": "2x", "schedule": every("1h")}, "jitter", "30s"),
        ({"jitter": "2d", "schedule": every("1h")}, "jitter", "out of range"),
        ({"jitter": -1, "schedule": every("1h")}, "jitter", "0 to"),
        ({"schedule": "0 9 * * *"}, "schedule", "cron("),
        ({"schedule": every("1h"), "schedule_id": "x" * 161}, "schedule_id", "1 to 160"),
        ({"schedule": every("1h"), "params": {"m": 1}}, "params", "'m'"),
        ({"schedule": every("1h"), "params": {"n": object()}}, "params.n", "JSON"),
        ({"overlap": "skip"}, "overlap", "schedule="),
        ({"params": {"n": 1}}, "params", "schedule="),
        ({"retries": -1}, "retries", "0 to 999"),
        ({"retries": True}, "retries", "0 to 999"),
        ({"backoff": "soon"}, "backoff", "'30s'"),
        ({"backoff": 5}, "backoff", "has no unit"),
        ({"timeout": 10}, "timeout", "has no unit"),
        ({"timeout": "0s"}, "timeout", "out of range"),
        ({"timeout": ""}, "timeout", "not a duration"),
        ({"pool": "No Name"}, "pool", "a-z"),
        ({"priority": 99_999}, "priority", "32767"),
        ({"lane": ""}, "lane", "1 to"),
        ({"name": "Not a name"}, "name", "a-z"),
        ({"retrys": 1}, "retrys", "did you mean retries?"),
        ({"colour": 1}, "colour", "no option"),
    ],
)
def test_an_option_that_cannot_mean_anything_is_refused_where_it_is_written(
    options: dict[str, Any], field: str, told: str
) -> None:
    app = Duly()

    with pytest.raises(InvalidInput) as refused:
        app.job(**options)(plain)

    assert refused.value.field.startswith(field)
    assert told in str(refused.value)
    assert app.jobs == []


@pytest.mark.parametrize(
    ("function", "options", "told"),
    [
        (yields, {}, "yields"),
        (yields_later, {}, "yields"),
        (unnamed, {}, "'n' has no name"),
        (int, {}, "is no function"),
        (7, {}, "is no function"),
        (lambda: None, {"isolate": True, "name": "it"}, "cannot be imported"),
        (lambda: None, {}, "not a name"),
        (needs_topic, {"schedule": every("1h")}, "'topic'"),
    ],
)
def test_a_function_that_could_not_run_is_refused(
    function: Callable[..., Any], options: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidInput, match=told):
        Duly().job(**options)(function)


def test_a_name_is_given_once() -> None:
    app = Duly()
    app.job(name="it", schedule=every("1h"))(plain)
    app.pool("gpu", limit=1)

    with pytest.raises(InvalidInput, match="job named 'it' already"):
        app.command("it", ["true"])
    with pytest.raises(InvalidInput, match="two schedules are named 'it'"):
        app.job(name="other", schedule=every("1h"), schedule_id="it")(plain)
    with pytest.raises(InvalidInput, match="declared twice"):
        app.pool("gpu", limit=2)
    assert app.jobs == ["it"]


def test_a_program_and_a_pool_are_declared_by_name() -> None:
    app = Duly()

    pool = app.pool("gpu", limit=2, prefetch=1, ageing="1m")
    report = app.command("report", ["true"], schedule=once(datetime(2999, 1, 1, tzinfo=UTC)), pool=pool, retries=0)

    job, schedule = declared(app, report)
    assert (job.pool, job.retry.max_attempts) == ("gpu", 1)
    assert schedule is not None
    assert app._register.pools_used == {"gpu": Pool(name=job.pool, slots=2, prefetch=1, ageing_ms=60_000)}


@pytest.mark.parametrize(
    ("declare", "told"),
    [
        (lambda app: app.pool("gpu", limit=-1), "limit"),
        (lambda app: app.pool("gpu", limit=1, ageing="-1s"), "ageing"),
        (lambda app: app.pool("No", limit=1), "pool"),
        (lambda app: app.command("it", "ls -l"), "argv"),
    ],
)
def test_a_program_or_a_pool_that_cannot_be_is_refused(declare: Callable[[Duly], object], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        declare(Duly())


def test_an_app_has_one_database() -> None:
    with pytest.raises(InvalidInput, match="either"):
        Duly("work.db", settings=Settings())
    assert Duly("work.db").settings.database_url == "work.db"


@pytest.mark.req("DEC-002")
def test_without_a_database_the_environment_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Duly()
    monkeypatch.delenv("DULY_DATABASE_URL", raising=False)
    assert app.settings.database_url == "duly.db"

    monkeypatch.setenv("DULY_DATABASE_URL", "other.db")
    assert app.settings.database_url == "other.db"


@pytest.mark.parametrize(
    ("written", "ms"),
    [("90s", 90_000), ("1h30m", 5_400_000), ("500ms", 500), ("1m500ms", 60_500), (timedelta(seconds=2), 2_000)],
)
def test_durations_are_read_as_people_write_them(written: str | timedelta, ms: int) -> None:
    assert ms_of(written, field="it", least=0, most=10**9) == ms
