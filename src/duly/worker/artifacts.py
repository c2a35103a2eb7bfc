"""Files that a command leaves in its folder: listed, moved to where they are kept, within limits."""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MOST_ARTIFACTS = 100
MOST_BYTES = 100 * 1_048_576


@dataclass(frozen=True, slots=True)
class Kept:
    name: str
    size: int
    sha256: str


@dataclass(slots=True)
class Sorting:
    """What was kept, and why something was not."""

    kept: list[Kept] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def keep_artifacts(source: Path, target: Path) -> Sorting:
    """Moves files by name, as many as the limits allow, from one folder to another of the same disk.

    Only what is a file: a link may lead anywhere.
    """
    sorting = Sorting()
    room = MOST_BYTES
    for path in _files(source):
        name = path.relative_to(source).as_posix()
        size = path.lstat().st_size
        if reason := _refusal(path, name, size, room=room, count=len(sorting.kept)):
            sorting.refused.append(f"{name!a} is not kept: {reason}")
            continue
        room -= size
        moved = target / name
        moved.parent.mkdir(parents=True, exist_ok=True)
        path.replace(moved)
        with moved.open("rb") as file:
            sorting.kept.append(Kept(name, size, hashlib.file_digest(file, "sha256").hexdigest()))
    return sorting


def _files(source: Path) -> Iterator[Path]:
    """Whatever is no folder, in the order of names."""
    found = [Path(folder, name) for folder, _, names in os.walk(source) for name in names]
    return iter(sorted(found))


def _refusal(path: Path, name: str, size: int, *, room: int, count: int) -> str | None:
    if not stat.S_ISREG(path.lstat().st_mode):
        return "it is no file"
    if count >= MOST_ARTIFACTS:
        return f"a job may leave {MOST_ARTIFACTS} files"
    if size > room:
        return f"a job may leave {MOST_BYTES:,} bytes"
    try:
        name.encode()
    except UnicodeEncodeError:
        return "its name is no text"
    return None
