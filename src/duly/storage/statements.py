"""Named SQL statements, read from `.sql` files: shared text once, a database overrides by the same name."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Literal

Dialect = Literal["sqlite", "postgres"]

_NAME = re.compile(r"^-- name: (\w+)\s*$")
_FRAGMENT = re.compile(r"^-- fragment: (\w+)\s*$")
_COLUMNS = re.compile(r"^-- columns: (.+)$")
_REPEATS = re.compile(r"^-- repeats: (.+)$")
_CHANGED = re.compile(r"^-- changed: (\w+)\s*$")
_ALONE = re.compile(r"^-- alone: (\w+)\s*$")
_TELLING = re.compile(r"^-- telling: (\w+)\s*$")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z]\w*)")
_FRAGMENT_USE = re.compile(r"\{(\w+)\}")
# Row locks exist on Postgres only: SQLite has one writer, and everything it reads stays true until commit.
_LOCKING = re.compile(r"\bFOR (?:NO KEY )?(?:UPDATE|SHARE|KEY)\b")
_LOCK = re.compile(r"\{lock(?::([a-z ]+))?\}")


@dataclass(frozen=True)
class Statement:
    """SQL in the database's own parameter style.

    `columns` are bound from each row of a batch, the other parameters once for the whole batch. Those that `repeats`
    names may be sent once where all rows have the same value: the statement fills it in. `alone` is the statement to
    run instead for a batch of one, `telling` the one that takes a `hint` along. `changed` is the column by which the
    rows are told that a statement has changed.
    """

    name: str
    sql: str
    parameters: tuple[str, ...]
    columns: tuple[str, ...] = ()
    repeats: frozenset[str] = frozenset()
    alone: str | None = None
    telling: str | None = None
    changed: str | None = None

    def bind(self, values: dict[str, Any]) -> tuple[Any, ...]:
        return tuple([values[name] for name in self.parameters])

    def bind_row(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values of `columns`, when there are no other parameters."""
        return row if self.parameters == self.columns else tuple([row[place] for place in self._places])

    def bind_one(self, row: tuple[Any, ...], values: dict[str, Any]) -> tuple[Any, ...]:
        """The values of `columns` from a row, those of other parameters by name."""
        return self.bind({**values, **dict(zip(self.columns, row, strict=True))}) if values else self.bind_row(row)

    @cached_property
    def only_looks(self) -> bool:
        """Certainly writes and locks nothing."""
        return self.sql.startswith("SELECT") and not _LOCKING.search(self.sql)

    @cached_property
    def _places(self) -> tuple[int, ...]:
        return tuple(map(self.columns.index, self.parameters))


@cache
def load_statements(dialect: Dialect) -> dict[str, Statement]:
    """Shared files first, then the database's own, which override statements and fragments by name."""
    texts = [
        file.read_text(encoding="utf-8")
        for folder in ("sql", f"{dialect}/sql")
        for file in _sql_files(files("duly.storage").joinpath(folder))
    ]
    return parse_statements(texts, dialect)


def parse_statements(texts: Iterable[str], dialect: Dialect) -> dict[str, Statement]:
    if isinstance(texts, str):
        raise TypeError("pass the texts of the files, not one text: a string would be read letter by letter")
    sections = [section for text in texts for section in _sections(text)]
    fragments = {section.name: section.body for section in sections if section.is_fragment}
    return {section.name: _statement(section, fragments, dialect) for section in sections if not section.is_fragment}


@dataclass(slots=True)
class _Section:
    name: str
    is_fragment: bool
    columns: tuple[str, ...] = ()
    repeats: frozenset[str] = frozenset()
    alone: str | None = None
    telling: str | None = None
    changed: str | None = None
    body: str = ""


def _sections(text: str) -> list[_Section]:
    sections: list[_Section] = []
    for line in text.splitlines():
        if heading := _NAME.match(line) or _FRAGMENT.match(line):
            if any(section.name == heading[1] for section in sections):
                raise ValueError(f"two statements of one file are named {heading[1]}")
            sections.append(_Section(name=heading[1], is_fragment=line.startswith("-- fragment")))
        elif listed := _COLUMNS.match(line):
            sections[-1].columns = tuple(listed[1].replace(",", " ").split())
        elif repeated := _REPEATS.match(line):
            sections[-1].repeats = frozenset(repeated[1].split())
        elif lone := _ALONE.match(line):
            sections[-1].alone = lone[1]
        elif telling := _TELLING.match(line):
            sections[-1].telling = telling[1]
        elif told := _CHANGED.match(line):
            sections[-1].changed = told[1]
        elif not line.startswith("--") and sections:
            sections[-1].body += line + "\n"
    return sections


def _statement(section: _Section, fragments: dict[str, str], dialect: Dialect) -> Statement:
    text = _LOCK.sub(lambda lock: f"FOR {(lock[1] or 'update').upper()}" if dialect == "postgres" else "", section.body)
    text = _FRAGMENT_USE.sub(lambda use: fragments[use[1]].strip(), text)
    parameters: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in parameters:
            parameters.append(match[1])
        mark = "?" if dialect == "sqlite" else "$"
        return f"{mark}{parameters.index(match[1]) + 1}"

    sql = _PARAMETER.sub(number, text).strip().rstrip(";")
    return Statement(
        name=section.name,
        sql=sql,
        parameters=tuple(parameters),
        columns=section.columns,
        repeats=section.repeats,
        alone=section.alone,
        telling=section.telling,
        changed=section.changed,
    )


def _sql_files(folder: Traversable) -> list[Traversable]:
    if not folder.is_dir():
        return []
    return sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda file: file.name)
