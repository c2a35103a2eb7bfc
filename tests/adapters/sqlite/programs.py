"""What the test's child processes run: `python -m tests.adapters.sqlite.programs <program> <database> …`."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

from duly.bootstrap import Queue
from duly.domain.errors import Unavailable
from duly.domain.instants import SECOND, Micros
from duly.domain.jobs import NewJob
from duly.settings import Settings
from duly.storage.executor import Executor
from tests.adapters.sqlite.tally import adding, bumping, counter, entries, open_tally, tally_at


async def count(path: str, callers: str, times: str) -> None:
    """Bumps one counter from several callers at once."""

    async def caller() -> None:
        for _ in range(int(times)):
            await tally.transact(bumping("shared"))

    async with tally_at(path) as tally:
        say("ready")
        await asyncio.to_thread(sys.stdin.readline)
        await asyncio.gather(*(caller() for _ in range(int(callers))))


async def acknowledge(path: str, name: str) -> None:
    """Writes until killed, and says each entry once it is acknowledged."""

    async def caller(number: int) -> None:
        for serial in range(1_000_000):
            say(await tally.transact(adding(f"{name}-{number}-{serial}")))

    async with tally_at(path) as tally:
        await asyncio.gather(*(caller(number) for number in range(4)))


async def put_alone(path: str) -> None:
    """Puts one job after another until killed, and says each once it is acknowledged."""
    queue = await Queue.open(Settings(database_url=path))
    while True:
        say((await queue.jobs.put(NewJob(kind="work"))).job_id)


async def migrate(path: str) -> None:
    say("ready")
    sys.stdin.readline()
    async with tally_at(path) as tally:
        await tally.transact(bumping("migrated"))


async def announce(path: str, topic: str) -> None:
    async def work(tx: Executor) -> None:
        await tx.fetch("bump", name="announced")
        tx.wake(topic)

    async with tally_at(path) as tally:
        await tally.transact(work)


async def hear(path: str) -> None:
    """Listens from two event loops' worth of listeners, says what each hears."""
    async with tally_at(path) as tally:
        first, second = tally.wakeups.listen(), tally.wakeups.listen()
        say("ready")
        for listener in (first, second):
            say(",".join(sorted(await listener.wait(Micros(20 * SECOND)))))


async def fork(path: str) -> None:
    """Uses the storage in a forked child, then again in the parent."""
    async with tally_at(path) as tally:
        await tally.transact(adding("before"))
        child = os.fork()
        if child == 0:
            os._exit(use_in_child(path, tally.transact, tally.close))
        _, status = os.waitpid(child, 0)  # noqa: ASYNC222  # the point is to fork a process with a running loop
        await tally.transact(adding("after"))
        say(f"child {os.waitstatus_to_exitcode(status)}", ",".join(await entries(tally)))


def use_in_child(
    path: str,
    transact: Callable[[Callable[[Executor], Awaitable[str]]], Awaitable[str]],
    close: Callable[[], Awaitable[None]],
) -> int:
    try:
        transact(adding("child")).__await__().__next__()
    except Unavailable as error:
        say("refused", str(error))
    else:
        return 1
    try:
        close().__await__().__next__()
    except StopIteration:
        own = open_tally(path, inline=True)
        own._writer._lock.acquire()
        own._writer._lock.release()
        return 0
    return 2


async def hold_lock_in_orphan(path: str) -> None:
    """Dies while it holds the write lock, leaving a forked child alive."""
    async with tally_at(path) as tally:
        tally._writer._lock.acquire()
        born_read, born = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(born, b"!")  # what Python does after a fork is done by now
            sys.stdin.readline()
            os._exit(0)
        os.read(born_read, 1)
        say("orphan")
        os.kill(os.getpid(), 9)


async def fail_fsync(path: str) -> None:
    """Run under strace, which makes a later fdatasync fail; says what happened to each write."""
    async with tally_at(path) as tally:
        for number in range(12):
            try:
                await tally.transact(adding(f"n{number:02}"))
                say("ok", f"n{number:02}")
            except Unavailable as error:
                say("refused", str(error))
        say("count", str(await counter(tally, "none")), ",".join(await entries(tally)))


def say(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    program = globals()[sys.argv[1]]
    asyncio.run(program(*sys.argv[2:]))
