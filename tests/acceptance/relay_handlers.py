"""A handler that hands on what it was handed: it leaves its job's id as its result and as an artifact's name."""

import asyncio
import json
from typing import Any

from duly.domain.sessions import ClaimedJob
from duly.worker.logbook import open_log
from tests.acceptance.journal import Journal


class AsAsked(Exception):
    """Attempts that were told to fail."""


def relay(journal: Journal, job: ClaimedJob) -> object:
    """`fails` attempts fail on purpose before one may succeed; `result` and `artifact` came from the member before."""
    params = json.loads(job.payload)
    facts: dict[str, Any] = {
        "job": job.id,
        "chain": job.chain,
        "n": params["n"],
        "attempt": job.attempt,
        "pool": job.pool,
        "said": f"{params.get('result', '')} {params.get('artifact', '')}",
    }
    journal.note("enter", **facts)
    return _relayed(journal, job, params, facts)


async def _relayed(journal: Journal, job: ClaimedJob, params: dict[str, Any], facts: dict[str, Any]) -> dict[str, str]:
    await asyncio.sleep(params["work_ms"] / 1_000)
    if job.attempt <= params.get("fails", 0):
        journal.note("failed", **facts)
        raise AsAsked
    with open_log(job) as log:
        log.artifact(f"{job.id}.txt", 1, "0" * 64)
    journal.note("leave", **facts)
    return {"job": job.id}
