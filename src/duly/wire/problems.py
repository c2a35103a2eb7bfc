"""What went wrong, as RFC 9457 says it."""

from typing import Annotated

from pydantic import Field

from duly.wire.shapes import Shape

MEDIA_TYPE = "application/problem+json"


class ProblemPlace(Shape):
    pointer: Annotated[
        str,
        Field(
            description="JSON Pointer into the body; or /query/…, /path/… and /header/… for what is not in it.",
            examples=["/cron"],
        ),
    ]
    detail: Annotated[str, Field(examples=["hour, position 2: 25 is out of range"])]


class Problem(Shape):
    type: Annotated[str, Field(description="Names the kind of problem.", examples=["urn:duly:problem:invalid_cron"])]
    title: Annotated[str, Field(description="The same for every problem of its kind.", examples=["Invalid cron"])]
    status: Annotated[int, Field(examples=[422])]
    detail: Annotated[str, Field(description="What happened this time.")]
    code: Annotated[str, Field(description="Stable, to match on.", examples=["invalid_cron"])]
    request_id: Annotated[str, Field(description="Also in X-Request-ID and in the server's log.")]
    errors: Annotated[list[ProblemPlace], Field(default_factory=list, description="Each place that was refused.")]


def problem_of(
    *, status: int, code: str, detail: str, request_id: str, errors: tuple[tuple[str, str], ...] = ()
) -> Problem:
    return Problem(
        type=f"urn:duly:problem:{code}",
        title=code.replace("_", " ").capitalize(),
        status=status,
        detail=detail,
        code=code,
        request_id=request_id,
        errors=[ProblemPlace(pointer=pointer, detail=why) for pointer, why in errors],
    )
