"""Named SQL statements, read from `.sql` files: shared text once, a database overrides by the same name."""

import re
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Literal

Dialect = Literal["sqlite", "postgres"]

_NAME = re.compile(r"^-- name: (\w+)\s*$")
_COLUMNS = re.compile(r"^-- columns: (.+)$")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z]\w*)")
# Row locks exist on Postgres only: SQLite has one writer, and everything it reads stays true until commit.
_LOCK = re.compile(r"\{lock(?::([a-z ]+))?\}")


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL in the database's own parameter style.

    `columns` are bound from each row of a batch, the other parameters once for the whole batch.
    """

    name: str
    sql: str
    parameters: tuple[str, ...]
    columns: tuple[str, ...] = ()

    def bind(self, values: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(values[name] for name in self.parameters)


def load_statements(dialect: Dialect) -> dict[str, Statement]:
    statements: dict[str, Statement] = {}
    for folder in ("sql", f"{dialect}/sql"):
        for file in _sql_files(files("duly.storage").joinpath(folder)):
            statements |= parse_statements(file.read_text(encoding="utf-8"), dialect)
    return statements


def parse_statements(text: str, dialect: Dialect) -> dict[str, Statement]:
    statements: dict[str, Statement] = {}
    name, columns, body = "", (), list[str]()
    for line in [*text.splitlines(), "-- name: end"]:
        if heading := _NAME.match(line):
            if name:
                if name in statements:
                    raise ValueError(f"two statements are named {name}")
                statements[name] = _statement(name, columns, "\n".join(body).strip(), dialect)
            name, columns, body = heading[1], (), []
        elif listed := _COLUMNS.match(line):
            columns = tuple(listed[1].replace(",", " ").split())
        elif not line.startswith("--"):
            body.append(line)
    return statements


def _statement(name: str, columns: tuple[str, ...], text: str, dialect: Dialect) -> Statement:
    text = _LOCK.sub(lambda lock: f"FOR {(lock[1] or 'update').upper()}" if dialect == "postgres" else "", text)
    parameters: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in parameters:
            parameters.append(match[1])
        mark = "?" if dialect == "sqlite" else "$"
        return f"{mark}{parameters.index(match[1]) + 1}"

    sql = _PARAMETER.sub(number, text).rstrip(";")
    return Statement(name=name, sql=sql, parameters=tuple(parameters), columns=columns)


def _sql_files(folder: Traversable) -> list[Traversable]:
    if not folder.is_dir():
        return []
    return sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda file: file.name)
