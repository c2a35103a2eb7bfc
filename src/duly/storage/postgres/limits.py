"""How much, and how long, one process asks of its Postgres server."""

from dataclasses import dataclass

from duly.domain.instants import SECOND, Micros

_FIVE_SECONDS = Micros(5 * SECOND)
_TEN_SECONDS = Micros(10 * SECOND)
_HALF_A_MINUTE = Micros(30 * SECOND)
_A_LITTLE_MORE = Micros(35 * SECOND)
_QUARTER_OF_A_MINUTE = Micros(15 * SECOND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    connections: int = 8
    """Opened as they are needed; LISTEN takes one more."""
    acquire: Micros = _FIVE_SECONDS
    """How long a caller waits for a free connection."""
    connect: Micros = _FIVE_SECONDS
    patience: Micros = _TEN_SECONDS
    """After this long no failed transaction is run again; long enough to sit out a restart."""
    statement: Micros = _HALF_A_MINUTE
    lock: Micros = _TEN_SECONDS
    idle_in_transaction: Micros = _QUARTER_OF_A_MINUTE
    """A process frozen inside a transaction loses its locks before it loses its lease."""
    answer: Micros = _A_LITTLE_MORE
    """Silence for this long means that the connection is dead, since `statement` would have answered."""

    def server_settings(self) -> dict[str, str]:
        return {
            "statement_timeout": _milliseconds(self.statement),
            "lock_timeout": _milliseconds(self.lock),
            "idle_in_transaction_session_timeout": _milliseconds(self.idle_in_transaction),
            # Compiling costs more than any statement of ours runs.
            "jit": "off",
            # Every statement of ours is written for an index. Its plan is made once and kept, whatever the tables'
            # statistics were at that moment: a queue that was empty then is not empty for long.
            # And for that index's order: a bitmap would have all that is due read and sorted to answer the first few.
            "enable_seqscan": "off",
            "enable_bitmapscan": "off",
            "plan_cache_mode": "force_generic_plan",
        }


def _milliseconds(duration: Micros) -> str:
    return str(duration // 1_000)
