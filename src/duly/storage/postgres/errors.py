"""The one place that turns what asyncpg raises into what Duly raises."""

import asyncio
from typing import Literal

import asyncpg

from duly.domain.errors import InvalidInput, Unavailable
from duly.storage.errors import Constraint, ConstraintViolated

Phase = Literal["reading", "writing", "committing"]
"""What the failed statement was doing; `committing` if it would have committed, had it succeeded."""


DRIVER_ERRORS = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""All that asyncpg raises, for those who only want to know that it did not work."""


class Interrupted(Unavailable):
    """The transaction did not go through for a reason that may pass: run it again, or give up and raise this.

    `commit_unknown`: it may have committed all the same. `connection_lost`: the connection is of no more use.
    """

    def __init__(self, message: str, *, connection_lost: bool, commit_unknown: bool = False) -> None:
        self.connection_lost = connection_lost
        self.commit_unknown = commit_unknown
        super().__init__(message + ("; whether it committed is unknown" if commit_unknown else ""))


def translated(error: BaseException, phase: Phase, *, closed: bool) -> BaseException:
    """What to raise in place of `error`; bugs and cancellation come back as they are."""
    unknown = phase == "committing"
    match error:
        case asyncpg.ReadOnlySQLTransactionError() if phase == "reading":
            return RuntimeError("work that was given to read() tried to write")
        case asyncpg.DataError() if isinstance(error.__cause__, UnicodeEncodeError):
            return InvalidInput("text", "is not valid Unicode", fix="remove lone surrogates")
        case asyncpg.DataError() if error.__cause__ is not None:
            # The driver could not encode it; what it says quotes the value, which is not ours to repeat.
            return InvalidInput("value", "is of a type or size that the database cannot store")
        case asyncpg.IntegrityConstraintViolationError():
            return violated(error.sqlstate, error.constraint_name or error.column_name or "", said=_said(error))
        case asyncpg.InvalidCachedStatementError():
            # A migration changed a table under a prepared statement: a new connection prepares it anew.
            return Interrupted(_said(error), connection_lost=True)
        case asyncpg.exceptions.OutdatedSchemaCacheError():
            # The same, but found while reading the answer, when the statement has already run.
            return Interrupted(_said(error), connection_lost=True, commit_unknown=unknown)
        case asyncpg.PostgresConnectionError() | OSError() | asyncio.IncompleteReadError():
            return _silence(error, unknown=unknown)
        case asyncpg.PostgresError():
            return answered(error, unknown=unknown)
        case asyncpg.InternalClientError():
            # How asyncpg reports a server's farewell that came in just before our statement went out.
            return _silence(error, unknown=unknown)
        case asyncpg.InterfaceError() if closed:
            return _silence(error, unknown=unknown)
    return error


def translated_at_connect(error: BaseException) -> BaseException:
    """Nothing was sent yet, so nothing is unknown; a wrong password does not get better by trying again."""
    match error:
        case ValueError():
            # What the driver says quotes the URL, and with it pieces of a password.
            return InvalidInput("url", "is not a Postgres URL", fix=_URL)
        case asyncpg.PostgresConnectionError() | OSError() | asyncio.IncompleteReadError():
            fix = "see that its server runs, and that DULY_DATABASE_URL names it"
            return Interrupted(f"the database cannot be reached: {_said(error)}; {fix}", connection_lost=True)
        case asyncpg.PostgresError() if error.sqlstate in _TAKES_NO_CONNECTIONS:
            return Interrupted(f"the database takes no connections: {_said(error)}", connection_lost=True)
        case asyncpg.exceptions.TargetServerAttributeNotMatched():
            return Interrupted("no server in the URL takes writes", connection_lost=True)
        case asyncpg.PostgresError() | asyncpg.InterfaceError() | asyncpg.InternalClientError():
            return Unavailable(f"the database refused the connection: {_said(error)}")
    return error


_URL = "write postgresql://user:password@host:5432/name, and / # @ : in a password as %2F %23 %40 %3A"

# Two that joined a lane whose head had just gone both made theirs its head: whoever lost looks again.
_SETTLED_BY_RERUN = {"jobs_one_head_per_lane"}

_CONSTRAINTS: dict[str, Constraint] = {
    "23505": "unique",
    "23514": "check",
    "23503": "foreign_key",
    "23502": "not_null",
    "23P01": "exclusion",
}

# NUL in text, \u0000 in jsonb, bytes that are not of the database's encoding.
_UNSTORABLE_TEXT = {"22021", "22P05"}

# The server says that nothing was written, and that the next time may go better.
_PASSING = {
    "40001",  # serialization failure
    "40P01",  # deadlock
    "55P03",  # lock timeout
}

# Nothing was written, and running it again at once would make things worse.
_HOPELESS = {
    "53100",  # disk full
    "53200",  # out of memory
    "57014",  # cancelled for taking too long
    "58030",  # I/O error
}

_TAKES_NO_CONNECTIONS = {
    "53300",  # too many connections
    "57P01",  # shutting down
    "57P02",  # crashed
    "57P03",  # starting up
}


def answered(error: BaseException, *, unknown: bool) -> BaseException:
    """By its SQLSTATE alone, whichever driver brought it."""
    state = getattr(error, "sqlstate", None)
    if state in _UNSTORABLE_TEXT:
        return InvalidInput("text", "holds a character that Postgres cannot store", fix="remove NUL characters")
    if state in _PASSING:
        return Interrupted(_said(error), connection_lost=False)
    if state in _HOPELESS:
        return Unavailable(f"the database cannot do this now: {_said(error)}")
    if state == "25006":
        # This server was demoted or is a standby: another connection may reach the one that takes writes.
        return Interrupted(_said(error), connection_lost=True)
    if getattr(error, "severity_en", "") in {"FATAL", "PANIC"} or state in _TAKES_NO_CONNECTIONS:
        # A backend may be told to end while it waits for a standby to confirm what it has already committed.
        return Interrupted(_said(error), connection_lost=True, commit_unknown=unknown)
    return error


def _silence(error: BaseException, *, unknown: bool) -> Interrupted:
    message = f"the connection to the database was lost: {_said(error)}"
    return Interrupted(message, connection_lost=True, commit_unknown=unknown)


def violated(sqlstate: str, name: str, *, said: str = "a row was in the way") -> Exception:
    if sqlstate == "23505" and name in _SETTLED_BY_RERUN:
        return Interrupted(said, connection_lost=False)
    return ConstraintViolated(name, _CONSTRAINTS.get(sqlstate, "check"))


def _said(error: BaseException) -> str:
    """The message without its DETAIL, which quotes rows."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error.args[0]) if error.args and error.args[0] else type(error).__name__
