"""Functions that tests run in processes of their own."""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from duly.domain.jobs import Ending, JobStatus
from duly.worker.context import JobContext
from duly.worker.handlers import DoNotRetry


def add(a: int, b: int) -> dict[str, int]:
    print("adding")
    print("aloud", file=sys.stderr)
    return {"sum": a + b, "pid": os.getpid()}


async def add_later(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


def tell(context: JobContext) -> dict[str, Any]:
    context.log("one\ntwo", level="warning")
    context.log("x" * 200_000)
    context.log("")
    context.progress(0.5, "half")
    return {
        "job": context.job_id,
        "attempt": context.attempt,
        "slot": str(context.slot),
        "key": context.idempotency_key,
    }


def fail(how: str) -> object:
    match how:
        case "raise":
            raise ValueError("no")
        case "never":
            raise DoNotRetry("never")
        case "exit":
            sys.exit(3)
        case "leave":
            os._exit(3)
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "odd":
            return object()
        case "large":
            return "x" * 1_100_000
        case "ending":
            return Ending(status=JobStatus.SKIPPED, error="nothing new")
    return None


def spin(path: str) -> None:
    """In C code that neither lets go of the interpreter's lock nor looks for signals, for hours."""
    Path(path).write_text(str(os.getpid()))
    sum(range(10**12))


def ignore(path: str, context: JobContext) -> None:
    """It could see that it is asked to stop, and does not look."""
    context.log("I will not stop")
    Path(path).write_text(str(os.getpid()))
    while True:
        time.sleep(60)


def wait(path: str) -> None:
    """Interrupted, it cleans up."""
    try:
        Path(path).write_text(str(os.getpid()))
        time.sleep(60)
    finally:
        Path(path).write_text("cleaned up")


async def wait_async(path: str, context: JobContext) -> None:
    try:
        await asyncio.sleep(60)
    finally:
        Path(path).write_text(f"cleaned up {context.cancelled}")  # noqa: ASYNC240 - nobody else is there


def look(path: str, context: JobContext) -> None:
    Path(path).write_text(str(os.getpid()))
    while not context.cancelled:
        time.sleep(0.01)
    Path(path).write_text("saw it")


def fork(path: str) -> str:
    """Leaves a child, which leaves a child, neither of which means to end; a third comes back as a copy."""
    if os.fork() == 0:
        if os.fork() == 0:
            Path(path).write_text(str(os.getpid()))
        time.sleep(600)
    if os.fork() == 0:
        return "a copy"
    while not (Path(path).exists() and Path(path).read_text()):
        time.sleep(0.01)
    return "the first"


def parse(text: str) -> object:
    """Raises in the standard library, three frames below."""
    return _parsed(text)


def _parsed(text: str) -> object:
    return json.loads(text)


async def parse_later(text: str) -> object:
    await asyncio.sleep(0)
    return _parsed(text)
