"""Chance as the core may know it: drawn before a transaction, so that a rerun repeats itself."""

from typing import Protocol


class Dice(Protocol):
    def new_id(self, prefix: str) -> str:
        """A fresh id `{prefix}_{32 hex digits}`; ids of one process sort in the order they were drawn."""

    def fraction(self) -> float:
        """Uniform in [0, 1)."""

    def secret(self) -> str:
        """At least 32 random bytes that nobody can guess, as text that is safe in a URL."""
