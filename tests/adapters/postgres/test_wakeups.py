"""Hints between processes: few, quick, and when some may be lost, everyone looks."""

import asyncio
import json
import sys
import threading

from duly.domain.instants import SECOND, Micros
from duly.storage.postgres.executor import PostgresExecutor
from duly.storage.postgres.wakeups import PostgresWakeups, packed, unpacked
from tests.adapters.postgres.notes import connected, opened, until
from tests.tcp_proxy import TcpProxy

LONG = Micros(10 * SECOND)
NOT_AT_ALL = Micros(0)

_LISTENING = (
    "SELECT pid FROM pg_stat_activity"
    " WHERE application_name = 'duly' AND datname = current_database() AND query ILIKE 'listen%'"
)


def test_another_store_hears_what_was_announced_and_the_announcer_hears_it_once(
    fresh_postgres_url: str,
) -> None:
    async def scenario() -> None:
        async with opened(fresh_postgres_url) as here, opened(fresh_postgres_url) as there:
            near, far = here.wakeups.listen(), there.wakeups.listen()
            here.wakeups.announce(frozenset({"a"}))
            assert await near.wait(NOT_AT_ALL) == {"a"}
            assert await far.wait(LONG) == {"a"}
            # The server keeps the order: an echo of `a` would have come before `b`.
            there.wakeups.announce(frozenset({"b"}))
            assert await near.wait(LONG) == {"b"}

    asyncio.run(scenario())


