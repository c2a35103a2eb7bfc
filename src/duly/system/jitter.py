"""Chance for back-off, so that callers who failed together do not come back together."""

import random


def fraction() -> float:
    """Uniform in [0, 1); never used for ids or secrets."""
    return random.random()  # noqa: S311
