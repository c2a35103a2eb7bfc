"""What was measured, as a table for people and as JSON for later."""

import json
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.act import contender, scheduler
from bench.node import NODE_PEERS
from bench.rows import Row


@dataclass(frozen=True)
class Result:
    """Figures of one row by contender, one for each round: those of one round stood side by side."""

    row: Row
    figures: dict[str, list[float]] = field(default_factory=dict)

    def ratios(self, peer: str) -> list[float]:
        """Duly's figure as a multiple of the peer's, round by round."""
        return [a / b for a, b in zip(self.figures[self.row.ours], self.figures[peer], strict=True)]

    def as_json(self) -> dict[str, Any]:
        return {
            "work": self.row.work,
            "store": self.row.store,
            "unit": self.row.unit,
            "ours": self.row.ours,
            "jobs": self.row.jobs,
            "figures": self.figures,
            "ratios": {peer: self.ratios(peer) for peer in self._peers()},
        }

    def lines(self) -> list[str]:
        ours = statistics.median(self.figures[self.row.ours])
        title = f"{self.row.store} {self.row.work}"
        return [self._line(title, ours, peer) for peer in self._peers()]

    def _peers(self) -> list[str]:
        return [peer for peer in self.row.peers if self.figures.get(peer)]

    def _line(self, title: str, ours: float, peer: str) -> str:
        ratios = self.ratios(peer)
        ratio = statistics.median(ratios)
        theirs = statistics.median(self.figures[peer])
        floor, goal = self.row.goals.get(peer, (None, None))
        wanted, verdict = "", ""
        if floor is not None and goal is not None:
            wanted = f"{floor:g}× / {goal:g}×"
            verdict = self._verdict(ratio, floor, goal)
        span = f"({min(ratios):.2f} to {max(ratios):.2f})"
        compared = f"**{ratio:.2f}×** {span}"
        return f"| {title} | {_number(ours)} | {peer} | {_number(theirs)} | {compared} | {wanted} | {verdict} |"

    def _verdict(self, ratio: float, floor: float, goal: float) -> str:
        if self.row.lower_is_better:
            ratio, floor, goal = -ratio, -floor, -goal
        return "goal" if ratio >= goal else "floor" if ratio >= floor else "missed"


HEADER = """\
| work | Duly | against | theirs | Duly / theirs, median (least to most) | floor / goal | reached |
|---|---|---|---|---|---|---|"""


def machine(server_version: str | None) -> dict[str, Any]:
    import apsw

    return {
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "sqlite_in_apsw": apsw.sqlite_lib_version(),
        "postgres": server_version,
        "load_average": os.getloadavg(),
    }


def contestants(rows: Sequence[Row]) -> dict[str, dict[str, str]]:
    told: dict[str, dict[str, str]] = {}
    for name, is_of_schedules in sorted({(name, row.is_of_schedules) for row in rows for name in row.jobs}):
        if name in NODE_PEERS:
            told[name] = {"settings": NODE_PEERS[name].settings, name: NODE_PEERS[name].version()}
            continue
        who = scheduler(name) if is_of_schedules else contender(name)
        versions = {package: metadata.version(package) for package in who.packages}
        told[f"{name}, schedules" if is_of_schedules else name] = {"settings": who.settings} | versions
    return told


def save(content: dict[str, Any], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}.json"
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return path


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
