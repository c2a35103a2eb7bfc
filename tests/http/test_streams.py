"""A token follows a bounded number of runs at once, and its places come back however its streams end."""

from contextlib import AsyncExitStack

import httpx2

from duly.domain.instants import Micros
from duly.domain.tokens import Role
from duly.http.streams import Streams
from tests.http.site import Site, is_problem


async def _token(site: Site) -> dict[str, str]:
    _, secret = await site.queue.tokens.create(owner="ann", role=Role.ADMIN)
    return {"Authorization": f"Bearer {secret}"}


async def test_one_stream_too_many_is_refused_until_another_ends(site: Site) -> None:
    site.api.state.streams = Streams(2)
    await site.schedule(id="a")
    run = (await site.local.post("/api/v1/schedules/a/trigger")).json()
    one, another = await _token(site), await _token(site)

    async with site.served() as served, httpx2.AsyncClient(timeout=30) as client:
        url = f"{served.url}/api/v1/runs/{run['id']}/events"
        async with AsyncExitStack() as stack:
            for _ in range(2):
                answer = await stack.enter_async_context(client.stream("GET", url, headers=one))
                assert answer.status_code == 200
            refused = await client.get(url, headers=one)
            problem = is_problem(refused, 429, "too_many_streams")
            assert "2 streams" in problem["detail"]
            assert "DULY_STREAMS_PER_TOKEN" in problem["detail"]
            assert int(refused.headers["retry-after"]) >= 1
            # Others have places of their own, and what is not there takes none.
            for headers in (another, {}):
                other = await stack.enter_async_context(client.stream("GET", url, headers=headers))
                assert other.status_code == 200
            for _ in range(3):
                is_problem(await client.get(f"{served.url}/api/v1/runs/run_none/events", headers=another), 404)
        while site.api.state.streams._open.total():
            await site.queue.storage.clock.sleep(Micros(10_000))
        async with client.stream("GET", url, headers=one) as again:
            assert again.status_code == 200
            assert site.api.state.streams._open.total() == 1
