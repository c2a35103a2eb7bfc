"""Published facts about cron expressions: what fires when, and what no tool should take."""

import json
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TypedDict

import pytest

import duly


class Case(TypedDict):
    id: str
    expr: str
    gate: str
    tz: str
    after: str
    next: list[str]


CASES: list[Case] = json.loads((Path(__file__).parent / "cron_cases.json").read_text(encoding="utf-8"))
FIRING = [case for case in CASES if case["gate"] != "reject"]
REFUSED = [case for case in CASES if case["gate"] == "reject"]


@pytest.mark.req("CRON-02")
@pytest.mark.req("DEC-003")
@pytest.mark.parametrize("case", FIRING, ids=lambda case: case["id"])
def test_a_known_expression_fires_when_it_is_known_to(case: Case) -> None:
    cadence = duly.cron(case["expr"], case["tz"])

    fires = islice(cadence.after(datetime.fromisoformat(case["after"])), len(case["next"]))

    assert list(fires) == [datetime.fromisoformat(instant) for instant in case["next"]]


@pytest.mark.req("CRON-02", error=True)
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["id"])
def test_a_known_malformed_expression_is_refused_at_its_place(case: Case) -> None:
    with pytest.raises(duly.InvalidInput) as refusal:
        duly.cron(case["expr"])

    assert refusal.value.position is not None
    assert 0 <= refusal.value.position <= len(case["expr"])
    assert refusal.value.reason


def test_no_fact_was_lost() -> None:
    assert (len(FIRING), len(REFUSED)) == (275, 177)
