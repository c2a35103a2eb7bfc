"""A logbook of one job, kept in memory."""

from duly.domain.instants import Instant
from duly.domain.logs import Artifact, LogLine, Progress


class Page:
    """Under a clock that ticks with every look."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.progress: list[Progress] = []
        self.artifacts: list[Artifact] = []
        self._now = 0

    def now(self) -> Instant:
        self._now += 1
        return Instant(self._now)

    def add_line(self, line: LogLine) -> None:
        self.lines.append(line)

    def add_progress(self, progress: Progress) -> None:
        self.progress.append(progress)

    def add_artifact(self, artifact: Artifact) -> None:
        self.artifacts.append(artifact)

    @property
    def texts(self) -> list[str]:
        return [line.text for line in self.lines]
