"""APScheduler 3: cron jobs in a SQLAlchemy job store, run by its thread pool."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from sqlalchemy import create_engine, event

from bench.contender import Duty, Scheduler


class ApschedulerSchedules(Scheduler):
    """Writes a job's next time after handing the job to a thread: a process that dies in between runs it twice."""

    packages = ("apscheduler", "sqlalchemy", "psycopg")
    settings = (
        "daily CronTrigger, SQLAlchemyJobStore (SQLite: WAL, synchronous=FULL), ThreadPoolExecutor(20) as in its user "
        "guide, misfire_grace_time=None, coalesce=False"
    )
    # Jobs name their function by import path, so what it does is kept here.
    duty: ClassVar[Duty | None] = None

    def plan(self, place: str, due_at: Sequence[int]) -> None:
        scheduler = _scheduler(place)
        scheduler.start(paused=True)
        for number, second in enumerate(due_at):
            due = datetime.fromtimestamp(second, UTC)
            trigger = CronTrigger(hour=due.hour, minute=due.minute, second=due.second, timezone=UTC)
            scheduler.add_job(stamp, trigger, args=(number,))

    def keep(self, place: str, duty: Duty) -> None:
        ApschedulerSchedules.duty = duty
        _scheduler(place).start()
        time.sleep(3_600)


def stamp(number: int) -> None:
    if ApschedulerSchedules.duty is not None:
        ApschedulerSchedules.duty.enter(number)


def _scheduler(place: str) -> Any:
    return BackgroundScheduler(
        jobstores={"default": SQLAlchemyJobStore(engine=_engine(place))},
        executors={"default": ThreadPoolExecutor(20)},
        job_defaults={"misfire_grace_time": None, "coalesce": False},
        timezone="UTC",
    )


def _engine(place: str) -> Any:
    if "://" in place:
        return create_engine(place.replace("postgresql://", "postgresql+psycopg://", 1))
    engine = create_engine(f"sqlite:///{place}")

    @event.listens_for(engine, "connect")
    def durable(connection: Any, _record: Any) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    return engine
