"""What a file of system schedules says, and what it cannot say."""

import pytest

from duly import every
from duly.domain.errors import InvalidInput
from duly.domain.payloads import value_of
from duly.domain.policies import Overlap, Policies
from duly.wire.governance import governed_from


@pytest.mark.req("GRAPH-28")
def test_a_graph_is_a_job_that_has_it_executed_and_policies_left_out_are_the_settings() -> None:
    (said,) = governed_from(
        {"schedules": {"g": {"graph": "python:g", "every": "5m", "input": {"a": 1}, "model": "m", "max_cost": "0.5"}}},
        Policies(overlap=Overlap.QUEUE),
    )

    assert (said.id, said.graph_id, said.enabled, said.cadence) == ("governance:g", "python:g", None, every("5m"))
    assert value_of(said.target.payload) == {
        "graph_id": "python:g",
        "input": {"a": 1, "model": "m"},
        "on_crash": "resume",
        "max_cost": "0.50",
    }
    assert said.policies == Policies(overlap=Overlap.QUEUE)


@pytest.mark.req("GRAPH-28", error=True)
def test_a_key_that_means_nothing_is_refused_by_its_path() -> None:
    with pytest.raises(InvalidInput, match=r"schedules\.g\.retry\.tries") as refused:
        governed_from({"schedules": {"g": {"target": "t", "every": "5m", "retry": {"tries": 3}}}}, Policies())

    assert refused.value.fix
