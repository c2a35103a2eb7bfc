"""What paths, queries and headers may say, each said once."""

from typing import Annotated

from fastapi import Header, Path, Query
from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from duly.domain.texts import text_of
from duly.wire.moments import Moment

LONGEST_PAGE = 200


def _text(value: str) -> str:
    return text_of(value, field="text")


def _bool(value: object) -> bool:
    if value not in (True, False, "true", "false"):
        raise ValueError("is neither true nor false")
    return value in (True, "true")


Text = Annotated[str, AfterValidator(_text)]
Id = Annotated[Text, Path(min_length=1, max_length=255)]
Limit = Annotated[int, Query(ge=1, le=LONGEST_PAGE, description="How many items a page has at most.")]
Cursor = Annotated[str | None, Query(description="`next_cursor` of the page before.", max_length=1_024)]
Flag = Annotated[bool, BeforeValidator(_bool), WithJsonSchema({"type": "boolean"})]
Withdraw = Annotated[Flag, Query(description="Also cancels its runs that still wait.")]
SlotAsked = Annotated[Moment | None, Query(description="Ask about one slot.")]
IfMatch = Annotated[
    str | None,
    Header(
        pattern=r'^(\*|"[1-9][0-9]{0,17}(-[0-9a-f]{16})?")$',
        description="The ETag that the change builds on, or *; refused with 412 if somebody was faster.",
    ),
]
IfNoneMatch = Annotated[str | None, Header(description="Answers 304 if this is still the ETag.")]


def revision_from(if_match: str | None) -> int | None:
    """The revision that an ETag begins with; None where any will do."""
    if if_match is None or if_match == "*":
        return None
    return int(if_match.strip('"').partition("-")[0])
