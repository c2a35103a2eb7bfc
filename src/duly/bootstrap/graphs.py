"""What executes graphs: the execution service, and the handler that asks one."""

import os
from functools import cache
from typing import TYPE_CHECKING

from duly.application.attempts import AttemptPace
from duly.application.checkpoints import Checkpoints
from duly.application.executions import Executions
from duly.domain.errors import InvalidInput
from duly.graphs.dag import DagGraphs
from duly.graphs.langgraph import LangGraphs
from duly.graphs.python import PythonGraphs
from duly.graphs.registry import Registry
from duly.graphs.router import Provider, Router
from duly.ports.tracing import Tracing
from duly.settings import Settings
from duly.system.tracing import tracing_of

if TYPE_CHECKING:
    from duly.bootstrap.queue import Queue
    from duly.worker.graph_runs import GraphRuns

# Whoever hears nothing for so long asks again, under the same key.
_LONGEST_ANSWER_S = 300.0


def executions_on(queue: "Queue", graphs: Registry, *, pace: AttemptPace | None = None) -> Executions:
    """The execution service for these graphs; what runs them is loaded when it first runs."""
    return Executions(
        storage=queue.storage,
        dice=queue.dice,
        graphs=Router(graphs, _providers(queue)),
        grants=queue.grants,
        accounts=queue.accounts,
        money=queue.money,
        schedules=queue.schedules,
        pace=pace or AttemptPace(),
        tracing=_tracing(),
    )


def _providers(queue: "Queue") -> dict[str, Provider]:
    providers: dict[str, Provider] = {
        "python": PythonGraphs(),
        "langgraph": LangGraphs(Checkpoints(queue.storage)),
        "dag": DagGraphs(runs=queue.dag_runs, clock=queue.storage.clock, dice=queue.dice),
    }
    if queue.settings.graph_secret:
        # An HTTP client takes a tenth of a second to load.
        from duly.graphs.http import HttpGraphs

        providers["http"] = HttpGraphs(queue.storage.clock, queue.settings.graph_secret.encode())
    return providers


def graph_runs_on(queue: "Queue", graphs: Registry, *, pace: AttemptPace | None = None) -> "GraphRuns":
    """The handler of `graph.run`: asks the execution service that the settings name, or one in this process.

    Either way it is an HTTP call with the same token: one path, one contract.
    """
    # What they need takes a tenth of a second to load, and only those who run graphs need it.
    import httpx2

    from duly.http.executions import internal_api
    from duly.http.services import ServiceAccess
    from duly.worker.graph_runs import GraphRuns

    secret, url = queue.settings.internal_api_token, queue.settings.internal_api_url
    transport: httpx2.AsyncBaseTransport | None = None
    service: Executions | None = None
    if url is None:
        secret = secret or queue.dice.secret()
        service = executions_on(queue, graphs, pace=pace)
        transport = httpx2.ASGITransport(internal_api(queue, service, ServiceAccess(secret=secret)))
    else:
        secret = internal_token(queue.settings)
    client = httpx2.AsyncClient(
        base_url=url or "http://127.0.0.1",
        transport=transport,
        timeout=httpx2.Timeout(_LONGEST_ANSWER_S, connect=10.0),
        headers={"Authorization": f"Bearer {secret}", "X-Duly-Service": "duly-worker"},
    )
    return GraphRuns(
        clock=queue.storage.clock,
        jobs=queue.jobs,
        grants=queue.grants,
        runs=queue.runs,
        client=client,
        executions=service,
        tracing=_tracing(),
    )


def internal_token(settings: Settings) -> str:
    if settings.internal_api_token is None:
        raise InvalidInput(
            "DULY_INTERNAL_API_TOKEN", "is not set", fix="set it alike for the execution service and for every worker"
        )
    return settings.internal_api_token


@cache
def _tracing() -> Tracing:
    """One for the process: what sends spans has a thread of its own."""
    return tracing_of(os.environ)
