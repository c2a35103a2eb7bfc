"""Hints between the processes that share one database file, by Unix datagrams in a folder beside it."""

import contextlib
import errno
import hashlib
import json
import os
import select
import socket
import stat
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from duly.domain.instants import SECOND
from duly.ports.clock import Clock

EVERYTHING = frozenset({"*"})
"""Anything may have changed."""

# The kernel takes about 108 bytes of path; macOS 104.
_LONGEST_ADDRESS = 100
# Well below the least send buffer we know of (macOS: 2 KiB): more topics than fit are one "anything".
_LONGEST_HINT = 1_800
# A folder changed this recently may change again without its time stamp telling.
_SETTLED_MICROS = SECOND
# Who commits again and again need not look each time; whoever came meanwhile has looked at the database itself.
_LOOK_MICROS = 5_000


class Folder:
    """Where the processes' sockets lie, and who has one. Only the owner of the database gets in."""

    def __init__(self, database: str, clock: Clock) -> None:
        self._clock = clock
        self._path = _folder_of(database)
        self._text = str(self._path)
        self._fd = -1
        self._seen_mtime = -1
        self._names: tuple[str, ...] = ()
        self._look_at = 0

    def prepare(self) -> None:
        self._path.mkdir(mode=stat.S_IRWXU, exist_ok=True)
        found = self._path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "belongs to someone else", str(self._path))

    def names(self) -> tuple[str, ...]:
        """Listed anew only when the folder has changed: most announcements find nobody to tell."""
        now = self._clock.lease_now()
        if now < self._look_at:
            return self._names
        self._look_at = now + _LOOK_MICROS
        try:
            mtime = os.stat(self._text).st_mtime_ns  # noqa: PTH116 - after every commit
        except FileNotFoundError:
            self._names = ()
            return ()
        if mtime != self._seen_mtime:
            self._names = tuple(file.name for file in self._path.glob("*.sock"))
            settled = self._clock.now() - mtime // 1_000 > _SETTLED_MICROS
            self._seen_mtime = mtime if settled else -1
        return self._names

    def address(self, name: str) -> str:
        direct = str(self._path / name)
        if len(os.fsencode(direct)) <= _LONGEST_ADDRESS:
            return direct
        if self._fd < 0:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._fd}/{name}"

    def remove(self, name: str) -> None:
        with contextlib.suppress(OSError):
            (self._path / name).unlink()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Peers:
    """Sends to every other process, and hears them in a thread of its own: a listener's event loop may end at
    any time, and several loops of one process must all hear.
    """

    def __init__(self, database: str, clock: Clock, hear: Callable[[frozenset[str]], None]) -> None:
        self._folder = Folder(database, clock)
        self._hear = hear
        self._name = f"{os.getpid()}-{clock.lease_now()}.sock"
        self._sender = _datagram_socket()
        self._guard = threading.Lock()
        self._ear: _Ear | None = None
        self._closed = False

    def announce(self, topics: frozenset[str]) -> None:
        """Never blocks and never raises: a hint that cannot be sent is lost, and the backstop finds the
        change.
        """
        try:
            names = self._folder.names()
            if names and names != (self._name,):
                with self._guard:
                    if not self._closed:
                        self._send(_encoded(topics), names)
        except OSError:
            return

    def start_hearing(self) -> None:
        """From now on other processes find this one. Where sockets cannot be had, the backstop has to do."""
        with self._guard, contextlib.suppress(OSError):
            if self._ear is None and not self._closed:
                self._folder.prepare()
                self._ear = _Ear(self._folder.address(self._name), self._hear)

    def close(self) -> None:
        with self._guard:
            self._closed = True
            ear, self._ear = self._ear, None
            self._sender.close()
            if ear is not None:
                self._folder.remove(self._name)
            self._folder.close()
        if ear is not None:
            ear.close()

    def _send(self, hint: bytes, names: tuple[str, ...]) -> None:
        for name in names:
            if name == self._name:
                continue
            try:
                self._sender.sendto(hint, self._folder.address(name))
            except (
                ConnectionRefusedError,
                FileNotFoundError,
            ):  # its process is dead: nobody will take it away
                self._folder.remove(name)
            except OSError:  # its queue is full, so it has plenty to wake up for
                continue


class _Ear:
    """A bound socket and the thread that listens to it."""

    def __init__(self, address: str, hear: Callable[[frozenset[str]], None]) -> None:
        self._hear = hear
        self._socket = _datagram_socket()
        self._socket.bind(address)
        self._stop, self._stopped = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="duly-wakeups", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.close()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        with self._socket, self._stopped:
            while self._stopped not in select.select([self._socket, self._stopped], [], [])[0]:
                topics = self._drained()
                if topics:
                    self._hear(topics)

    def _drained(self) -> frozenset[str]:
        """All that has come by now, as one hint."""
        topics: frozenset[str] = frozenset()
        with contextlib.suppress(OSError):
            while True:
                topics |= _decoded(self._socket.recv(65_536))
        return topics


def _folder_of(database: str) -> Path:
    beside = Path(f"{database}-wake")
    name_length = 40
    if len(os.fsencode(beside)) + name_length <= _LONGEST_ADDRESS or sys.platform == "linux":
        return beside
    digest = hashlib.sha256(os.fsencode(database)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"duly-{os.geteuid()}-{digest}"


def _datagram_socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


def _encoded(topics: frozenset[str]) -> bytes:
    hint = json.dumps(sorted(topics)).encode()
    return hint if len(hint) <= _LONGEST_HINT else json.dumps(sorted(EVERYTHING)).encode()


def _decoded(hint: bytes) -> frozenset[str]:
    try:
        topics = json.loads(hint)
    except ValueError:
        return EVERYTHING
    if isinstance(topics, list) and all(isinstance(topic, str) for topic in topics):
        return frozenset(topics)
    return EVERYTHING
