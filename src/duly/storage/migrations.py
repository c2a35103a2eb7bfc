"""The order of schema changes: numbered files, applied once each, never across a version this package does
not know.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import ClassVar

from duly.domain.errors import Conflict

_FILE = re.compile(r"^(\d{4})_([a-z0-9_]+)\.sql$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    version: int
    name: str
    sql: str


Applied = tuple[int, str]
"""Version and name, as recorded in `schema_migrations`."""


class SchemaTooNew(Conflict):
    """A newer Duly has migrated this database; an older one could misread what it finds there."""

    code: ClassVar[str] = "schema_too_new"

    def __init__(self, *, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(
            f"the database has schema version {found}, this duly knows versions up to {known}: upgrade duly"
        )


class SchemaTooOld(Conflict):
    """The schema lacks what this Duly needs, and it was told not to migrate."""

    code: ClassVar[str] = "schema_too_old"

    def __init__(self, *, found: int, needed: int) -> None:
        self.found = found
        self.needed = needed
        super().__init__(
            f"the database has schema version {found}, this duly needs {needed}:"
            " start it once with migrations on, as a role that may create tables"
        )


class SchemaMismatch(Conflict):
    """The database was migrated by other files than ours, so what its tables mean is unknown."""

    code: ClassVar[str] = "schema_mismatch"


def load_migrations(folder: Traversable) -> tuple[Migration, ...]:
    """All `NNNN_name.sql` of the folder in order; a gap, a double or a stray name is a broken package."""
    found = [file for file in folder.iterdir() if file.name.endswith(".sql")]
    migrations = tuple(_read(file) for file in sorted(found, key=lambda file: file.name))
    for expected, migration in enumerate(migrations, start=1):
        if migration.version != expected:
            raise ValueError(f"migration {migration.version:04}_{migration.name} stands where {expected:04} belongs")
    return migrations


def pending_migrations(known: Sequence[Migration], applied: Sequence[Applied]) -> tuple[Migration, ...]:
    """What is still to apply; refuses a database whose history is not a beginning of ours."""
    newest = max((version for version, _ in applied), default=0)
    if newest > len(known):
        raise SchemaTooNew(found=newest, known=len(known))
    for migration, (version, name) in zip(known, sorted(applied), strict=False):
        if (migration.version, migration.name) != (version, name):
            raise SchemaMismatch(
                f"the database was migrated by {version:04}_{name}, this duly has"
                f" {migration.version:04}_{migration.name}: use the duly that created it, or restore a backup"
            )
    return tuple(known[len(applied) :])


def _read(file: Traversable) -> Migration:
    match = _FILE.match(file.name)
    if match is None:
        raise ValueError(f"migration {file.name} is not named NNNN_name.sql")
    return Migration(version=int(match[1]), name=match[2], sql=file.read_text(encoding="utf-8"))
