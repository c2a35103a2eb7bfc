"""The rows of the table: which work, between whom, and what Duly wants to reach."""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["enqueue", "bulk", "drain", "pickup", "fire", "open"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """`callers` put or `workers` work. `jobs` says how many each contender gets: a slow one fewer, per second all the
    same. A goal is Duly's figure as a multiple of the contender's: floor, then goal. Of a contender that cannot be run
    here, the figure that it has `published` stands.
    """

    work: str
    store: Literal["sqlite", "postgres"]
    kind: Kind
    ours: str = "duly"
    callers: int = 1
    workers: int = 1
    jobs: dict[str, int]
    goals: dict[str, tuple[float, float]] = field(default_factory=dict)
    published: dict[str, float] = field(default_factory=dict)

    @property
    def lower_is_better(self) -> bool:
        return self.kind in ("pickup", "fire")

    @property
    def is_of_schedules(self) -> bool:
        return self.kind in ("fire", "open")

    @property
    def unit(self) -> str:
        return "ms" if self.lower_is_better else "slots/s" if self.is_of_schedules else "jobs/s"

    @property
    def peers(self) -> list[str]:
        return [name for name in (*self.jobs, *self.published) if name != self.ours]


_ENQUEUE_ON_SQLITE = {"duly": 0, "persist-queue": 0, "huey": 0}
_POSTGRES_PEERS = ("pgqueuer", "procrastinate", "graphile-worker", "pg-boss")
_ENQUEUE_ON_POSTGRES = dict.fromkeys(("duly", *_POSTGRES_PEERS), 0)
_BULK_ON_POSTGRES = {"pgqueuer": 60_000, "procrastinate": 20_000, "graphile-worker": 60_000, "pg-boss": 60_000}
_DRAIN_ON_POSTGRES = {"duly": 60_000, **_BULK_ON_POSTGRES, "procrastinate": 1_500}
_DRAIN_GOALS = {"pgqueuer": (1.5, 2.5), "procrastinate": (30.0, 60.0), "graphile-worker": (0.8, 1.2)}

SETS: dict[str, list[Row]] = {
    "queue-sqlite": [
        Row(
            work="enqueue, 1 caller",
            store="sqlite",
            kind="enqueue",
            ours="duly-plain",
            jobs={"duly-plain": 0, "persist-queue": 0, "huey": 0, "apscheduler": 0},
            goals={"persist-queue": (0.9, 1.2)},
        ),
        Row(work="enqueue, 64 callers", store="sqlite", kind="enqueue", callers=64, jobs=_ENQUEUE_ON_SQLITE),
        Row(
            work="drain",
            store="sqlite",
            kind="drain",
            jobs={"duly": 60_000, "huey": 6_000, "persist-queue": 4_000, "apscheduler": 1_000},
            goals={"huey": (8.0, 15.0)},
        ),
        Row(
            work="drain, default profile",
            store="sqlite",
            kind="drain",
            ours="duly-default",
            jobs={"duly-default": 4_000, "huey": 6_000, "persist-queue": 4_000},
        ),
        Row(
            work="pickup",
            store="sqlite",
            kind="pickup",
            jobs={"duly": 40, "persist-queue": 40, "huey": 40, "apscheduler": 40},
        ),
    ],
    "queue-postgres": [
        Row(
            work="enqueue, 1 caller",
            store="postgres",
            kind="enqueue",
            ours="duly-plain",
            jobs=dict.fromkeys(("duly-plain", *_POSTGRES_PEERS), 0),
            goals={"pgqueuer": (1.0, 1.2)},
        ),
        Row(
            work="enqueue, 16 callers",
            store="postgres",
            kind="enqueue",
            callers=16,
            jobs=_ENQUEUE_ON_POSTGRES,
            goals={"pgqueuer": (2.5, 3.5)},
        ),
        Row(
            work="enqueue, bulk",
            store="postgres",
            kind="bulk",
            ours="duly-plain",
            jobs={"duly-plain": 100_000} | _BULK_ON_POSTGRES,
            goals={"pgqueuer": (2.0, 3.0)},
        ),
        Row(
            work="enqueue, bulk, a lane per job",
            store="postgres",
            kind="bulk",
            jobs={"duly": 100_000, "pgqueuer": 60_000},
        ),
        Row(work="drain, 1 worker", store="postgres", kind="drain", jobs=_DRAIN_ON_POSTGRES, goals=_DRAIN_GOALS),
        Row(
            work="drain, 2 workers",
            store="postgres",
            kind="drain",
            workers=2,
            jobs=_DRAIN_ON_POSTGRES,
            goals=_DRAIN_GOALS,
        ),
        Row(
            work="drain, default profile",
            store="postgres",
            kind="drain",
            ours="duly-default",
            jobs={"duly-default": 2_000, "procrastinate": 1_500},
        ),
        Row(
            work="pickup",
            store="postgres",
            kind="pickup",
            jobs=dict.fromkeys(("duly", *_POSTGRES_PEERS), 40),
            goals={"graphile-worker": (0.9, 0.7)},
        ),
    ],
    "schedules-sqlite": [
        Row(
            work="1,000 due at once, p99 to handler entry",
            store="sqlite",
            kind="fire",
            jobs={"duly": 1_000, "apscheduler": 1_000},
            goals={"apscheduler": (0.2, 0.05)},
        ),
        Row(
            work="10,000 due at once, opened",
            store="sqlite",
            kind="open",
            ours="duly-timekeeper",
            jobs={"duly-timekeeper": 10_000},
            published={"n8n, published": 5_100},
            goals={"n8n, published": (2.0, 4.0)},
        ),
    ],
    "schedules-postgres": [
        Row(
            work="1,000 due at once, p99 to handler entry",
            store="postgres",
            kind="fire",
            jobs={"duly": 1_000, "apscheduler": 1_000},
            goals={"apscheduler": (0.2, 0.05)},
        ),
        Row(
            work="10,000 due at once, opened",
            store="postgres",
            kind="open",
            ours="duly-timekeeper",
            jobs={"duly-timekeeper": 10_000},
            published={"n8n, published": 2_500},
            goals={"n8n, published": (2.0, 4.0)},
        ),
    ],
}
