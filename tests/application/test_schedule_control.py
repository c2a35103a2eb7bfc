"""Schedules speak the words of the port that names no engine."""

import inspect

import pytest

from duly.application.schedules import Schedules
from duly.ports.schedule_control import ScheduleControl

WORDS = ["backfill", "create", "delete", "describe", "list", "pause", "resume", "trigger", "update"]


@pytest.mark.req("GRAPH-21")
def test_the_port_has_nine_words_and_schedules_say_each_of_them_alike() -> None:
    words = [name for name, _ in inspect.getmembers(ScheduleControl, inspect.isfunction) if not name.startswith("_")]

    assert words == WORDS
    for word in words:
        assert inspect.signature(getattr(Schedules, word)) == inspect.signature(getattr(ScheduleControl, word))


@pytest.mark.req("GRAPH-21")
def test_the_port_names_no_vendor() -> None:
    source = inspect.getsource(inspect.getmodule(ScheduleControl) or ScheduleControl).lower()

    assert "temporal" not in source
    assert "duly.storage" not in source
