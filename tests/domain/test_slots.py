"""A slot is an instant in UTC, and is written as one."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from duly.domain.errors import InvalidInput
from duly.domain.ids import ScheduleId
from duly.domain.slots import Slot

S = ScheduleId("digest")


def test_a_slot_is_written_as_its_instant_in_utc() -> None:
    slot = Slot(at=datetime(2027, 1, 15, 9, 1, tzinfo=ZoneInfo("Europe/Berlin")), schedule_id=S, key="k")

    assert str(slot) == "2027-01-15T08:01:00Z"
    assert slot.at.tzinfo is UTC
    assert slot == Slot(at=datetime(2027, 1, 15, 8, 1, tzinfo=UTC), schedule_id=S, key="k")


def test_a_slot_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidInput):
        Slot(at=datetime(2027, 1, 15, 8, 1), schedule_id=S, key="k")  # noqa: DTZ001 - that is the mistake
