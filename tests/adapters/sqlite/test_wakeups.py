"""Hints reach every listener of every process; a lost one is made up for."""

import asyncio
import socket
import threading
from pathlib import Path

import pytest

from duly.domain.instants import SECOND, Micros
from duly.storage.executor import Executor
from duly.system.clock import SystemClock
from tests.adapters.sqlite import children
from tests.adapters.sqlite.tally import adding, bumping, tally_at, until

pytestmark = pytest.mark.req("DEC-002")

LONG = Micros(20 * SECOND)
AT_ONCE = Micros(0)


def test_topics_are_heard_after_the_commit_and_only_of_works_that_committed(tmp_path: Path) -> None:
    async def wakes(tx: Executor) -> None:
        tx.wake("good")
        tx.wake("good")

    async def fails(tx: Executor) -> None:
        tx.wake("bad")
        raise LookupError

    async def scenario() -> None:
        for path in (":memory:", tmp_path / "t.db"):
            async with tally_at(path) as tally:
                listener = tally.wakeups.listen()
                await asyncio.gather(tally.transact(wakes), tally.transact(fails), return_exceptions=True)

                assert await listener.wait(LONG) == {"good"}
                assert await listener.wait(AT_ONCE) == frozenset()
                listener.close()
                tally.wakeups.announce(frozenset({"unheard"}))
                assert await listener.wait(AT_ONCE) == frozenset()

    asyncio.run(scenario())


class Endless(SystemClock):
    """Whoever sleeps by it is woken by a hint or never."""

    async def sleep(self, duration: Micros) -> None:
        await asyncio.get_running_loop().create_future()


def test_a_sleeping_listener_is_woken_from_any_thread(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db", clock=Endless()) as tally, asyncio.timeout(20):
            listener = tally.wakeups.listen()
            waiting = asyncio.ensure_future(listener.wait(LONG))
            await until(lambda: listener._waiter is not None)
            thread = threading.Thread(target=tally.wakeups.announce, args=(frozenset({"a", "b"}),))
            thread.start()

            assert await waiting == {"a", "b"}
            thread.join()
            listener.close()

    asyncio.run(scenario())


def test_an_early_hint_does_not_shorten_the_next_wait(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db", clock=Endless()) as tally:
            listener = tally.wakeups.listen()
            for _ in range(2):
                waiting = asyncio.ensure_future(listener.wait(LONG))
                await until(lambda: listener._waiter is not None)
                tally.wakeups.announce(frozenset({"topic"}))
                assert await waiting == {"topic"}

            waiting = asyncio.ensure_future(listener.wait(LONG))
            for _ in range(200):
                await asyncio.sleep(0)
            assert not waiting.done()
            waiting.cancel()
            listener.close()

    asyncio.run(scenario())


def test_a_listener_of_another_event_loop_hears_too(tmp_path: Path) -> None:
    listening = threading.Event()
    heard: list[frozenset[str]] = []

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:

            async def elsewhere() -> None:
                listener = tally.wakeups.listen()
                listening.set()
                heard.append(await listener.wait(LONG))

            thread = threading.Thread(target=lambda: asyncio.run(elsewhere()))
            thread.start()
            await asyncio.to_thread(listening.wait, 20)
            tally.wakeups.announce(frozenset({"topic"}))
            await asyncio.to_thread(thread.join)
            tally.wakeups.announce(frozenset({"to a loop that has ended"}))

    asyncio.run(scenario())
    assert heard == [{"topic"}]


@pytest.mark.parametrize("depth", [0, 12], ids=["short path", "path longer than a socket address"])
def test_processes_wake_each_other(tmp_path: Path, depth: int) -> None:
    folder = tmp_path.joinpath(*["a-rather-long-folder"] * depth)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "t.db"

    async def scenario() -> None:
        async with tally_at(path) as tally:
            child = children.start("hear", path)
            assert await asyncio.to_thread(children.line, child) == "ready"
            tally.wakeups.announce(frozenset({"from parent"}))
            assert await asyncio.to_thread(children.finish, child) == "from parent\nfrom parent\n"

            listener = tally.wakeups.listen()
            back = children.start("announce", path, "from child")
            assert await listener.wait(LONG) == {"from child"}
            await asyncio.to_thread(children.finish, back)
            listener.close()
        assert list((folder / "t.db-wake").iterdir()) == []

    asyncio.run(scenario())


def test_a_change_whose_hint_was_lost_is_noticed_within_the_backstop(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "t.db"
        async with tally_at(path) as tally, tally_at(path) as other:
            listener = tally.wakeups.listen()
            await tally.transact(bumping("own"))
            assert await listener.wait(Micros(SECOND // 100)) == frozenset()

            await other.transact(adding("silently"))
            assert await listener.wait(LONG) == {"*"}
            assert await listener.wait(Micros(SECOND // 100)) == frozenset()
            listener.close()

    asyncio.run(scenario())


def test_a_dead_processs_socket_is_taken_away_and_announcing_never_raises(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            folder = tmp_path / "t.db-wake"
            folder.mkdir(mode=0o700)
            dead = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            dead.bind(str(folder / "1-1.sock"))
            dead.close()
            deaf = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            deaf.bind(str(folder / "2-2.sock"))
            for number in range(2_000):
                tally.wakeups.announce(frozenset({f"topic {number}"}))

            assert [file.name for file in folder.iterdir()] == ["2-2.sock"]
            deaf.close()
            tally.wakeups.announce(frozenset({"topic"}))
            assert list(folder.iterdir()) == []
            folder.rmdir()
            tally.wakeups.announce(frozenset({"topic"}))

    asyncio.run(scenario())


def test_too_many_topics_become_anything_and_so_does_nonsense(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "t.db"
        async with tally_at(path) as tally, tally_at(path) as other:
            listener = tally.wakeups.listen()
            other.wakeups.announce(frozenset(f"topic-{n}" for n in range(1_000)))
            assert await listener.wait(LONG) == {"*"}

            (own,) = (tmp_path / "t.db-wake").iterdir()
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.sendto(b"\xff nonsense", str(own))
            assert await listener.wait(LONG) == {"*"}
            listener.close()

    asyncio.run(scenario())


def test_a_folder_of_someone_else_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "t.db-wake").symlink_to(tmp_path / "elsewhere")

    async def scenario() -> None:
        async with tally_at(tmp_path / "t.db") as tally:
            listener = tally.wakeups.listen()
            assert list((tmp_path / "elsewhere").iterdir()) == []
            tally.wakeups.announce(frozenset({"here"}))
            assert await listener.wait(LONG) == {"here"}
            listener.close()

    asyncio.run(scenario())
