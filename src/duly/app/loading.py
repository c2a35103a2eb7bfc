"""Finds the app of a program by `module:attribute` or by the path of a file, as it is on disk now."""

import importlib
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, TracebackType
from typing import ClassVar

from duly.app.duly import Duly
from duly.bootstrap import own_frames
from duly.domain.errors import InvalidInput

# By folder and module, what loading it brought: to load it again is to load all of that again.
_brought: dict[tuple[Path, str], dict[str, ModuleType]] = {}


class AppNotLoaded(InvalidInput):
    """`trace` is which of the program's own lines raised, if they did; what they raised is in the reason."""

    code: ClassVar[str] = "app_not_loaded"

    def __init__(self, reference: str, reason: str, *, fix: str | None = None, trace: str = "") -> None:
        super().__init__("app", f"{reference}: {reason}", fix=fix)
        self.reference = reference
        self.trace = trace


def load(reference: str) -> Duly:
    """The app that `schedules.py`, `schedules.py:app`, `package.module` or `package.module:app` names.

    Loaded again, all modules of the program are new ones. If that fails, the old ones are back as they were.
    """
    path, module, attribute = _read(reference)
    folder = path.parent if path else Path.cwd()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    with _afresh(folder, module):
        if path:
            _require_own_name(reference, path, module)
        return _app_in(reference, _imported(reference, module), attribute)


def _read(reference: str) -> tuple[Path | None, str, str]:
    name, _, attribute = reference.partition(":")
    if not (name.endswith(".py") or "/" in name):
        if not all(part.isidentifier() for part in name.split(".")):
            raise AppNotLoaded(reference, "is no module", fix="write schedules.py, or package.module:app")
        return None, name, attribute
    path = Path(name).resolve()
    if not path.is_file():
        raise AppNotLoaded(reference, "there is no such file", fix="write schedules.py, or package.module:app")
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise AppNotLoaded(reference, "is no module's name", fix="call the file something like schedules.py")
    return path, path.stem, attribute


def _require_own_name(reference: str, path: Path, module: str) -> None:
    """A file that is called like a library would be mistaken for it, by itself or by others."""
    loaded = getattr(sys.modules.get(module), "__file__", None)
    if module in sys.stdlib_module_names or (module in sys.modules and loaded != str(path)):
        raise AppNotLoaded(reference, f"another module is named {module!r}", fix="rename the file")


@contextmanager
def _afresh(folder: Path, module: str) -> Iterator[None]:
    known = {module: sys.modules.get(module), **_brought.get((folder, module), {})}
    old = {
        name: each for name, each in known.items() if each and sys.modules.get(name) is each and _is_in(folder, each)
    }
    for name in old:
        del sys.modules[name]
    before, writes_bytecode = set(sys.modules), sys.dont_write_bytecode
    # It is told apart by its second and its size: two changes within a second would be taken for one.
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        yield
    except BaseException:
        for name in _own_modules(before, folder):
            del sys.modules[name]
        sys.modules.update(old)
        raise
    finally:
        sys.dont_write_bytecode = writes_bytecode
    _brought[folder, module] = _own_modules(before, folder)


def _own_modules(before: set[str], folder: Path) -> dict[str, ModuleType]:
    """What was loaded since, of the program itself."""
    return {name: each for name, each in list(sys.modules.items()) if name not in before and _is_in(folder, each)}


def _is_in(folder: Path, module: ModuleType) -> bool:
    """Libraries are not the program's, though they may lie in a folder of its own."""
    file = getattr(module, "__file__", None)
    if not file or module.__name__.partition(".")[0] == "duly":
        return False
    libraries = [Path(sysconfig.get_path(kind)) for kind in ("stdlib", "purelib", "platlib")]
    path = Path(file).absolute()
    return path.is_relative_to(folder) and not any(path.is_relative_to(library) for library in libraries)


def _imported(reference: str, module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is not None and (module == missing.name or module.startswith(f"{missing.name}.")):
            raise AppNotLoaded(reference, f"there is no module {missing.name!r} here", fix="name a file") from None
        raise _failed(reference, missing) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a program raises is its own failure
        raise _failed(reference, error) from None


def _failed(reference: str, error: BaseException) -> AppNotLoaded:
    *before, said = "".join(traceback.format_exception_only(error)).strip("\n").splitlines()
    where = "\n".join(before) if isinstance(error, SyntaxError) else ""
    trace = "".join(own_frames(error.with_traceback(_after_this(error.__traceback__)))) + where
    told = said.strip().removeprefix(f"{type(error).__module__}.")
    return AppNotLoaded(reference, f"cannot be loaded: {told}", trace=trace)


def _after_this(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


def _app_in(reference: str, module: ModuleType, attribute: str) -> Duly:
    if attribute:
        found: object = module
        for name in attribute.split("."):
            found = getattr(found, name, None)
        if not isinstance(found, Duly):
            raise AppNotLoaded(reference, f"{attribute!r} is no Duly app", fix="write app = Duly() there")
        return found
    apps = {id(value): (name, value) for name, value in vars(module).items() if isinstance(value, Duly)}
    if not apps:
        raise AppNotLoaded(reference, "has no Duly app", fix="write app = Duly() there")
    if len(apps) > 1:
        names = ", ".join(name for name, _ in apps.values())
        raise AppNotLoaded(reference, f"has several apps: {names}", fix="name one of them after a colon")
    ((_, app),) = apps.values()
    return app
