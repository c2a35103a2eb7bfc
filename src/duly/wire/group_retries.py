"""What a retry of a group would touch and cost, in JSON."""

from typing import Annotated

from pydantic import ConfigDict, Field

from duly.application.groups import Again
from duly.domain.amounts import Amount
from duly.domain.groups import MOST_MEMBERS
from duly.wire.estimates import Cost, MaxCost, cost_shape
from duly.wire.groups import Member, member_shape
from duly.wire.shapes import Shape


class GroupRetry(Shape):
    model_config = ConfigDict(json_schema_extra={"examples": [{"cap": 50, "max_cost": "5.00"}]})

    cap: Annotated[
        int | None, Field(ge=1, le=MOST_MEMBERS, description="Refused if more members are to be tried again.")
    ] = None
    max_cost: MaxCost = None


class GroupRetryPreview(Shape):
    count: int
    fits: Annotated[bool, Field(description="Whether it would be taken with this cap and this max_cost.")]
    members: Annotated[list[Member], Field(description="Exactly what would be tried again.")]
    cost: Annotated[Cost, Field(description="Of these members.")]


def group_retry_shape(again: Again, *, cap: int | None = None, max_cost: Amount | None = None) -> GroupRetryPreview:
    is_few = cap is None or len(again.members) <= cap
    return GroupRetryPreview(
        count=len(again.members),
        fits=is_few and again.cost.fits(max_cost),
        members=[member_shape(member) for member in again.members],
        cost=cost_shape(again.cost),
    )
