"""Serves the API on each store and lets schemathesis try it; run by scripts/fuzz."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests import postgres_server
from tests.http.site import Site

# Whether a text is a cron expression, or a zone is known, no schema can say; and on loopback nobody needs a token.
LEFT_OUT = "positive_data_acceptance,ignored_auth"


async def tried(place: str, program: str, arguments: argparse.Namespace) -> int:
    site = Site(place)
    await site.open()
    try:
        await site.schedule(id="a")
        await site.local.post("/api/v1/schedules/a/trigger")
        await site.local.post("/api/v1/templates", json={"name": "a", "kind": "greet", "pool": "wide"})
        async with site.keeping_time(), site.served() as served:
            command = (program, "run", f"{served.url}/openapi.json", "--exclude-checks", LEFT_OUT)
            # A stream lasts as long as its run.
            options = ("--exclude-operation-id", "follow_run", "--max-examples", str(arguments.max_examples))
            fixed = ("--seed", str(arguments.seed), "--suppress-health-check", "all", "--request-timeout", "10")
            process = await asyncio.create_subprocess_exec(*command, *options, *fixed)
            return await process.wait()
    finally:
        await site.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="schemathesis")
    parser.add_argument("--max-examples", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", choices=("sqlite", "postgres"))
    arguments = parser.parse_args()
    failed = 0
    if arguments.store != "postgres":
        with tempfile.TemporaryDirectory() as place:
            failed |= asyncio.run(tried(str(Path(place) / "duly.db"), arguments.program, arguments))
    if arguments.store != "sqlite":
        folder = postgres_server.new_directory()
        try:
            with postgres_server.fresh_database(postgres_server.start_once(folder)) as url:
                failed |= asyncio.run(tried(url, arguments.program, arguments))
        finally:
            postgres_server.stop(folder)
    return failed


sys.exit(main())