def test_a_wait_without_hints_ends_empty_and_a_closed_listener_hears_nothing(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with opened(fresh_postgres_url) as database:
            listener = database.wakeups.listen()
            assert await listener.wait(Micros(1_000)) == frozenset()
            listener.close()
            listener.close()
            database.wakeups.announce(frozenset({"a"}))
            assert await listener.wait(NOT_AT_ALL) == frozenset()

    asyncio.run(scenario())


def test_topics_are_announced_after_the_commit_and_never_before(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with opened(fresh_postgres_url) as database:
            listener = database.wakeups.listen()

            async def work(executor: PostgresExecutor) -> None:
                executor.wake("a")
                await executor.fetch("put", id="a", body="")
                executor.wake("b")
                assert await listener.wait(NOT_AT_ALL) == frozenset()

            await database.transact(work)
            assert await listener.wait(NOT_AT_ALL) == {"a", "b"}

    asyncio.run(scenario())


def test_a_thousand_commits_make_few_notifications_and_lose_no_topic(fresh_postgres_url: str) -> None:
    payloads: list[str] = []
    commits, callers = 1_000, 8

    async def scenario() -> float:
        async with opened(fresh_postgres_url) as database, connected(fresh_postgres_url) as witness:
            await witness.add_listener("duly", lambda _c, _p, _ch, payload: payloads.append(payload))

            async def caller(number: int) -> None:
                for n in range(number, commits, callers):

                    async def work(executor: PostgresExecutor, n: int = n) -> None:
                        await executor.fetch("put", id=f"{n}", body="")
                        executor.wake(f"topic {n % 50}")

                    await database.transact(work, single=True)

            started = asyncio.get_running_loop().time()
            await asyncio.gather(*map(caller, range(callers)))
            took = asyncio.get_running_loop().time() - started

            async def all_sent() -> bool:
                return not database.wakeups._unsent

            await until(all_sent)
            await witness.execute("SELECT 1")
            return took

    took = asyncio.run(scenario())
    assert frozenset().union(*map(unpacked, payloads)) == {f"topic {n}" for n in range(50)}
    assert len(payloads) <= took / 0.005 + 2
    assert len(payloads) < commits / 2


def test_when_the_listening_connection_is_lost_everyone_looks(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with (
            opened(fresh_postgres_url) as here,
            connected(fresh_postgres_url) as witness,
        ):
            listener = here.wakeups.listen()
            pid = await witness.fetchval(_LISTENING)
            await witness.execute("SELECT pg_terminate_backend($1)", pid)
            assert await listener.wait(LONG) == {"*"}
            await witness.execute("""NOTIFY duly, '["again"]'""")
            assert await listener.wait(LONG) == {"again"}

    asyncio.run(scenario())


def test_what_is_announced_while_the_server_is_away_is_sent_when_it_is_back(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with (
            TcpProxy(fresh_postgres_url) as proxy,
            opened(fresh_postgres_url, listen_url=proxy.url) as here,
            opened(fresh_postgres_url) as there,
        ):
            far = there.wakeups.listen()
            proxy.plan(lambda _message: "before")
            proxy.cut_all()
            here.wakeups.announce(frozenset({"a"}))

            async def tried() -> bool:
                return proxy.cuts >= 2

            await until(tried)
            assert await far.wait(NOT_AT_ALL) == frozenset()
            proxy.plan(lambda _message: None)
            assert await far.wait(LONG) == {"a"}

    asyncio.run(scenario())


def test_announce_works_from_other_threads_and_is_silent_after_the_end(fresh_postgres_url: str) -> None:
    async def scenario() -> PostgresWakeups:
        async with opened(fresh_postgres_url) as database:
            listener = database.wakeups.listen()
            thread = threading.Thread(target=database.wakeups.announce, args=(frozenset({"a"}),))
            thread.start()
            assert await listener.wait(LONG) == {"a"}
            thread.join()
        database.wakeups.announce(frozenset({"closed"}))
        assert await listener.wait(NOT_AT_ALL) == frozenset()
        return database.wakeups

    wakeups = asyncio.run(scenario())
    wakeups.announce(frozenset({"no loop"}))


def test_what_was_announced_is_sent_before_closing(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with opened(fresh_postgres_url) as there:
            far = there.wakeups.listen()
            async with opened(fresh_postgres_url) as here:
                here.wakeups.announce(frozenset({"a"}))
                here.wakeups.announce(frozenset({"b"}))
            heard: set[str] = set()
            while heard < {"a", "b"}:
                topics = await far.wait(LONG)
                assert topics, "a hint was lost"
                heard |= topics

    asyncio.run(scenario())


def test_a_listener_without_a_start_hears_everything_first(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with opened(fresh_postgres_url, listening=False) as database:
            assert await database.wakeups.listen().wait(LONG) == {"*"}

    asyncio.run(scenario())


def test_too_many_topics_for_one_payload_become_everything() -> None:
    many = frozenset(f"pool:{n:020}" for n in range(1_000))
    assert unpacked(packed(many)) == {"*"}
    assert len(packed(many).encode()) < 8_000
    assert unpacked(packed({"ü" * 500, "a\nb", "c\x00"})) == {"ü" * 500, "a\nb", "c\x00"}


def test_a_payload_of_somebody_else_wakes_everyone() -> None:
    assert unpacked("") == unpacked("{}") == unpacked("[1]") == unpacked("not json") == {"*"}
    assert unpacked(json.dumps(["a"])) == {"a"}


_OTHER_PROCESS = """
import asyncio, sys
from duly.domain.instants import Micros
from duly.storage.postgres.database import PostgresDatabase

async def main():
    database = await PostgresDatabase.open(sys.argv[1], statements={}, migrations=[])
    listener = database.wakeups.listen()
    print("listening", flush=True)
    print(*await listener.wait(Micros(10_000_000)), flush=True)
    database.wakeups.announce(frozenset({"answer"}))
    await database.close()

asyncio.run(main())
"""


def test_hints_cross_processes(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        other = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _OTHER_PROCESS, fresh_postgres_url, stdout=asyncio.subprocess.PIPE
        )
        assert other.stdout is not None
        async with opened(fresh_postgres_url, migrations=[]) as database:
            listener = database.wakeups.listen()
            assert await other.stdout.readline() == b"listening\n"
            database.wakeups.announce(frozenset({"question"}))
            assert await other.stdout.readline() == b"question\n"
            heard = await listener.wait(NOT_AT_ALL)
            if "answer" not in heard:
                heard |= await listener.wait(LONG)
            assert heard == {"question", "answer"}
            assert await other.wait() == 0

    asyncio.run(scenario())
