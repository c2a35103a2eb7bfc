"""The import contracts can fail, and the allow-lists that import-linter cannot say hold."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
CORE = ("duly.domain", "duly.ports", "duly.application")
ADAPTERS = ("storage", "worker", "timekeeper", "courier", "engines", "graphs", "settings")
HOME_OF = {
    "apsw": "duly.storage.sqlite",
    "asyncpg": "duly.storage.postgres",
    "cronsim": "duly.domain.cadence",
    "jwt": "duly.http",
    "langchain_core": "duly.graphs",
    "langgraph": "duly.graphs",
    "opentelemetry": "duly.system.tracing",
    "genai_prices": "duly.system.prices",
    "prometheus_client": "duly.system.telemetry",
    "structlog": "duly.system.telemetry",
    "fastapi": "duly.http",
    "starlette": "duly.http",
    "uvicorn": "duly.http",
}


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("duly", include_external_packages=True, cache_dir=None)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_core_needs_only_the_standard_library_cron_parser_and_zones(graph: grimp.ImportGraph) -> None:
    strangers = [
        f"{importer} imports {imported}"
        for importer, imported in imports(graph)
        if importer.startswith(CORE) and not imported.startswith("duly")
        if imported not in sys.stdlib_module_names | {"cronsim", "tzdata"}
    ]

    assert strangers == []


def test_only_bootstrap_names_adapters_and_settings(graph: grimp.ImportGraph) -> None:
    strangers = [
        f"{importer} imports {imported}"
        for importer, imported in imports(graph)
        for adapter in (f"duly.{name}" for name in ADAPTERS)
        if is_in(imported, adapter) and not is_in(importer, adapter) and not is_in(importer, "duly.bootstrap")
    ]

    assert strangers == []


def test_only_bootstrap_and_databases_read_clocks_and_dice(graph: grimp.ImportGraph) -> None:
    allowed = ("duly.system", "duly.bootstrap", "duly.storage.sqlite", "duly.storage.postgres")
    strangers = [
        f"{importer} imports {imported}"
        for importer, imported in imports(graph)
        if is_in(imported, "duly.system") and not any(is_in(importer, place) for place in allowed)
    ]

    assert strangers == []


def test_each_library_with_a_home_is_imported_there_alone(graph: grimp.ImportGraph) -> None:
    strangers = [
        f"{importer} imports {imported}"
        for importer, imported in imports(graph)
        if imported in HOME_OF and not is_in(importer, HOME_OF[imported])
    ]

    assert strangers == []


def test_the_contracts_hold() -> None:
    result = lint_imports(ROOT)

    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("domain/errors.py", "import duly.application", "Imports point inward"),
        ("worker/__init__.py", "import duly.settings", "Imports point inward"),
        ("helpers/__init__.py", "", "Imports point inward"),
        ("domain/errors.py", "import duly.domain.ids", "The domain's nouns have one order"),
        ("domain/oddments.py", "", "The domain's nouns have one order"),
        ("application/__init__.py", "import time", "The core meets no framework"),
        ("ports/__init__.py", "import apsw", "The core meets no framework"),
        ("domain/errors.py", "import asyncio", "The domain waits for nothing"),
        ("worker/__init__.py", "import duly.storage.sqlite", "The worker knows no storage"),
        ("worker/__init__.py", "import duly.ports.schedule_control", "The worker knows no storage"),
        ("storage/sqlite/__init__.py", "import duly.storage.postgres", "The two databases"),
    ],
)
def test_a_forbidden_import_breaks_its_contract(tree: Path, file: str, line: str, contract: str) -> None:
    ensure_module(tree, "domain/ids.py")
    ensure_module(tree, "ports/schedule_control.py")
    with ensure_module(tree, file).open("a") as module:
        module.write(f"\n{line}\n")

    result = lint_imports(tree)

    assert result.returncode == 1, result.stdout
    verdicts = [row.endswith(" BROKEN") for row in result.stdout.splitlines() if row.startswith(contract)]
    assert any(verdicts)


def imports(graph: grimp.ImportGraph) -> Iterator[tuple[str, str]]:
    for importer in sorted(graph.modules):
        if importer.startswith("duly"):
            for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                yield importer, imported


def is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def ensure_module(tree: Path, file: str) -> Path:
    path = tree / "src" / "duly" / file
    path.parent.mkdir(exist_ok=True)
    path.touch()
    return path


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "COLUMNS": "200"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
