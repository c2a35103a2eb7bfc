"""Places between neighbours: integers with gaps, renumbered a few at a time when a gap runs out."""

GAP = 1_000_000


def between(lower: int | None, upper: int) -> int | None:
    """A position strictly between two neighbours, None where the front is open; None if there is no room."""
    if lower is None:
        return upper - GAP
    return (lower + upper) // 2 if upper - lower >= 2 else None


def at_the_end(last: int, now: int) -> int:
    """Behind the last job, and before all that are yet to come: their positions are their times."""
    return max(last + 1, now)


def spread(count: int, *, lower: int | None, upper: int) -> list[int] | None:
    """`count` rising positions strictly between the two, evenly; None if they do not fit."""
    if lower is None:
        lower = upper - GAP * (count + 1)
    step = (upper - lower) // (count + 1)
    return None if step < 1 else [lower + step * place for place in range(1, count + 1)]
