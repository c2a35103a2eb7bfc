"""`duly dev`: the queue at work in one process, to watch."""

import asyncio
import signal
import sys
from contextlib import suppress

from duly.bootstrap import Queue, Settings, moment
from duly.domain.cadence import every
from duly.domain.ids import JobKey, Lane, PoolName
from duly.domain.instants import Micros, instant_of
from duly.domain.jobs import NewJob
from duly.domain.payloads import value_of
from duly.domain.pools import Pool
from duly.domain.retries import RetryPolicy
from duly.domain.sessions import ClaimedJob

_EVERY = every("2s")
_POOL = Pool(name=PoolName("demo"), slots=2)


async def dev(settings: Settings) -> None:
    """Puts a job at every fire of an interval and runs it, until interrupted."""
    queue = await Queue.open(settings)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        await queue.pools.define(_POOL)
        _say(f"database: {settings.database_shown}; {_EVERY.explain()}; stop with Ctrl-C")
        await _demonstrate(queue, stop)
    finally:
        await queue.close()
    _say("stopped; what is queued is still there")


async def _demonstrate(queue: Queue, stop: asyncio.Event) -> None:
    worker = queue.worker(handlers={"greet": _greet, "stumble": _stumble}, pools={_POOL.name: 2}, name="duly dev")
    working = asyncio.create_task(worker.run())
    putting = asyncio.create_task(_put_at_every_fire(queue))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({working, putting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    putting.cancel()
    stopping.cancel()
    worker.stop()
    with suppress(asyncio.CancelledError):
        await putting
    await working


async def _put_at_every_fire(queue: Queue) -> None:
    clock = queue.storage.clock
    for number, fire in enumerate(_EVERY.after(moment())):
        await clock.sleep(Micros(max(instant_of(fire, field="fire") - clock.now(), 0)))
        # The fire is the key: put twice, it is one job.
        job = NewJob(
            kind="stumble" if number % 5 == 4 else "greet",
            params={"fire": fire.isoformat()},
            key=JobKey(f"demo:{fire.isoformat()}"),
            lane=Lane("demo"),
            pool=_POOL.name,
            retry=RetryPolicy(backoff_ms=500),
        )
        put = await queue.jobs.put(job)
        _say(f"put {put.job_id}")


def _greet(job: ClaimedJob) -> object:
    _say(f"ran {job.id}, due {value_of(job.payload)['fire']}")
    return None


def _stumble(job: ClaimedJob) -> object:
    if job.attempt < job.max_attempts:
        _say(f"attempt {job.attempt} of {job.chain} fails, to be tried again")
        raise RuntimeError("the demo stumbles on purpose")
    return _greet(job)


def _say(text: str) -> None:
    sys.stdout.write(f"{moment():%H:%M:%S} {text}\n")
    sys.stdout.flush()
