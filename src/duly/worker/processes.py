"""A program in a process group of its own, which ends as a whole."""

import asyncio
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, Self

from duly.domain.instants import SECOND, Micros
from duly.worker.guard import GUARD

# Within a worker's patience, so that whoever ignores SIGTERM is gone before the run would be given up.
KILL_AFTER = Micros(3 * SECOND)

_CHUNK = 65_536
# A pipe holds no more than 16 chunks, unless its owner is root.
_MOST_CHUNKS_LEFT = 32
# A process that was killed may still be in the kernel, waiting for a disk.
_LAST_MOMENT_SECONDS = 1.0


class Sink(Protocol):
    """Takes what a pipe brings, and must not block."""

    def feed(self, chunk: bytes) -> None: ...

    def close(self) -> None: ...


class Group:
    """A program and whatever it starts. What they print is read as it comes, so that printing never blocks them."""

    def __init__(self, process: "subprocess.Popen[bytes]", sinks: Mapping[int, Sink]) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = process
        self._sinks = dict(sinks)
        self._exited: asyncio.Future[None] = self._loop.create_future()
        for pipe in self._sinks:
            os.set_blocking(pipe, False)
            self._loop.add_reader(pipe, self._read, pipe)
        threading.Thread(target=self._await_exit, name=f"duly process {process.pid}", daemon=True).start()

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        *,
        stdin: bytes,
        env: Mapping[str, str],
        out: Sink,
        err: Sink,
        channel: Sink | None = None,
        cwd: str | Path | None = None,
    ) -> Self:
        """`channel` is a third way out, besides what is printed: DULY_CHANNEL is the number of its file."""
        sinks = [out, err] if channel is None else [out, err, channel]
        pipes = [os.pipe() for _ in sinks]
        try:
            process = _spawned(argv, [writing for _, writing in pipes], stdin=stdin, env=env, cwd=cwd)
        except BaseException:
            for reading, _ in pipes:
                os.close(reading)
            raise
        finally:
            for _, writing in pipes:
                os.close(writing)
        GUARD.watch(process.pid)
        return cls(process, {reading: sink for (reading, _), sink in zip(pipes, sinks, strict=True)})

    async def ended(self, *, kill_after: Micros) -> int:
        """The program's exit code, once it has ended; whatever is left of its group is then killed.

        Cancelled, it asks all of the group to end, by SIGTERM, and kills what has not after `kill_after`.
        """
        try:
            await asyncio.shield(self._exited)
        except asyncio.CancelledError:
            self._signal(signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(kill_after / SECOND):
                    await asyncio.shield(self._exited)
            self._signal(signal.SIGKILL)
            await asyncio.shield(self._exited)
            raise
        finally:
            self._close()
        return self._process.returncode

    def _await_exit(self) -> None:
        """In a thread. Leaves the dead to be buried later: until then nobody else can be given the group's number."""
        if hasattr(os, "waitid"):
            with suppress(ChildProcessError):  # whoever ignores SIGCHLD has nobody to bury
                os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._process.wait()
        with suppress(RuntimeError):  # the loop has ended: nobody waits
            self._loop.call_soon_threadsafe(self._exited.set_result, None)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _close(self) -> None:
        self._signal(signal.SIGKILL)
        for pipe in list(self._sinks):
            # What the dead have written is in the pipe; who has left the group may hold it open for ever.
            for _ in range(_MOST_CHUNKS_LEFT):
                if not self._read(pipe):
                    break
            self._drop(pipe)
        # Cancelled twice, nobody has waited for it to die, which takes but a moment.
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_LAST_MOMENT_SECONDS)
        GUARD.forget(self._process.pid)

    def _read(self, pipe: int) -> bool:
        """Whether there may be more."""
        if pipe not in self._sinks:
            return False
        try:
            chunk = os.read(pipe, _CHUNK)
        except BlockingIOError:
            return False
        if chunk:
            self._sinks[pipe].feed(chunk)
        else:
            self._drop(pipe)
        return bool(chunk)

    def _drop(self, pipe: int) -> None:
        if sink := self._sinks.pop(pipe, None):
            self._loop.remove_reader(pipe)
            os.close(pipe)
            sink.close()


def exit_text(code: int) -> str:
    """How a program ended, in words."""
    if code >= 0:
        return f"exited with {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _spawned(
    argv: Sequence[str], ways_out: Sequence[int], *, stdin: bytes, env: Mapping[str, str], cwd: str | Path | None
) -> "subprocess.Popen[bytes]":
    out, err, *channel = ways_out
    # Its input is a file rather than a pipe: nobody has to wait for the program to read it.
    with tempfile.TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        return subprocess.Popen(  # noqa: S603 - what runs is the owner's to say, and no shell reads it
            argv,
            stdin=file,
            stdout=out,
            stderr=err,
            env={**env, "DULY_CHANNEL": str(channel[0])} if channel else env,
            cwd=cwd,
            pass_fds=channel,
            start_new_session=True,
        )
