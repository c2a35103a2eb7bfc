"""The one writer of a process: takes all that waits, commits once, answers all.

An idle writer works in the thread of the caller, because handing a single commit to a thread and back costs
more than it saves; a busy one, or one that waits for another process, works in a thread of its own.

Cancelling a caller whose work has not begun drops the work. Once it runs, the commit stands although the
caller does not hear of it, exactly as if its process had died: the next try with the same ids finds what was
written.
"""

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import apsw

from duly.domain.errors import Unavailable
from duly.domain.instants import SECOND, Micros
from duly.ports.clock import Clock
from duly.storage.executor import Row
from duly.storage.sqlite.batch import Committer
from duly.storage.sqlite.faults import Poisoned, StillBusy, again
from duly.storage.sqlite.pending import Pending, Waiting
from duly.storage.sqlite.steps import Work, is_alone, next_turn
from duly.storage.statements import Statement

Tx = TypeVar("Tx")
T = TypeVar("T")

BATCH_WORKS = 500
# An event loop may be held for about this long by a commit; on slower disks the thread commits.
INLINE_MICROS = Micros(5_000)
# A program that does not take our file lock is waited for this long, then callers are told.
BUSY_MICROS = Micros(30 * SECOND)
_BUSY_PAUSE_SECONDS = 0.02


class Lock(Protocol):
    """What keeps the processes of one database apart."""

    def try_acquire(self) -> bool: ...
    def acquire(self) -> None: ...
    def release(self) -> None: ...
    def close(self) -> None: ...


