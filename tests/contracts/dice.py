"""Dice that always fall the same way, so that two stores can be held against each other."""

import itertools


class CountingDice:
    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def new_id(self, prefix: str) -> str:
        return f"{prefix}_{next(self._numbers):08}"

    def fraction(self) -> float:
        return 0.0

    def secret(self) -> str:
        return f"secret-{next(self._numbers):036}"
