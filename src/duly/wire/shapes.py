"""What every shape has in common: nothing unknown is taken, nothing is guessed."""

from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")


class Shape(BaseModel):
    """Strict: a number in quotes is a text. What has no meaning is refused, so nobody sets what is not theirs."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Page(Shape, Generic[T]):
    items: list[T]
    next_cursor: Annotated[
        str | None, Field(description="Give it as `cursor` for what follows; null: this is the end.")
    ] = None
