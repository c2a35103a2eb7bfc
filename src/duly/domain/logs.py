"""What a run says while it goes on: lines, how far it has come, and the files it left."""

from enum import StrEnum
from typing import NamedTuple

from duly.domain.ids import JobId
from duly.domain.instants import Instant

LONGEST_LINE_BYTES = 8_192
MOST_BYTES_PER_JOB = 1_048_576


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    STDOUT = "stdout"  # a line that a process printed
    STDERR = "stderr"


class LogLine(NamedTuple):
    """`seq` counts the lines of a job from 1; one that is missing was lost on its way to the store."""

    job_id: JobId
    seq: int
    at: Instant
    level: LogLevel
    text: str


class Progress(NamedTuple):
    """How much of a job is done, in thousandths, and what it says about it. Only the newest is kept."""

    job_id: JobId
    at: Instant
    permille: int
    note: str

    @property
    def fraction(self) -> float:
        return self.permille / 1000


class Artifact(NamedTuple):
    """A file that a job left: its name below the job's own folder, and what it held."""

    job_id: JobId
    name: str
    size: int
    sha256: str


def line_text(raw: bytes) -> str:
    """A line as it is kept: bounded, and only characters that both databases keep."""
    text = raw[:LONGEST_LINE_BYTES].decode("utf-8", "replace").rstrip("\r").replace("\0", "\N{REPLACEMENT CHARACTER}")
    beyond = len(raw) - LONGEST_LINE_BYTES
    return f"{text} … {beyond:,} more bytes" if beyond > 0 else text
