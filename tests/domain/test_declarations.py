"""What a program declares is checked where it is declared."""

from typing import Any

import pytest

from duly import every
from duly.domain.declarations import Declared
from duly.domain.errors import InvalidInput
from duly.domain.schedules import LONGEST_ID, Target

GOOD = {"id": "digest", "cadence": every("5m"), "target": Target(kind="send")}


@pytest.mark.parametrize(
    ("field", "value"),
    [("id", ""), ("id", "x" * (LONGEST_ID + 1)), ("cadence", "5m"), ("target", "send"), ("policies", {})],
)
def test_a_wrong_declaration_names_its_field(field: str, value: Any) -> None:
    Declared(**GOOD)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput) as refusal:
        Declared(**{**GOOD, field: value})

    assert refusal.value.field == field
