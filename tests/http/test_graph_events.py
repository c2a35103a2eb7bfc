"""What a run's graph told, over HTTP: as a list with a cursor, and in the run's stream, each event once."""

from typing import Any

from duly.bootstrap import Registry
from duly.domain.executions import EventKind
from duly.http.closing import Closing
from duly.http.events import EVENTS_AT_ONCE, Place, RunEvents
from duly.ports.graphs import GraphEvent
from tests.http.site import Site, is_problem
from tests.http.test_events import Event, _stream

TOLD = EVENTS_AT_ONCE * 2 + 20


async def chatty(call: Any, tell: Any) -> dict[str, Any]:
    for number in range(1, TOLD + 1):
        tell(GraphEvent(EventKind.UPDATE, {"n": number}))
    return {}


async def _run(site: Site) -> dict[str, Any]:
    """One that ended, whose graph told a lot."""
    registry = Registry()
    registry.add("python:chatty", chatty)
    account = await site.queue.accounts.create(owner="ann", name="main")
    grant = await site.queue.grants.create(owner="ann", account_id=account.id, scopes=["graph:execute:*"])
    ann = await site.caller("ann")
    given = {"graph_id": "python:chatty", "grant_id": grant.id, "input": {}}
    await site.schedule(ann, id="chatty", target="graph.run", input=given)
    run = (await ann.post("/api/v1/schedules/chatty/trigger")).json()
    handler = site.queue.graph_runs(registry)
    try:
        async with site.working(**{"graph.run": handler}):
            while (run := (await ann.get(f"/api/v1/runs/{run['id']}")).json())["completed_at"] is None:
                await site.queue.storage.clock.sleep(20_000)  # type: ignore[arg-type]
    finally:
        await handler.close()
    assert run["status"] == "success", run
    return dict(run)


async def test_they_are_listed_with_a_cursor_to_their_owner_alone(site: Site) -> None:
    run = await _run(site)
    ann, eve = await site.caller("ann"), await site.caller("eve")
    path = f"/api/v1/runs/{run['id']}/graph-events"
    seen: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await ann.get(path, params={"limit": 50, **cursor})).json()
        seen += page["items"]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}

    assert [(each["seq"], each["kind"], each["data"], each["attempt"]) for each in seen] == [
        (n, "update", {"n": n}, 1) for n in range(1, TOLD + 1)
    ]
    is_problem(await eve.get(path), 404, "unknown_run")
    is_problem(await ann.get(path, params={"cursor": "nonsense"}), 422, "invalid_cursor")


async def test_a_stream_that_is_cut_goes_on_behind_the_last_event_seen(site: Site) -> None:
    run = await _run(site)
    first: list[Event] = []
    async with site.served() as served:
        async with _stream(served, run["id"]) as events:
            async for event in events:
                first.append(event)
                if event.name == "graph" and event.data["seq"] == 70:
                    break
        rest: list[Event] = []
        async with _stream(served, run["id"], last=first[-1].id) as events:
            rest = [event async for event in events]

    told = [event.data["seq"] for event in first + rest if event.name == "graph"]
    assert told == list(range(1, TOLD + 1))
    assert (rest[-1].name, rest[-1].id) == ("end", f"0.0.g{TOLD}.end")


async def test_no_more_is_read_than_a_client_takes(site: Site) -> None:
    """A client that reads slowly holds up nobody: nothing is piled up for it."""
    run = await _run(site)
    reads: list[int] = []
    inner = site.queue.execution_events

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return self if name == "execution_events" else getattr(site.queue, name)

        async def of_run(self, run_id: str, **asked: Any) -> Any:
            reads.append(asked["most"])
            return await inner.of_run(run_id, **asked)

    async def welcome() -> None: ...

    stream = RunEvents(Counting(), run["id"], None, Place(), Closing(), welcome).stream()
    for _ in range(EVENTS_AT_ONCE):
        await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]

    assert reads == [EVENTS_AT_ONCE]
