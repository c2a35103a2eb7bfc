"""Who asks, how Duly is, and why things are as they are, in JSON."""

from typing import Annotated, Literal

from pydantic import Field

from duly.domain.explanations import Explanation as DomainExplanation
from duly.domain.instants import SECOND, Instant, moment_of
from duly.domain.tokens import Caller, Role
from duly.wire.moments import Moment
from duly.wire.shapes import Shape


class Index(Shape):
    name: Literal["Duly"] = "Duly"
    version: str
    links: dict[str, str]


class Me(Shape):
    owner: str
    role: Role
    token_id: Annotated[str | None, Field(description="null: a caller on this machine, who needs no token.")]


class Alive(Shape):
    status: Literal["ok"] = "ok"


class Ready(Shape):
    status: Literal["ready"] = "ready"
    alive_at: Annotated[Moment | None, Field(description="When a timekeeper was last seen.")]
    next_fire_at: Moment | None


class Explanation(Shape):
    schedule_id: str
    slot: Moment | None
    answer: Annotated[str, Field(description="In one word, for programs.", examples=["skipped"])]
    sentences: Annotated[list[str], Field(description="For people.")]


def me_shape(caller: Caller) -> Me:
    return Me(owner=caller.owner, role=caller.role, token_id=caller.token_id)


def explanation_shape(explanation: DomainExplanation) -> Explanation:
    slot = explanation.slot
    return Explanation(
        schedule_id=explanation.schedule_id,
        slot=None if slot is None else moment_of(Instant(slot * SECOND)),
        answer=explanation.answer,
        sentences=list(explanation.sentences),
    )
