"""APScheduler 3 on SQLite: jobs due at once, run by its thread pool."""

import time
from typing import Any, ClassVar

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy import create_engine, event

from bench.contender import Contender, Duty, Pace, enqueue_in_threads, fill_in_turn, ping_in_turn
from bench.tally import Tally


class ApschedulerJobs(Contender):
    """Removes a job when it hands it to a thread: a process that dies loses what it runs."""

    packages = ("apscheduler", "sqlalchemy")
    settings = "SQLAlchemyJobStore, WAL, synchronous=FULL, misfire_grace_time=None; pickup within one process"
    unfinished = "SELECT EXISTS (SELECT 1 FROM apscheduler_jobs)"
    # Jobs name their function by import path, so what it does is kept here.
    duty: ClassVar[Duty | None] = None

    def set_up(self, place: str) -> None:
        _scheduler(place).start(paused=True)

    def enqueue(self, place: str, callers: int, seconds: float) -> Pace:
        return enqueue_in_threads(_paused(place), callers, seconds)

    def fill(self, place: str, jobs: int) -> Pace:
        return fill_in_turn(_paused(place), jobs)

    def work(self, place: str, duty: Duty) -> None:
        ApschedulerJobs.duty = duty
        _scheduler(place).start()
        time.sleep(3_600)

    def ping(self, place: str, tally: Tally, count: int) -> None:
        ApschedulerJobs.duty = Duty(tally, 0, stamping=True)
        scheduler = _scheduler(place)
        scheduler.start()
        ping_in_turn(lambda n: scheduler.add_job(noop, args=(n,)), tally, count)


def noop(n: int) -> None:
    if ApschedulerJobs.duty is not None:
        ApschedulerJobs.duty.enter(n)


def _paused(place: str) -> Any:
    scheduler = _scheduler(place)
    scheduler.start(paused=True)
    return lambda n: scheduler.add_job(noop, args=(n,))


def _scheduler(place: str) -> Any:
    engine = create_engine(f"sqlite:///{place}")

    @event.listens_for(engine, "connect")
    def durable(connection: Any, _record: Any) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    store = SQLAlchemyJobStore(engine=engine)
    return BackgroundScheduler(jobstores={"default": store}, job_defaults={"misfire_grace_time": None}, timezone="UTC")
