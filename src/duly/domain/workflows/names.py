"""What workflows are called: their names and versions, their graphs, their schedules, the keys of their runs."""

import hashlib
import re

from duly.domain.errors import InvalidInput
from duly.domain.ids import ScheduleId
from duly.domain.texts import whole_number_of

PROVIDER = "dag"
MOST_VERSIONS = 1_000_000

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}", re.ASCII)


def name_of(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidInput("name", f"{value!a:.60} is no name of a workflow", fix="use 1 to 63 of a-z 0-9 _ . -")
    return value


def version_of(value: object) -> int:
    return whole_number_of(value, field="version", least=1, most=MOST_VERSIONS)


def graph_id_of(name: str, version: int | None) -> str:
    return f"{PROVIDER}:{name}" if version is None else f"{PROVIDER}:{name}@{version}"


def named_by(graph_id: str) -> tuple[str, int | None] | None:
    """The workflow and version that a graph's id names; None if it names none."""
    provider, _, rest = graph_id.partition(":")
    name, at, version = rest.partition("@")
    if provider != PROVIDER or not _NAME.fullmatch(name) or (at and not re.fullmatch(r"[1-9][0-9]{0,6}", version)):
        return None
    return name, int(version) if at else None


def schedule_id_of(name: str, trigger: str) -> ScheduleId:
    return ScheduleId(f"workflow:{name}:{trigger}")


def run_key(schedule_id: str, slot: int) -> str:
    """The key of a slot in one word: the same on every machine, and of no other slot."""
    return hashlib.sha256(f"{schedule_id}:{slot}".encode()).hexdigest()


def launch_key(owner: str, key: str) -> str:
    return "launch/" + hashlib.sha256(f"{owner}\n{key}".encode()).hexdigest()
