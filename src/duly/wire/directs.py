"""Direct calls, in JSON."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from duly.wire.shapes import Shape


class DirectCall(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [{"params": {"total": 3}, "timeout_ms": 30000}]})

    params: Annotated[
        dict[str, Any] | None, Field(description="They take the place of the template's, name by name.")
    ] = None
    timeout_ms: Annotated[
        int, Field(ge=1, le=86_400_000, description="For all of it: the wait for a place, and the run.")
    ] = 60_000


class DirectAnswer(Shape):
    result: Annotated[Any, Field(description="What the handler answered.")]
