"""What a program declares: jobs, programs, templates, graphs, actions, workflows, pools."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, Unpack, overload

from duly.app.client import Named
from duly.app.declared import (
    GraphOptions,
    JobOptions,
    Params,
    call_of,
    job_of,
    name_for,
    schedule_of,
    schedule_of_graph,
)
from duly.app.durations import Duration, ms_of
from duly.app.graphs import DeclaredGraph, graph_of, terms_of
from duly.app.register import Register
from duly.app.templates import TemplateOptions, template_of
from duly.app.workflows import declare_action, workflow_of
from duly.bootstrap import Registry, command, commands, handler_for
from duly.domain.executions import OnCrash
from duly.domain.ids import PoolName
from duly.domain.pools import MOST_SLOTS, Pool
from duly.domain.retries import DAY_MS
from duly.domain.templates import COMMAND_KIND, Command
from duly.domain.texts import whole_number_of

F = TypeVar("F", bound=Callable[..., Any])


class Declaring:
    """Declared when the program is loaded; the database hears of it when the app is opened."""

    def __init__(self) -> None:
        self._register = Register()

    @overload
    def job(self, function: F, /) -> F: ...

    @overload
    def job(
        self, /, *, name: str | None = None, isolate: bool = False, **options: Unpack[JobOptions]
    ) -> Callable[[F], F]: ...

    def job(
        self,
        function: F | None = None,
        /,
        *,
        name: str | None = None,
        isolate: bool = False,
        **options: Unpack[JobOptions],
    ) -> F | Callable[[F], F]:
        """Declares a function as a job, under its own name unless `name` is given; it stays what it is.

        An async function runs in the worker's event loop, any other in a thread, with `isolate` in a process.
        """

        def declare(function: F) -> F:
            call = call_of(function)
            job = job_of(name or name_for(function), handler_for(function, isolate=isolate), call, options)
            self._register.add(job, schedule_of(job, options), function)
            return function

        return declare if function is None else declare(function)

    def command(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        result: Literal["json"] | None = None,
        artifacts: str | Path | None = None,
        **options: Unpack[JobOptions],
    ) -> str:
        """Declares a program as a job; answers its name, to put it by."""
        handler = command(argv, env=env, cwd=cwd, result=result, artifacts=artifacts)
        job = job_of(name, handler, None, options)
        self._register.add(job, schedule_of(job, options))
        return job.name

    def template(
        self,
        name: str,
        job: Named | Command,
        *,
        params: Params | None = None,
        schema: Mapping[str, Any] | None = None,
        **options: Unpack[TemplateOptions],
    ) -> str:
        """Declares a template of a job, by function or name, or of a `Command`; answers its name.

        With a `schedule` it runs as it is when each slot fires. Who changes it here changes it when the app is opened.
        """
        made, schedule = template_of(self._register, name, job, params=params, schema=schema, options=options)
        self._register.add_template(made, schedule)
        return made.name

    def run_commands(self, *, artifacts: str | Path | None = None) -> None:
        """Lets this program's worker run the programs that templates name: whoever defines those rules its machine."""
        self._register.add(job_of(COMMAND_KIND, commands(artifacts=artifacts), None, {}), None)

    def graph(
        self,
        name: str,
        graph: Any,
        *,
        input: Params | None = None,  # noqa: A002 - what people call it
        model: str | None = None,
        max_cost: str | None = None,
        on_crash: str = OnCrash.RESUME,
        timeout: Duration | None = None,
        review_within: Duration | None = None,
        review_default: str | None = None,
        review_value: Any = None,
        **options: Unpack[GraphOptions],
    ) -> str:
        """Declares a graph, as `"module:attr"` or as the object itself; answers its id, `provider:name`.

        With a `schedule` it runs under a grant of its own, at the cost of the owner's account; `max_cost` is held
        before each run. A place is loaded by the execution service alone, never by a worker that asks one elsewhere.
        What it asks people may wait for `review_within` (7 days); then `review_default` counts: approve, reject, fail,
        or edit, which goes on with `review_value`.
        """
        timeout_ms = None if timeout is None else ms_of(timeout, field="timeout", least=1, most=DAY_MS)
        graph_id, params = graph_of(
            name,
            graph,
            self._register.found_at,
            graph_input=input,
            model=model,
            max_cost=max_cost,
            on_crash=on_crash,
            timeout_ms=timeout_ms,
        )
        params |= terms_of(review_within, review_default, review_value)
        schedule = schedule_of_graph(name, params, options)
        declared = DeclaredGraph(id=graph_id, schedule_id=None if schedule is None else schedule.id, params=params)
        self._register.add_graph(declared, schedule)
        return graph_id

    @overload
    def action(self, named: str, found_at: None = None) -> Callable[[F], F]: ...

    @overload
    def action(self, named: str, found_at: str | Callable[..., Any]) -> str: ...

    @overload
    def action(self, named: F) -> F: ...

    def action(self, named: Any, found_at: Any = None) -> Any:
        """Registers what nodes of workflows may name: `@app.action`, `@app.action("name")`, or with where it is found.

        `app.action("send", "package.mail:send")` is loaded by the execution service alone; without a name, the place
        is the name.
        """
        return declare_action(self._register.found_at, named, found_at)

    def workflow(self, document: Mapping[str, Any] | str | Path) -> str:
        """Declares a workflow, a document or the path of one, to deploy when the app opens; answers its name."""
        declared, name = workflow_of(document)
        self._register.workflows.append(declared)
        return name

    def pool(
        self,
        name: str,
        *,
        limit: int,
        prefetch: int = 0,
        ageing: Duration | None = None,
        per_owner: int | None = None,
    ) -> str:
        """Declares how many jobs of a pool run at once, wherever they run, and of one owner in it; answers its name."""
        whole_number_of(limit, field="limit", least=0, most=MOST_SLOTS)
        ageing_ms = None if ageing is None else ms_of(ageing, field="ageing", least=1, most=DAY_MS)
        self._register.add_pool(
            Pool(name=PoolName(name), slots=limit, prefetch=prefetch, ageing_ms=ageing_ms, per_owner=per_owner)
        )
        return name

    @property
    def graphs(self) -> Registry:
        """Where its graphs are found, for the service that executes them."""
        return self._register.found_at

    @property
    def jobs(self) -> Sequence[str]:
        return list(self._register.jobs)
