"""Jobs that were put alone wait in a table of their own, where a put costs one page, until the next transaction."""

from collections.abc import Mapping

import apsw

from duly.storage.statements import Statement

# Who does nothing but put absorbs once in so many puts, which takes about a millisecond: neither its event loop nor
# whoever reads or writes next finds much more to do than that.
ABSORB_AT = 250


class Arrivals:
    """Absorbed inside a transaction, before anything else: what follows sees `jobs` alone."""

    def __init__(self, statements: Mapping[str, Statement]) -> None:
        self._statements = statements
        self._noted = 0

    @property
    def view(self) -> str:
        """What lets a connection that cannot write see arrivals among the jobs."""
        return self._statements["jobs_and_arrivals"].sql

    @property
    def are_many(self) -> bool:
        return self._noted >= ABSORB_AT

    def note(self) -> None:
        """This process has put a row, which may be an arrival."""
        self._noted += 1

    def absorb(self, connection: apsw.Connection) -> None:
        self._noted = 0
        # Others put, too, so only the table knows.
        ((is_any,),) = connection.execute(self._statements["has_arrivals"].sql)
        if is_any:
            connection.execute(self._statements["absorb_arrivals"].sql)
            connection.execute(self._statements["forget_arrivals"].sql)
