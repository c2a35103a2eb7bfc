"""Places between neighbours: integers with gaps, renumbered a few at a time when a gap runs out."""

import itertools
from collections.abc import Sequence

GAP = 1_000_000


def between(lower: int | None, upper: int | None) -> int | None:
    """A position strictly between two neighbours, None where an end is open; None if there is no room."""
    if lower is None and upper is None:
        return 0
    if lower is None:
        assert upper is not None  # noqa: S101
        return upper - GAP
    if upper is None:
        return lower + GAP
    return (lower + upper) // 2 if upper - lower >= 2 else None


def spread(count: int, *, lower: int | None, upper: int) -> list[int] | None:
    """`count` rising positions strictly between the two, evenly; None if they do not fit."""
    if lower is None:
        lower = upper - GAP * (count + 1)
    step = (upper - lower) // (count + 1)
    return None if step < 1 else [lower + step * place for place in range(1, count + 1)]


def rising(positions: Sequence[int]) -> bool:
    return all(a < b for a, b in itertools.pairwise(positions))