class Writer(Generic[Tx]):
    """`mutex` is held by whoever uses the connection, and is taken before the file lock."""

    def __init__(
        self,
        committer: Committer[Tx],
        *,
        lock: Lock,
        clock: Clock,
        announce: Callable[[frozenset[str]], None],
        inline: bool,
    ) -> None:
        self.mutex = threading.Lock()
        self._committer = committer
        self._lock = lock
        self._clock = clock
        self._announce = announce
        self._inline = inline
        self._waiting: Waiting[Tx] = Waiting()
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._poison: Poisoned | None = None
        self._typical_micros = 0
        self._busy_since: Micros | None = None

    async def transact(self, work: Work[Tx, T]) -> T:
        if self._poison is not None:
            raise again(self._poison)
        pending: Pending[Tx] = Pending(work)
        if self._inline or not is_alone() or not self._commit_at_once(pending):
            await self._commit_in_turn(pending)
        answer: T = pending.outcome()
        return answer

    def change_at_once(self, statement: Statement, row: Row, topic: str) -> bool | None:
        """Commits one row past the queue of works if it is empty; None if that would hold anybody up."""
        if self._poison is not None or self._typical_micros > INLINE_MICROS or not is_alone():
            return None
        if not self.mutex.acquire(blocking=False):
            return None
        try:
            if self._waiting or self._waiting.closed or not self._lock.try_acquire():
                return None
            started = self._clock.lease_now()
            try:
                changed = self._committer.change(statement.sql, statement.bind_row(row), started)
            except StillBusy:
                return None
            except Poisoned as poison:
                self._poison = poison
                raise
            finally:
                self._lock.release()
            self._typical_micros += (self._clock.lease_now() - started - self._typical_micros) // 4
        finally:
            self.mutex.release()
        if changed:
            self._announce(frozenset((topic,)))
        if self._committer.log.upkeep_due:
            self._ring()
        return changed

    def _commit_at_once(self, pending: Pending[Tx]) -> bool:
        """Commits past the queue of works if it is empty; False if that would hold anybody up."""
        if self._typical_micros > INLINE_MICROS or not self.mutex.acquire(blocking=False):
            return False
        topics: set[str] = set()
        try:
            if self._waiting or self._waiting.closed or not self._lock.try_acquire():
                return False
            try:
                is_done = self._commit([pending], topics) == 1
            except StillBusy:
                return False
            finally:
                self._lock.release()
        finally:
            self.mutex.release()
        self._tell(topics)
        if self._committer.log.upkeep_due:
            self._ring()
        return is_done

    async def _commit_in_turn(self, pending: Pending[Tx]) -> None:
        if not self._waiting.add(pending):
            raise Unavailable(f"{self._committer.path}: the storage is closed; open it again")
        try:
            # Everyone who is ready now adds a work first; whoever comes back first commits them all.
            await next_turn()
            if not pending.answered and not self._commit_here(pending):
                await self._commit_there(pending)
        except BaseException:
            self._waiting.drop(pending)
            raise

    def data_version(self) -> int | None:
        """Changes when another process commits; None while this one is writing, so ask again later."""
        if not self.mutex.acquire(blocking=self._inline):
            return None
        try:
            return None if self._closing else self._committer.data_version()
        except apsw.Error:  # a disk that fails is told to whoever writes; who listens goes on listening
            return None
        finally:
            self.mutex.release()

    def close(self) -> None:
        """Finishes what was submitted. May wait for other processes: nothing for an event loop, unless
        inline.
        """
        self._waiting.close()
        with self._starting:
            self._closing = True
        if self._thread is not None:
            self._bell.put(None)
            self._thread.join()
        self._serve_until_empty()
        with self.mutex:
            self._committer.connection.close()
            self._lock.close()

    def _commit_here(self, pending: Pending[Tx]) -> bool:
        """Commits in the caller's thread if that holds nobody up; answers whether the outcome is there."""
        if self._inline:
            self._serve_until_empty()
            return True
        if self._typical_micros > INLINE_MICROS or not self.mutex.acquire(blocking=False):
            return False
        topics: set[str] = set()
        try:
            if self._lock.try_acquire():
                self._serve_until_answered(pending, topics)
        finally:
            self.mutex.release()
        self._tell(topics)
        if self._committer.log.upkeep_due:
            self._ring()
        return pending.answered

    def _serve_until_answered(self, pending: Pending[Tx], topics: set[str]) -> None:
        """What was taken before is answered already: its taker held the mutex until then."""
        try:
            while not pending.answered and self._serve(topics):
                pass
        finally:
            self._lock.release()

    async def _commit_there(self, pending: Pending[Tx]) -> None:
        future = self._waiting.park(pending)
        if future is not None:
            self._ring()
            await future

    def _ring(self) -> None:
        if self._inline:
            self._serve_until_empty()
            return
        with self._starting:
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._run, name="duly-writer", daemon=True)
                self._thread.start()
        self._bell.put(None)

    def _run(self) -> None:
        while not self._closing:
            self._bell.get()
            try:
                self._serve_until_empty()
            except Exception:  # noqa: BLE001  # its callers were told; the others still wait for this thread
                self._bell.put(None)

    def _serve_until_empty(self) -> None:
        while self._waiting or self._committer.log.upkeep_due:
            topics: set[str] = set()
            # Let go after every batch: another process may be waiting.
            with self.mutex:
                self._serve_under_lock(topics)
            self._tell(topics)
            if self._busy_since is not None:
                self._pause()

    def _serve_under_lock(self, topics: set[str]) -> None:
        try:
            self._lock.acquire()
        except Unavailable as error:
            self._fail(self._waiting.take(BATCH_WORKS), error)
            return
        try:
            self._serve(topics)
            if self._committer.log.upkeep_due:
                self._keep_log_up()
        finally:
            self._lock.release()

    def _serve(self, topics: set[str]) -> bool:
        """Commits one batch and answers it; False if there was none, or a stranger holds the database."""
        batch = self._waiting.take(BATCH_WORKS)
        if not batch:
            return False
        try:
            done = self._commit(batch, topics)
        except StillBusy as busy:
            return self._still_busy(batch, busy)
        if done < len(batch):
            self._waiting.put_back(batch[done:])
        self._waiting.answer(batch[:done])
        return True

    def _commit(self, batch: list[Pending[Tx]], topics: set[str]) -> int:
        """How many of the batch now have their outcome."""
        started = self._clock.lease_now()
        try:
            done = self._outcomes(batch, topics)
        except StillBusy:
            raise
        except BaseException as error:
            why = f"{self._committer.path}: the writer was interrupted ({error!r}); try again"
            self._fail(batch, Unavailable(why))
            raise
        self._busy_since = None
        self._typical_micros += (self._clock.lease_now() - started - self._typical_micros) // 4
        return done

    def _outcomes(self, batch: list[Pending[Tx]], topics: set[str]) -> int:
        if self._poison is None:
            done = self._committer.commit(batch, topics)
            self._poison = next((p.error for p in batch[:done] if isinstance(p.error, Poisoned)), None)
            return done
        for pending in batch:
            pending.error = again(self._poison)
        return len(batch)

    def _still_busy(self, batch: list[Pending[Tx]], busy: StillBusy) -> bool:
        now = self._clock.lease_now()
        since = self._busy_since = now if self._busy_since is None else self._busy_since
        if now - since < BUSY_MICROS:
            self._waiting.put_back(batch)
            return False
        self._busy_since = None
        seconds = BUSY_MICROS // SECOND
        why = f"another program has held the database for {seconds} s ({busy}); close it, then try again"
        self._fail(batch, Unavailable(f"{self._committer.path}: {why}"))
        return True

    def _fail(self, batch: list[Pending[Tx]], error: Unavailable) -> None:
        for pending in batch:
            pending.error = again(error)
        self._waiting.answer(batch)

    def _pause(self) -> None:
        # Any new work ends the pause; that is harmless, and closing must end it.
        with contextlib.suppress(queue.Empty):
            self._bell.get(timeout=_BUSY_PAUSE_SECONDS)

    def _keep_log_up(self) -> None:
        try:
            self._committer.log.keep_up()
        except Poisoned as poison:
            self._poison = poison

    def _tell(self, topics: set[str]) -> None:
        if topics:
            self._announce(frozenset(topics))
