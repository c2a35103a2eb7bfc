"""What both databases say alike when a statement breaks a rule of the schema."""

from typing import ClassVar, Literal

from duly.domain.errors import Conflict

Constraint = Literal["unique", "check", "foreign_key", "not_null", "exclusion"]


class ConstraintViolated(Conflict):
    """The schema refused the row, and the transaction is lost: let this pass, or raise the noun's own error.

    Reaching a caller untranslated, it is a bug: the schema knew a rule that the domain did not check.
    `name` is the constraint's, or the column's where the rule has no name.
    """

    code: ClassVar[str] = "constraint_violated"

    def __init__(self, name: str, kind: Constraint) -> None:
        self.name = name
        self.kind = kind
        super().__init__(f"the database refused the row: {kind} {name}")
