"""Why a job, a group or a run of a workflow is as it is, in JSON."""

from typing import Annotated

from pydantic import Field

from duly.domain.explanations import Explained, Subject
from duly.wire.shapes import Shape


class Fact(Shape):
    fact: Annotated[str, Field(description="In one word, for programs.", examples=["pool_full"])]
    sentence: Annotated[str, Field(description="For people.")]
    about: Annotated[list[str], Field(description="The ids that the sentence names.")]


class Reasons(Shape):
    subject: Subject
    id: str
    answer: Annotated[str, Field(description="In one word, for programs.", examples=["waiting"])]
    sentences: Annotated[list[str], Field(description="For people: those of the facts, in order.")]
    facts: Annotated[list[Fact], Field(description="What is recorded; what to do next comes last.")]


def reasons_shape(explained: Explained) -> Reasons:
    return Reasons(
        subject=explained.subject,
        id=explained.id,
        answer=explained.answer,
        sentences=list(explained.sentences),
        facts=[Fact(fact=fact.name, sentence=fact.sentence, about=list(fact.about)) for fact in explained.facts],
    )
