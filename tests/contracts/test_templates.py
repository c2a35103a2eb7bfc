"""Templates, and jobs made from them: snapshots that no later change reaches."""

from importlib.resources import files
from typing import Any

import pytest

from duly.domain.errors import InvalidInput, Unavailable
from duly.domain.ids import JobId, JobKey, PoolName
from duly.domain.jobs import COMPLETED, FinishedJob, JobAlreadyFinished, JobLocked, KeyOfAnother, PutOutcome, UnknownJob
from duly.domain.payloads import value_of
from duly.domain.retries import RetryPolicy
from duly.domain.templates import Command, NewTemplate, TemplateChanged, TemplateExists, UnknownTemplate
from duly.storage.migrations import load_migrations
from duly.storage.sql.jobs import SqlJobs
from tests.contracts.world import WIDE, World

SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "copies": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["to"],
    "additionalProperties": False,
}


def letters(**changed: Any) -> NewTemplate:
    asked: dict[str, Any] = {"kind": "send", "params": {"copies": 1}, "schema": SCHEMA, "pool": WIDE} | changed
    return NewTemplate(name="letters", **asked)


async def test_a_key_that_another_owner_has_or_takes_meanwhile_is_not_taken_over(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, key = world.queue.jobs, JobKey("k")
    await world.queue.templates.create(letters(), owner="ann")
    await world.queue.templates.create(NewTemplate(name="eves", kind="send", pool=WIDE), owner="eve")
    hers = await jobs.put_from("letters", {"to": "you"}, owner="ann", key=key)

    with pytest.raises(KeyOfAnother):
        await jobs.put_from("eves", owner="eve", key=key)

    async def nobody(*_: object) -> None:
        """As if it came between the look and the put."""

    monkeypatch.setattr(SqlJobs, "holder_of", nobody)
    with pytest.raises(Unavailable, match="took the key"):
        await jobs.put_from("eves", owner="eve", key=key)
    monkeypatch.undo()
    assert (await world.live(hers.job_id)).payload == '{"copies":1,"to":"you"}'
    again = await jobs.put_from("letters", {"to": "all"}, owner="ann", key=key)
    assert again == (hers.job_id, PutOutcome.REPLACED)


async def test_a_template_is_read_back_as_it_was_asked_for(world: World) -> None:
    asked = NewTemplate(
        name="report",
        command=Command(argv=("make", "report"), env={"LANG": "C"}, cwd="/srv"),
        params={"year": 2026, "tags": ["a", {"b": None}]},
        schema={"properties": {"year": {"type": "integer"}}},
        pool=WIDE,
        resources=(PoolName("ollama"),),
        priority=3,
        retry=RetryPolicy(max_attempts=5, backoff_ms=1, backoff_cap_ms=2),
        timeout_ms=1_000,
        webhook_url="https://example.org/hook",
    )

    made = await world.queue.templates.create(asked, owner="ann")

    assert (made.asked, made.owner, made.version) == (asked, "ann", 1)
    assert await world.queue.templates.get("report", owner="ann") == made
    assert await world.queue.templates.list(owner="ann") == [made]
    assert await world.queue.templates.list(owner=None) == [made]


async def test_somebody_elses_template_does_not_exist(world: World) -> None:
    templates = world.queue.templates
    await templates.create(letters(), owner="ann")

    assert await templates.list(owner="bob") == []
    with pytest.raises(UnknownTemplate):
        await templates.get("letters", owner="bob")
    with pytest.raises(UnknownTemplate):
        await templates.update(letters(priority=2), owner="bob", version=1)
    with pytest.raises(UnknownTemplate):
        await templates.delete("letters", owner="bob")
    with pytest.raises(UnknownTemplate):
        await world.queue.jobs.put_from("letters", {"to": "you"}, owner="bob")
    with pytest.raises(TemplateExists):
        await templates.create(letters(), owner="bob")
    assert (await templates.get("letters", owner=None)).owner == "ann"


async def test_a_change_names_the_version_it_was_made_from(world: World) -> None:
    templates = world.queue.templates
    await templates.create(letters(), owner="ann")
    world.clock.advance(1)

    changed = await templates.update(letters(priority=2), owner="ann", version=1)

    assert (changed.version, changed.asked.priority) == (2, 2)
    assert changed.updated_at > changed.created_at
    with pytest.raises(TemplateChanged, match="version 2"):
        await templates.update(letters(priority=3), owner="ann", version=1)
    with pytest.raises(TemplateChanged):
        await templates.delete("letters", owner="ann", version=1)
    await templates.delete("letters", owner="ann", version=2)
    with pytest.raises(UnknownTemplate):
        await templates.get("letters", owner="ann")


@pytest.mark.req("INV-005")
async def test_a_job_stays_as_it_was_put_when_its_template_is_changed_and_deleted(world: World) -> None:
    templates = world.queue.templates
    retry = RetryPolicy(max_attempts=7, backoff_ms=11, backoff_cap_ms=12)
    await templates.create(letters(priority=4, retry=retry, timeout_ms=900), owner="ann")
    put = await world.queue.jobs.put_from("letters", {"to": "you"}, owner="ann")
    before = await world.live(put.job_id)

    await templates.update(letters(kind="burn", params={"copies": 9}, priority=-4), owner="ann", version=1)
    await templates.delete("letters", owner="ann")

    assert await world.live(put.job_id) == before
    assert (before.kind, value_of(before.payload)) == ("send", {"copies": 1, "to": "you"})
    assert (before.priority, before.retry, before.timeout_ms) == (4, retry, 900)
    hand = await world.hand()
    (claimed,) = await hand.claim()
    assert (claimed.kind, claimed.payload) == (before.kind, before.payload)


async def test_a_command_travels_with_its_params(world: World) -> None:
    command = Command(argv=("echo", "hi"), env={"A": "b"}, cwd="/")
    await world.queue.templates.create(NewTemplate(name="say", command=command, pool=WIDE), owner="ann")
    put = await world.queue.jobs.put_from("say", {"n": 1}, owner="ann")

    job = await world.live(put.job_id)

    words = {"argv": ["echo", "hi"], "env": {"A": "b"}, "cwd": "/"}
    assert job.kind == "duly.command"
    assert value_of(job.payload) == {"command": words, "params": {"n": 1}}
    edited = await world.queue.jobs.edit_params(put.job_id, {"n": 2})
    assert value_of(edited.payload) == {"command": words, "params": {"n": 2}}


async def test_a_job_of_a_template_belongs_to_its_owner_and_is_found_by_its_key(world: World) -> None:
    jobs = world.queue.jobs
    await world.queue.templates.create(letters(), owner="ann")
    first = await jobs.put_from("letters", {"to": "you"}, owner="ann", key=JobKey("k"))
    again = await jobs.put_from("letters", {"to": "me"}, owner="ann", key=JobKey("k"))

    assert (again.job_id, again.outcome) == (first.job_id, PutOutcome.REPLACED)
    assert [job.id for job in await jobs.list(owner="ann")] == [first.job_id]
    assert await jobs.list(owner="bob") == []
    with pytest.raises(UnknownJob):
        await jobs.find(first.job_id, owner="bob")
    await world.puts(key="k")
    assert await jobs.list(owner="ann") == []  # replaced by a job that comes from nowhere


@pytest.mark.parametrize("params", [{}, {"to": 3}, {"to": "you", "copies": 10}, {"to": "you", "colour": "red"}])
async def test_params_the_template_does_not_take_put_nothing(world: World, params: dict[str, Any]) -> None:
    await world.queue.templates.create(letters(), owner="ann")

    with pytest.raises(InvalidInput, match="params"):
        await world.queue.jobs.put_from("letters", params, owner="ann")

    assert await world.rows("SELECT id FROM jobs UNION ALL SELECT chain_id FROM job_origins") == []


# INV-001


@pytest.mark.req("INV-001")
async def test_params_can_be_edited_while_a_job_waits(world: World) -> None:
    for job_id in (
        await world.put(lane="lane"),
        await world.put(lane="lane"),
        await world.put(run_at=world.clock.now() + 1_000_000),
    ):
        edited = await world.queue.jobs.edit_params(job_id, {"n": 2})

        assert edited == await world.live(job_id)
        assert value_of(edited.payload) == {"n": 2}


@pytest.mark.req("INV-001")
async def test_edited_params_are_what_the_handler_gets_and_what_is_tried_again(world: World) -> None:
    job_id = await world.put(params={"n": 1}, retry=RetryPolicy(backoff_ms=60_000))
    await world.queue.jobs.edit_params(job_id, {"n": 2})
    hand = await world.hand()
    (claimed,) = await hand.claim()
    assert value_of(claimed.payload) == {"n": 2}
    await hand.fail(claimed)

    waiting = (await world.queue.jobs.chain(job_id))[-1]
    await world.queue.jobs.edit_params(waiting.id, {"n": 3})

    ended, live = await world.queue.jobs.chain(job_id)
    assert [value_of(job.payload) for job in (ended, live)] == [{"n": 2}, {"n": 3}]


@pytest.mark.req("INV-001", error=True)
async def test_params_of_a_job_that_was_handed_out_cannot_be_edited(world: World) -> None:
    held, running = await world.put("held", params={"n": 1}), await world.put("running", pool="graphs", params={"n": 1})
    hand = await world.hand()
    await hand.hold()
    (started,) = await hand.claim(pool=PoolName("graphs"))

    for job_id in (held, running):
        with pytest.raises(JobLocked, match="params"):
            await world.queue.jobs.edit_params(job_id, {"n": 2})
        assert value_of((await world.live(job_id)).payload) == {"n": 1}
    await hand.finish(started)
    with pytest.raises(JobAlreadyFinished):
        await world.queue.jobs.edit_params(running, {"n": 2})
    with pytest.raises(UnknownJob):
        await world.queue.jobs.edit_params(JobId("job_unknown"), {"n": 2})


@pytest.mark.req("INV-001", error=True)
async def test_edited_params_are_held_against_the_schema_the_job_was_put_with(world: World) -> None:
    await world.queue.templates.create(letters(), owner="ann")
    put = await world.queue.jobs.put_from("letters", {"to": "you"}, owner="ann")
    await world.queue.templates.delete("letters", owner="ann")

    with pytest.raises(InvalidInput, match="copies"):
        await world.queue.jobs.edit_params(put.job_id, {"to": "you", "copies": 0}, owner="ann")
    with pytest.raises(UnknownJob):
        await world.queue.jobs.edit_params(put.job_id, {"to": "you"}, owner="bob")
    await world.queue.jobs.edit_params(put.job_id, {"to": "me"}, owner="ann")

    assert value_of((await world.live(put.job_id)).payload) == {"to": "me"}


async def _refused(world: World, sql: str) -> str:
    """What the database itself says, past every check of ours."""
    try:
        await world.rows(sql)
    except Exception as error:  # noqa: BLE001 - each driver has its own
        return str(error)
    return ""


@pytest.mark.req("INV-001", error=True)
async def test_the_database_itself_keeps_the_params_of_a_job_that_was_handed_out(world: World) -> None:
    held = await world.put("held")
    hand = await world.hand()
    await hand.hold()
    other = await world.put("other")
    (claimed,) = await hand.claim()
    assert claimed.id == other

    for job_id in (held, other):
        for change in ("payload = '{}'", "kind = 'other'"):
            said = await _refused(world, f"UPDATE jobs SET {change} WHERE id = '{job_id}'")
            assert "jobs_params_fixed" in said
    # What only the guard keeps from happening, the store says in the domain's words.
    job = await world.live(other)
    with pytest.raises(JobLocked):
        await world.transact(lambda tx: tx.jobs.set_payload(job, job.payload))


@pytest.mark.req("INV-002")
async def test_of_an_ended_job_only_its_end_can_be_corrected(world: World) -> None:
    await world.put()
    hand = await world.hand()
    await hand.finish(*await hand.claim(), ending=COMPLETED)

    await world.rows(
        "UPDATE finished_jobs "
        "SET finished_at = finished_at + 1, status = 'FAILED', exit_code = 3, error = 'no', result = '1'"
    )

    ((status, code),) = await world.rows("SELECT status, exit_code FROM finished_jobs")
    assert (status, code) == ("FAILED", 3)


@pytest.mark.req("INV-002", error=True)
async def test_the_database_refuses_every_other_change_of_an_ended_job(world: World) -> None:
    job_id = await world.put("work", key="k", lane="lane", params={"n": 1})
    hand = await world.hand()
    await hand.finish(*await hand.claim())
    before = await world.rows("SELECT * FROM finished_jobs")
    words = (
        "id",
        "kind",
        "payload",
        "key",
        "lane",
        "pool",
        "resources",
        "retry_of",
        "chain",
        "session",
        "ledger_run",
    )
    numbers = ("priority", "run_at", "created_at", "attempt", "max_attempts", "started_at", "token", "timeout_ms")

    for change in [f"{name} = 'x'" for name in words] + [f"{name} = 7" for name in numbers]:
        assert "finished_jobs_fixed" in await _refused(world, f"UPDATE finished_jobs SET {change}"), change

    assert await world.rows("SELECT * FROM finished_jobs") == before
    ended = await world.queue.jobs.get(job_id)
    assert isinstance(ended, FinishedJob)


@pytest.mark.req("INV-001", error=True)
@pytest.mark.req("INV-002", error=True)
async def test_without_its_guards_the_database_would_change_them(world: World) -> None:
    """The two tests above see the guards, and not something else that refuses."""
    on = " ON {}" if world.store == "postgres" else ""
    job_id = await world.put()
    hand = await world.hand()
    claimed = await hand.claim()

    async def dropped(trigger: str, table: str, change: str) -> str:
        await world.rows(f"DROP TRIGGER {trigger}{on.format(table)}")
        return await _refused(world, f"UPDATE {table} SET {change}")

    try:
        assert await dropped("jobs_params_fixed", "jobs", "payload = '{\"n\":2}'") == ""
        assert value_of((await world.live(job_id)).payload) == {"n": 2}
        await hand.finish(*claimed)
        assert await dropped("finished_jobs_fixed", "finished_jobs", "kind = 'other'") == ""
    finally:
        await _restore_guards(world)
    assert "finished_jobs_fixed" in await _refused(world, "UPDATE finished_jobs SET kind = 'work'")


async def _restore_guards(world: World) -> None:
    """The Postgres database is shared by all tests here."""
    migrations = load_migrations(files(f"duly.storage.{world.store}").joinpath("migrations"))
    text = next(migration.sql for migration in migrations if migration.name == "templates_and_groups")
    for trigger in ("jobs_params_fixed", "finished_jobs_fixed"):
        start = text.index(f"CREATE TRIGGER {trigger} ")
        end = text.index("END;" if world.store == "sqlite" else ";", start) + (4 if world.store == "sqlite" else 1)
        await world.rows(text[start:end])
