"""Functions that tests register by their place."""

from typing import Any


def greet(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    return {"greeting": f"hello {input['name']}"}


class Kept:
    inner = staticmethod(greet)
