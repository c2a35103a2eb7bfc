"""From errors to answers: one table says which status, one function writes the problem."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import HTTPException
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import Response

from duly.domain.billing import InsufficientCredit
from duly.domain.errors import Conflict, DulyError, InvalidInput, NotFound, Refused, Unavailable
from duly.domain.pools import PoolDraining, UnknownPool
from duly.domain.requests import StillRunning
from duly.domain.tickets import Deadline, DirectFailed
from duly.domain.tokens import TooManyStreams, Unauthenticated
from duly.wire.pointers import NOTHING, Asked, pointer_of, pointer_to, said_of
from duly.wire.problems import MEDIA_TYPE, problem_of
from duly.wire.suggestions import unknown

# The first that fits counts: single errors before their families.
STATUSES: tuple[tuple[type[DulyError], int], ...] = (
    (Unauthenticated, 401),
    (TooManyStreams, 429),
    (UnknownPool, 422),  # a body names it; where the path does, the route says 404
    (PoolDraining, 409),
    (DirectFailed, 502),
    (Deadline, 504),
    (InvalidInput, 422),
    (NotFound, 404),
    (Conflict, 409),
    (InsufficientCredit, 402),
    (Refused, 403),
    (Unavailable, 503),
)
CODES = {
    400: "bad_request",
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
    415: "unsupported_media_type",
}
RETRY_SOON_S = 1
# A stream ends with its run, or when its caller leaves.
RETRY_STREAM_S = 5
_MOST_PLACES = 20
_LONGEST_POINTER = 200
Errors = tuple[tuple[str, str], ...]


class Refusal(HTTPException):
    """What HTTP itself refuses, before or beside the use cases."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        code: str | None = None,
        errors: Errors = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, detail=detail, headers=dict(headers or {}))
        self.code = code or CODES[status]
        self.errors = errors


def problem_from(error: Exception, request_id: str, asked: Asked = NOTHING) -> Response:
    """The answer to any error that is expected; others are raised again."""
    if isinstance(error, DulyError):
        return _of_duly(error, request_id, asked)
    if isinstance(error, RequestValidationError):
        return _of_validation(error.errors(), request_id, asked)
    if isinstance(error, StarletteHTTPException):
        code = error.code if isinstance(error, Refusal) else CODES.get(error.status_code, "http_error")
        errors = error.errors if isinstance(error, Refusal) else ()
        is_nowhere = error.status_code == 404 and not isinstance(error, Refusal)
        said = "there is nothing at this path; /docs lists those there are" if is_nowhere else str(error.detail)
        return answer(error.status_code, code, said, request_id, errors=errors, headers=error.headers)
    raise error


def status_of(error: DulyError) -> int:
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def answer(
    status: int,
    code: str,
    detail: str,
    request_id: str,
    *,
    errors: Errors = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    problem = problem_of(status=status, code=code, detail=detail, request_id=request_id, errors=errors)
    return Response(problem.model_dump_json(), status, dict(headers or {}), MEDIA_TYPE)


def _of_duly(error: DulyError, request_id: str, asked: Asked) -> Response:
    status, said = status_of(error), str(error)
    errors: Errors = ()
    if status == 422 and isinstance(error, InvalidInput):
        said = said_of(error, asked)
        errors = ((pointer_of(error, asked), said),)
    return answer(status, error.code, said, request_id, errors=errors, headers=_headers(error, status))


def _headers(error: DulyError, status: int) -> dict[str, str]:
    # What runs is mostly done in a moment; only that of a dead server takes as long as its claim is held.
    if status == 503 or isinstance(error, StillRunning):
        return {"Retry-After": str(RETRY_SOON_S)}
    if status == 429:
        return {"Retry-After": str(RETRY_STREAM_S)}
    return {"WWW-Authenticate": 'Bearer realm="duly"'} if status == 401 else {}


def _of_validation(found: Sequence[Any], request_id: str, asked: Asked) -> Response:
    errors = tuple((_pointer(each["loc"]), _said(each, asked)) for each in found[:_MOST_PLACES])
    detail = "; ".join(f"{pointer or 'the body'}: {why}" for pointer, why in errors)
    return answer(422, "invalid_input", detail, request_id, errors=errors)


def _pointer(place: Sequence[str | int]) -> str:
    return pointer_to(*(place[1:] if place[0] == "body" else place))[:_LONGEST_POINTER]


def _said(error: Mapping[str, Any], asked: Asked) -> str:
    if error["type"] == "extra_forbidden":
        *steps, name = error["loc"][1:]
        return unknown(str(name), asked.known(*steps), what="field")
    return str(error["msg"]).removeprefix("Value error, ")
