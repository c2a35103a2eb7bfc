"""Templates, groups and retries from Python: declared, put, waited for, on both stores."""

import sys

import pytest

from duly import Command, Duly, InvalidInput, JobFailed, Settings, every
from duly.domain.groups import GroupRunning, GroupStatus
from duly.domain.jobs import JobAlreadyFinished
from duly.domain.templates import TemplateExists

SCHEMA = {"properties": {"total": {"type": "integer"}}, "required": ["total"]}


def _declared(app: Duly) -> list[int]:
    reported: list[int] = []

    @app.job(retries=0, priority=3)
    async def count() -> dict[str, int]:
        return {"sold": 3}

    @app.job(retries=0)
    async def report(total: int) -> int:
        if total < 0:
            raise ValueError("less than nothing")
        reported.append(total)
        return total

    app.template("monthly", report, params={"total": 1}, schema=SCHEMA, schedule=every("1h"), input={"total": 7})
    return reported


async def test_a_declared_template_is_made_put_from_and_changed(app: Duly, database_url: str) -> None:
    reported = _declared(app)
    async with app.running():
        put = await app.put_from("monthly", {"total": 5}, priority=2)
        assert await app.result(put) == 5
        run = await app.trigger("monthly")
        assert await app.result(run) == 7
        with pytest.raises(InvalidInput, match=r"params\.total"):
            await app.put_from("monthly", {"total": "x"})
        made = await app.queue.templates.get("monthly", owner="local")
        assert (made.version, made.asked.kind, made.asked.retry.max_attempts) == (1, "report", 1)
    assert reported == [5, 7]

    again = Duly(settings=Settings(database_url=database_url))
    _declared(again)
    async with again:
        assert (await again.queue.templates.get("monthly", owner="local")).version == 1
    changed = Duly(settings=Settings(database_url=database_url))
    changed.template("monthly", "report", params={"total": 2})
    async with changed:
        assert (await changed.queue.templates.get("monthly", owner="local")).version == 2
    stranger = Duly(settings=Settings(database_url=database_url), owner="eve")
    stranger.template("monthly", "report")
    with pytest.raises(TemplateExists):
        await stranger.open()


async def test_a_group_is_made_of_jobs_and_templates_and_waited_for(app: Duly) -> None:
    reported = _declared(app)
    async with app.running():
        total = {"total": {"from": 0, "path": "result.sold"}}
        group = await app.group(["count", ("report", total), ("monthly", total)], sequential=True, name="close")
        ended = await app.group_ended(group)
        assert (ended.status, reported) == (GroupStatus.COMPLETED, [3, 3])
        partial = await app.group([("report", {"total": -1}), ("report", {"total": 4})])
        assert (await app.group_ended(partial.id)).status is GroupStatus.PARTIAL
        with pytest.raises(InvalidInput, match="no job of this program"):
            await app.group(["nothing"])


async def test_what_failed_is_tried_again_and_what_waits_is_edited(app: Duly) -> None:
    _declared(app)
    async with app:
        put = await app.put("report", {"total": -1})
        group = await app.group([("report", {"total": 1})])
        with pytest.raises(GroupRunning):
            await app.group_ended(group, timeout=0)
        async with app.running():
            with pytest.raises(JobFailed):
                await app.result(put)
        again = await app.retry(put)
        edited = await app.edit(again, {"total": 6})
        assert edited.payload == '{"total":6}'
        async with app.running():
            assert await app.result(again) == 6
        with pytest.raises(JobAlreadyFinished):
            await app.edit(again, {"total": 7})


def test_code_without_a_loop_has_all_of_it(app: Duly) -> None:
    _declared(app)
    with app.sync as sync:
        put = sync.put_from("monthly")
        assert sync.edit(put, {"total": 9}).payload == '{"total":9}'
        group = sync.group(["count"])
        with pytest.raises(GroupRunning):
            sync.group_ended(group, timeout=0)


async def test_a_commands_last_line_is_its_result_where_the_template_says_so(app: Duly) -> None:
    code = "import json, sys; print('busy'); print(json.dumps({'got': json.load(sys.stdin)}))"
    app.template("echo", Command(argv=(sys.executable, "-c", code), result="json"), params={"a": 1}, retries=0)
    app.template("mute", Command(argv=(sys.executable, "-c", "print('no json')"), result="json"), retries=0)
    app.template("plain", Command(argv=(sys.executable, "-c", "print('{}')")), retries=0)
    app.run_commands()
    async with app.running():
        assert await app.result(await app.put_from("echo", {"b": 2})) == {"got": {"a": 1, "b": 2}}
        assert await app.result(await app.put_from("plain")) is None
        with pytest.raises(JobFailed, match="no JSON object"):
            await app.result(await app.put_from("mute"))


@pytest.mark.parametrize(
    ("job", "options", "said"),
    [
        ("a", {"shape": 1}, "no option of a template"),
        ("a", {"input": {}}, "says something of a schedule"),
        ("a", {"schedule": "daily"}, "is a str"),
        ("duly.x", {}, "Duly's own"),
    ],
)
def test_a_template_that_cannot_be_meant_is_refused_where_it_is_declared(
    job: str, options: dict[str, object], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        Duly("never.db").template("t", job, **options)  # type: ignore[arg-type]
