"""Sees what each transaction wrote before the next one begins, even if both are committed together."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from duly.domain.jobs import Entry
from duly.ports.clock import Clock
from duly.ports.storage import Storage, Transaction, Work
from duly.ports.wakeups import Wakeups

T = TypeVar("T")


class WatchedStorage:
    """`saw` is told which methods of the ledger and of the schedules a transaction called, when it has done its work.

    Nothing undoes that work any more: whatever fails, fails before or after.
    """

    def __init__(self, storage: Storage, saw: Callable[[set[str]], None]) -> None:
        self._storage = storage
        self._saw = saw
        self.clock: Clock = storage.clock
        self.wakeups: Wakeups = storage.wakeups

    async def transact(self, work: Work[T], *, single: bool = False) -> T:
        async def watched(tx: Transaction) -> T:
            called: set[str] = set()
            answer = await work(cast("Transaction", _WatchedTransaction(tx, called)))
            self._saw(called)
            return answer

        return await self._storage.transact(watched, single=single)

    def put_at_once(self, entry: Entry) -> None:
        """Everything is a transaction here."""

    async def read(self, work: Work[T]) -> T:
        return await self._storage.read(work)

    async def close(self) -> None:
        return None


class _WatchedTransaction:
    def __init__(self, tx: Transaction, called: set[str]) -> None:
        self._tx = tx
        self._called = called

    @property
    def ledger(self) -> Any:
        return _WatchedStore(self._tx.ledger, self._called)

    @property
    def schedules(self) -> Any:
        return _WatchedStore(self._tx.schedules, self._called)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


class _WatchedStore:
    def __init__(self, store: Any, called: set[str]) -> None:
        self._store = store
        self._called = called

    def __getattr__(self, name: str) -> Any:
        self._called.add(name)
        return getattr(self._store, name)
