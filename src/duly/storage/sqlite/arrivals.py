"""Jobs that were put alone wait in a table of their own, where a put costs one page, until the next transaction."""

from collections.abc import Mapping

import apsw

from duly.storage.statements import Statement

# Who only puts absorbs in the background from so many on, so that the others never find more than a moment's work.
ABSORB_AT = 1_000


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

    def count_anew(self) -> None:
        self._noted = 0

    def absorb(self, connection: apsw.Connection) -> None:
        self.count_anew()
        # Others put, too, so only the table knows.
        ((is_any,),) = connection.execute(self._statements["has_arrivals"].sql)
        if is_any:
            connection.execute(self._statements["absorb_arrivals"].sql)
            connection.execute(self._statements["forget_arrivals"].sql)
