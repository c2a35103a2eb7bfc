"""Files that people write for a command: TOML, and YAML where a library reads it."""

import importlib
import tomllib
from pathlib import Path
from typing import Any

from duly.domain.errors import InvalidInput, NotFound

LARGEST_BYTES = 4_194_304
_YAML = (".yaml", ".yml")


def table_in(path: str) -> Any:
    """What the file says, by its ending; nothing of it is believed yet."""
    text = _text_in(path)
    suffix = Path(path).suffix.lower()
    if suffix in _YAML:
        return _yaml(path, text)
    if suffix != ".toml":
        raise InvalidInput("FILE", f"{path} ends with none of .toml, .yaml, .yml", fix="rename it")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(path, f"is no TOML: {str(error) or 'it is nested too deep'}") from None


def _text_in(path: str) -> str:
    try:
        read = Path(path).read_bytes()
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except OSError as error:
        raise InvalidInput("FILE", f"{path} cannot be read: {error.strerror}") from None
    if len(read) > LARGEST_BYTES:
        raise InvalidInput("FILE", f"{path} has {len(read)} bytes", fix=f"use at most {LARGEST_BYTES}")
    try:
        return read.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput("FILE", f"{path} is not UTF-8", position=error.start) from None


def _yaml(path: str, text: str) -> Any:
    """As plain data only: a file cannot have anything made of its own choosing."""
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        fix = "pip install 'duly[yaml]', or write it as TOML"
        raise InvalidInput("FILE", f"{path} is YAML, which nothing here can read", fix=fix) from None
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InvalidInput(path, f"is no YAML: {' '.join(str(error).split())[:300]}") from None
