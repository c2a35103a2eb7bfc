"""The jobs, schedules and pools that a program has declared so far, each under a name of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from duly.app.declared import DeclaredJob, DeclaredSchedule, name_for
from duly.app.graphs import POOL, DeclaredGraph
from duly.bootstrap import Handler, Registry
from duly.domain.errors import InvalidInput
from duly.domain.ids import PoolName
from duly.domain.pools import Pool
from duly.domain.templates import NewTemplate


@dataclass(slots=True)
class Register:
    jobs: dict[str, DeclaredJob] = field(default_factory=dict)
    schedules: dict[str, DeclaredSchedule] = field(default_factory=dict)
    pools: dict[PoolName, Pool] = field(default_factory=dict)
    graphs: dict[str, DeclaredGraph] = field(default_factory=dict)
    templates: dict[str, NewTemplate] = field(default_factory=dict)
    found_at: Registry = field(default_factory=Registry)
    workflows: list[Mapping[str, Any]] = field(default_factory=list)
    _functions: dict[Callable[..., Any], str] = field(default_factory=dict)

    def add(
        self, job: DeclaredJob, schedule: DeclaredSchedule | None, function: Callable[..., Any] | None = None
    ) -> None:
        if job.name in self.jobs:
            raise InvalidInput("name", f"there is a job named {job.name!r} already", fix="give one of them name='…'")
        if schedule is not None and schedule.id in self.schedules:
            raise InvalidInput("schedule_id", f"two schedules are named {schedule.id!r}", fix="give one another id")
        self.jobs[job.name] = job
        if schedule is not None:
            self.schedules[schedule.id] = schedule
        if function is not None:
            self._functions.setdefault(function, job.name)

    def add_graph(self, graph: DeclaredGraph, schedule: DeclaredSchedule | None) -> None:
        if schedule is not None:
            if schedule.id in self.schedules:
                raise InvalidInput("schedule_id", f"two schedules are named {schedule.id!r}", fix="give one another id")
            self.schedules[schedule.id] = schedule
        self.graphs[graph.id] = graph

    def add_template(self, template: NewTemplate, schedule: DeclaredSchedule | None) -> None:
        if template.name in self.templates:
            raise InvalidInput("name", f"two templates are named {template.name!r}", fix="give one another name")
        if schedule is not None:
            if schedule.id in self.schedules:
                raise InvalidInput("schedule_id", f"two schedules are named {schedule.id!r}", fix="give one another id")
            self.schedules[schedule.id] = schedule
        self.templates[template.name] = template

    @property
    def runs_graphs(self) -> bool:
        return bool(self.graphs or self.workflows or self.found_at.actions)

    def add_pool(self, pool: Pool) -> None:
        if pool.name in self.pools:
            raise InvalidInput("pool", f"{pool.name!r} is declared twice", fix="give it one limit")
        self.pools[pool.name] = pool

    def job(self, named: str | Callable[..., Any]) -> DeclaredJob:
        """By its name, or by the function that was declared under it."""
        name = named if isinstance(named, str) else self._functions.get(named)
        if name is None:
            raise InvalidInput("job", f"{name_for(named)} is no job of this program", fix="decorate it with @app.job")  # type: ignore[arg-type]
        if name not in self.jobs:
            known = ", ".join(sorted(self.jobs)) or "none"
            raise InvalidInput("job", f"{name[:60]!r} is no job of this program", fix=f"use one of: {known}")
        return self.jobs[name]

    def schedule_id(self, named: str | Callable[..., Any]) -> str:
        """By its id, which may be another program's, or by the function it runs."""
        if isinstance(named, str):
            return named
        kind = self.job(named).name
        for schedule in self.schedules.values():
            if schedule.target.kind == kind:
                return schedule.id
        raise InvalidInput("schedule", f"{kind!r} has no schedule", fix="add schedule=every('1h') to its @app.job")

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {name: job.handler for name, job in self.jobs.items()}

    @property
    def pools_used(self) -> Mapping[PoolName, Pool | None]:
        """Where this program's jobs may be, with the limit that it declares itself, if it does."""
        used = [job.pool for job in self.jobs.values()] + ([POOL] if self.runs_graphs else [])
        used += [template.pool for template in self.templates.values()]
        return {**dict.fromkeys(used), **self.pools}
