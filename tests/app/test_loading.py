"""Programs found by file and by module, afresh each time, and what is told when they cannot be."""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from duly import Duly
from duly.app import loading
from duly.app.loading import AppNotLoaded, load

ONE = "from duly import Duly\nimport loaded_words\napp = Duly(name=loaded_words.NAME)\nagain = app\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(loading, "_brought", {})
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def write(**modules: str) -> None:
    for name, text in modules.items():
        Path(f"{name}.py").write_text(text)


@pytest.mark.parametrize(
    "reference",
    ["loaded_app.py", "./loaded_app.py", "loaded_app.py:again", "loaded_app", "loaded_app:app"],
)
def test_an_app_is_found_by_file_or_module(reference: str) -> None:
    write(loaded_app=ONE, loaded_words="NAME = 'one'")

    assert load(reference).name == "one"


def test_an_app_is_found_by_an_absolute_path_and_in_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loaded_package").mkdir()
    (tmp_path / "loaded_package" / "work.py").write_text("import duly\nclass Of:\n    app = duly.Duly(name='deep')\n")

    assert load("loaded_package.work:Of.app").name == "deep"

    write(loaded_app=ONE, loaded_words="NAME = 'one'")
    monkeypatch.chdir("/")
    assert load(str(tmp_path / "loaded_app.py")).name == "one"


def test_loaded_again_a_program_is_new_with_all_its_modules_and_nothing_else_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    write(loaded_app=ONE, loaded_words="NAME = 'one'")
    first, words, duly = load("loaded_app.py"), sys.modules["loaded_words"], sys.modules["duly"]

    # As long as the old text and of the same second, so that nothing but the text tells them apart.
    written = Path("loaded_words.py").stat()
    write(loaded_words="NAME = 'two'")
    os.utime("loaded_words.py", ns=(written.st_atime_ns, written.st_mtime_ns))
    second = load("loaded_app.py")

    assert (first.name, second.name) == ("one", "two")
    assert sys.modules["loaded_words"] is not words
    assert sys.modules["duly"] is duly
    assert isinstance(second, Duly)
    write(loaded_app="from duly import Duly\napp = Duly()\n")
    load("loaded_app.py")
    assert "loaded_words" not in sys.modules


def test_a_program_is_the_same_by_whatever_name_it_is_loaded() -> None:
    write(loaded_app=ONE, loaded_words="NAME = 'one'")

    apps = [load(name) for name in ("loaded_app.py", "./loaded_app.py", "loaded_app:app", "loaded_app.py")]

    assert len({id(app) for app in apps}) == 4
    assert sys.modules["loaded_app"].app is apps[-1]


@pytest.mark.store("sqlite")
def test_an_isolated_function_of_a_loaded_file_runs() -> None:
    write(
        loaded_app="""
import os
from duly import Duly

app = Duly("duly.db")


@app.job(isolate=True)
def pid() -> int:
    return os.getpid()
"""
    )
    app = load("loaded_app.py")

    async def scenario() -> int:
        async with app.running():
            return int(await app.result(await app.put("pid"), timeout=60))

    assert asyncio.run(scenario()) != os.getpid()


def test_a_program_that_does_not_load_leaves_the_old_one_as_it_was() -> None:
    write(loaded_app=ONE, loaded_words="NAME = 'one'")
    load("loaded_app.py")
    before = sys.modules["loaded_app"], sys.modules["loaded_words"]

    write(loaded_app="import loaded_words\nimport loaded_more\n1 / 0\n", loaded_more="")
    with pytest.raises(AppNotLoaded):
        load("loaded_app.py")

    assert (sys.modules["loaded_app"], sys.modules["loaded_words"]) == before
    assert "loaded_more" not in sys.modules


@pytest.mark.parametrize(
    ("text", "reference", "told"),
    [
        ("", "loaded_app.py", "has no Duly app"),
        ("from duly import Duly\na = Duly()\nb = Duly()", "loaded_app", "several apps: a, b"),
        ("app = 1", "loaded_app.py:app", "'app' is no Duly app"),
        ("", "loaded_app.py:a.b.c", "'a.b.c' is no Duly app"),
        ("", "no_such_module:app", "no module 'no_such_module'"),
        ("", "loaded_app.nothing:app", "loaded_app"),
        ("", "nowhere.py", "no such file"),
        ("", "a b:app", "is no module"),
        ("", "queue.py", "another module is named 'queue'"),
        ("", "pytest.py", "another module is named 'pytest'"),
        ("", "my-app.py", "is no module's name"),
        ("import no_such_library", "loaded_app.py", "No module named 'no_such_library'"),
        ("raise SystemExit(3)", "loaded_app.py", "SystemExit: 3"),
        ("def f(:", "loaded_app.py", "SyntaxError"),
    ],
)
def test_what_cannot_be_loaded_says_why(text: str, reference: str, told: str) -> None:
    write(loaded_app=text, queue="", pytest="")
    Path("my-app.py").touch()

    with pytest.raises(AppNotLoaded) as refused:
        load(reference)

    assert told in str(refused.value)
    assert str(refused.value).startswith(f"app: {reference}: ")


def test_the_trace_of_a_failing_program_is_its_own_lines_alone() -> None:
    write(loaded_app="import loaded_words\n", loaded_words="def f():\n    1 / 0\nf()\n")

    with pytest.raises(AppNotLoaded) as refused:
        load("loaded_app.py")

    lines = [line for line in refused.value.trace.splitlines() if line.startswith("  File")]
    assert lines
    assert "loaded_app.py" in lines[0]
    assert "loading.py" not in refused.value.trace
    assert refused.value.trace.splitlines()[-1].strip().strip("^~") in ("1 / 0", "")
    assert "ZeroDivisionError" not in refused.value.trace, "it is in the reason already"
    assert refused.value.reason.endswith("cannot be loaded: ZeroDivisionError: division by zero")


def test_of_what_duly_refuses_only_the_programs_own_line_is_shown() -> None:
    write(loaded_app="from duly import Duly\napp = Duly()\napp.pool('x', limit=-1)\n")

    with pytest.raises(AppNotLoaded) as refused:
        load("loaded_app.py")

    files = [line for line in refused.value.trace.splitlines() if line.startswith("  File")]
    assert len(files) == 1
    assert files[0].endswith('loaded_app.py", line 3, in <module>')
    assert "cannot be loaded: InvalidInput: limit: -1 is out of range" in refused.value.reason


def test_a_program_that_is_no_python_is_shown_where_it_is_not() -> None:
    write(loaded_app="def f(:\n")

    with pytest.raises(AppNotLoaded) as refused:
        load("loaded_app.py")

    assert "def f(:" in refused.value.trace
    assert "line 1" in refused.value.trace
