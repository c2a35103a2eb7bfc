"""An answer about anything that has an id: facts, each a word for programs and a sentence for people."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from duly.domain.errors import NotFound

MOST_NAMED = 5
"""So many ids a sentence names; the others it counts."""


class Subject(StrEnum):
    JOB = "job"
    GROUP = "group"
    WORKFLOW_RUN = "workflow_run"
    EXECUTION = "execution"


class Fact(NamedTuple):
    """`name` is one word for programs, `about` the ids that the sentence names."""

    name: str
    sentence: str
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Why a thing is as it is; what to do next, if there is something to do, is the last fact."""

    subject: Subject
    id: str
    answer: str
    facts: Sequence[Fact]

    @property
    def sentences(self) -> Sequence[str]:
        return [fact.sentence for fact in self.facts]


def several(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


def counted(count: int, noun: str, many: str | None = None) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {many or noun + 's'}"


class NothingKnown(NotFound):
    """Of an id that nothing has, or nothing that the caller may see."""

    code = "unknown_id"

    def __init__(self, asked: str) -> None:
        super().__init__(f"there is no schedule, run, job, group, execution or review {asked[:255]!r}")
        self.asked = asked
