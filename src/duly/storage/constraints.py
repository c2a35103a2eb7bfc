"""What a store raises when a row breaks a rule of the schema."""

from typing import ClassVar

from duly.domain.errors import Conflict


class ConstraintViolated(Conflict):
    """A unique, foreign-key, check or not-null rule said no; the store that expects one turns it into its own
    error.

    Reaching a caller untranslated, it is a bug: the schema knew a rule that the domain did not check.
    """

    code: ClassVar[str] = "constraint_violated"

    def __init__(self, constraint: str) -> None:
        self.constraint = constraint
        super().__init__(f"the database refused the row: {constraint}")
