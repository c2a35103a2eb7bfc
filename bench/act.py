"""One act of one contender in a process of its own: `python -m bench.act CONTENDER ACT ARGUMENTS-AS-JSON`."""

import importlib
import json
import sys
from dataclasses import asdict
from typing import Any, cast

from bench.contender import Contender, Duty, Scheduler
from bench.tally import Tally

CONTENDERS = {
    "duly": "bench.contenders.duly_queue:DulyQueue",
    "duly-default": "bench.contenders.duly_queue:DulyByDefault",
    "duly-plain": "bench.contenders.duly_queue:DulyPlain",
    "huey": "bench.contenders.huey_queue:HueyQueue",
    "persist-queue": "bench.contenders.persist_queue:PersistQueue",
    "apscheduler": "bench.contenders.apscheduler_jobs:ApschedulerJobs",
    "pgqueuer": "bench.contenders.pgqueuer_queue:PgqueuerQueue",
    "procrastinate": "bench.contenders.procrastinate_queue:ProcrastinateQueue",
}
SCHEDULERS = {
    "duly": "bench.contenders.duly_schedules:DulySchedules",
    "duly-timekeeper": "bench.contenders.duly_schedules:DulyTimekeeper",
    "apscheduler": "bench.contenders.apscheduler_schedules:ApschedulerSchedules",
}


def contender(name: str) -> Contender:
    return cast("Contender", _made(CONTENDERS[name]))


def scheduler(name: str) -> Scheduler:
    return cast("Scheduler", _made(SCHEDULERS[name]))


def _made(where: str) -> object:
    """Imported by name, so that no contender pays for another's imports."""
    module, _, attribute = where.partition(":")
    return getattr(importlib.import_module(module), attribute)()


def act(name: str, what: str, given: dict[str, Any]) -> dict[str, Any] | None:
    place = given["place"]
    match what:
        case "plan":
            scheduler(name).plan(place, [second for second, count in given["due_at"] for _ in range(count)])
        case "keep":
            scheduler(name).keep(place, Duty(Tally(given["tally"]), 0, stamping=True))
        case _:
            return _act_in_queue(contender(name), what, place, given)
    return None


def _act_in_queue(who: Contender, what: str, place: str, given: dict[str, Any]) -> dict[str, Any] | None:
    match what:
        case "set_up":
            who.set_up(place)
        case "enqueue":
            return asdict(who.enqueue(place, given["callers"], given["seconds"]))
        case "fill":
            return asdict(who.fill(place, given["jobs"]))
        case "work":
            who.work(place, Duty(Tally(given["tally"]), given["worker"], stamping=given["stamping"]))
        case "ping":
            who.ping(place, Tally(given["tally"]), given["count"])
        case _:
            raise ValueError(what)
    return None


if __name__ == "__main__":
    print(json.dumps(act(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))))
