"""Instants as whole UTC seconds since 1970, the unit in which Duly computes time."""

from datetime import UTC, datetime

from duly.domain.errors import InvalidInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

DAY = 86_400
FIRST_DAY = -719_162  # 0001-01-01, the first day a datetime can name
LAST_DAY = 2_932_896  # 9999-12-31, the last one
FIRST_SECOND = FIRST_DAY * DAY
LAST_SECOND = LAST_DAY * DAY + DAY - 1


def second_of(field: str, instant: datetime) -> int:
    """The second that contains the instant; a datetime without a zone names no instant."""
    if not isinstance(instant, datetime):
        raise InvalidInput(field, f"must be a datetime, not {type(instant).__name__}")
    try:
        since = instant - EPOCH
    except TypeError:
        raise InvalidInput(
            field, "has no time zone, so it names no instant", fix="pass tzinfo, for example datetime.UTC"
        ) from None
    return since.days * DAY + since.seconds


def whole_second_of(field: str, instant: datetime) -> int:
    """The instant as a second, for instants that are themselves fires."""
    second = second_of(field, instant)
    if instant.microsecond or not FIRST_SECOND <= second <= LAST_SECOND:
        raise InvalidInput(
            field,
            "must be a whole second, in the years 1 to 9999 of UTC",
            fix="drop the fraction with .replace(microsecond=0)" if instant.microsecond else None,
        )
    return second


def utc_of(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)
