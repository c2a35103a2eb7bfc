"""A program that has itself told of what its jobs left, and whatever keeps time delivers it."""

import pytest

from duly import Duly, InvalidInput, Settings
from tests.receiver import receiving


@pytest.mark.req("DEC-009")
async def test_a_running_program_delivers_what_its_jobs_left(database_url: str) -> None:
    app = Duly(settings=Settings(database_url=database_url, webhook_loopback="allowed"))

    @app.job
    async def add(n: int) -> int:
        return n + 1

    async with receiving() as receiver, app.running():
        endpoint, secret = await app.add_webhook(receiver.url, events=["job.completed"])
        await app.put(add, {"n": 1})
        await receiver.has_received.wait()

    (got,) = receiver.received
    assert (got.told["type"], got.told["data"]["result"]) == ("job.completed", 2)
    assert (endpoint.events, secret[:6]) == (("job.completed",), "whsec_")


@pytest.mark.req("DEC-009", error=True)
def test_code_without_an_event_loop_adds_one_and_is_refused_an_unsafe_one(app: Duly) -> None:
    with app.sync as sync:
        endpoint, _ = sync.add_webhook("https://example.com/hook")
        assert endpoint.everything
        with pytest.raises(InvalidInput):
            sync.add_webhook("http://127.0.0.1/")
