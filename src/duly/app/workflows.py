"""Actions and workflows that a program declares."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from duly.app.declared import name_for
from duly.app.register import Register
from duly.bootstrap import Queue, Registry
from duly.domain.errors import InvalidInput
from duly.domain.workflows import plan_of


def declare_action(registry: Registry, named: Any, found_at: Any) -> Any:
    """A function stays what it is, so that this can decorate it."""
    if not isinstance(named, str):
        registry.add_action(name_for(named) if callable(named) else str(named), named)
        return named
    if found_at is not None:
        registry.add_action(named, found_at)
        return named
    if ":" in named:
        registry.add_action(named, named)

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        registry.add_action(named, function)
        return function

    return declare


def workflow_of(document: Mapping[str, Any] | str | Path) -> tuple[Mapping[str, Any], str]:
    """Checked at once, apart from its actions: those may be declared later."""
    found = document if isinstance(document, Mapping) else _read(Path(document))
    return found, plan_of(dict(found) if isinstance(found, Mapping) else found).name


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput("workflow", f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InvalidInput("workflow", f"{path} is no JSON: {error}") from None


async def deploy_declared(queue: Queue, register: Register, *, program: str, owner: str) -> None:
    actions = register.found_at.actions
    if actions:
        await queue.workflows.register_actions(program, actions, owner=owner)
    for document in register.workflows:
        await queue.workflows.deploy(document, owner=owner, knows=actions)
