"""Workflows as documents: what is refused, and where; in which order nodes come; what references lead to."""

import hashlib
import time
from typing import Any

import pytest

from duly.domain.dags import HttpCall, resolved
from duly.domain.errors import InvalidInput
from duly.domain.policies import CatchUp, Overlap, Policies
from duly.domain.schedules import slot_of_key
from duly.domain.workflows import launch_key, named_by, plan_of, run_key, schedule_id_of


def node(name: str, *needs: str, **given: Any) -> dict[str, Any]:
    return {"id": name, "action": "work", "needs": list(needs), **given}


def flow(*nodes: Any, **given: Any) -> dict[str, Any]:
    return {"name": "news", "nodes": list(nodes), **given}


@pytest.mark.req("CRON-08")
def test_nodes_come_after_what_they_need_and_references_are_needs() -> None:
    plan = plan_of(flow(node("c", "b"), node("b", inputs={"x": [{"y": {"from": "a"}}]}), node("a")))

    assert [each.id for each in plan.nodes] == ["a", "b", "c"]
    assert plan.nodes[1].needs == ("a",)


@pytest.mark.req("CRON-08", error=True)
@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "workflow: is a list"),
        ({"name": "x"}, r"workflow\.nodes: is missing"),
        (flow(), "nodes: has 0 nodes"),
        ({**flow(node("a")), "name": "News!"}, "name: 'News!' is no name"),
        (flow(node("a")) | {"nods": []}, r"workflow: has no field 'nods' \(did you mean 'nodes'\?\)"),
        (flow(node("a"), node("a")), r"nodes\[1\]\.id: 'a' is there twice"),
        (flow(node("a", "b")), r"nodes\[0\]\.needs: node 'a' needs 'b', which is not there"),
        (flow(node("a", "a")), "goes round in a circle: a needs a "),
        (
            flow(node("z", "c"), node("a", "b"), node("b", "c"), node("c", "a")),
            "in a circle: c needs a needs b needs c",
        ),
        (flow(node("a", inputs={"x": {"from": "q"}})), r"nodes\[0\]\.needs: node 'a' needs 'q'"),
        (flow(node("a", inputs={"x": {"from": 3}})), r"nodes\[0\]\.inputs\.x\.from: is no name"),
        (flow(node("a"), node("b", inputs={"x": {"from": "a", "path": "text"}})), r"\.path: 'text' leads nowhere"),
        (flow(node("a", action="no action")), r"nodes\[0\]\.action: 'no action' is no action"),
        (flow(node("a", action={"http": {"url": "ftp://x"}})), r"action\.http\.url: 'ftp://x' is no address"),
        (flow(node("a", action={"http": {"url": "https://me:pw@x"}})), r"http\.url: .* is no address"),
        (flow(node("a", action={"http": {"url": "https://x", "method": "TRACE"}})), r"http\.method: 'TRACE'"),
        (
            flow(node("a", action={"http": {"url": "https://x", "headers": {"Host": "y"}}})),
            "'Host' is no header",
        ),
        (flow(node("a", action={"http": {"url": "https://x", "headers": {"A": "b\r\nC: d"}}})), "is no header's value"),
        (flow(node("a", retries={"max_attempts": 0})), r"nodes\[0\]\.retries\.max_attempts"),
        (flow(node("a", timeout_ms=0)), r"nodes\[0\]\.timeout_ms"),
        (flow(node("a"), on_crash="pray"), "on_crash: 'pray' is none"),
        (flow(node("a"), executor={"url": "x"}), r"executor\.url"),
        (flow(node("a"), executor={"url": "https://x", "deadline_ms": 0}), r"executor\.deadline_ms"),
        (flow(node("a", inputs={"x": float("nan")})), "JSON cannot say"),
    ],
)
def test_what_means_nothing_is_refused_with_its_place(document: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        plan_of(document)


def test_too_much_is_refused_at_once() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    huge = flow(*(node(f"n{number}", f"n{number + 1}") for number in range(100_000)))
    chain = flow(*(node(f"n{number}", *([f"n{number + 1}"] if number < 300 else [])) for number in range(301)))
    crowd = flow(*(node(f"n{number}", *(f"n{each}" for each in range(number))) for number in range(200)))
    began = time.process_time()

    for document, says in (
        (huge, r"nodes: has 100000 nodes \(use 1 to 1000"),
        (chain, "nodes: has 301 nodes one after the other"),
        (crowd, "nodes: has 19900 dependencies"),
        (flow(node("a", inputs={"x": deep})), "nested deeper than 64 levels"),
        (flow(node("a", inputs={"x": "y" * 1_100_000})), "bytes as JSON"),
    ):
        with pytest.raises(InvalidInput, match=says):
            plan_of(document)

    assert time.process_time() - began < 5


def test_what_says_the_same_has_the_same_hash_whatever_its_order_and_version() -> None:
    one = plan_of({"name": "n", "version": 3, "nodes": [{"id": "a", "action": "w"}]})
    other = plan_of({"nodes": [{"action": "w", "id": "a"}], "name": "n"})

    assert one.hash == other.hash != plan_of({"name": "n", "nodes": [{"id": "b", "action": "w"}]}).hash


@pytest.mark.req("CRON-09")
def test_triggers_that_are_schedule_based_are_found_and_others_are_left() -> None:
    trigger = {
        "type": "schedule_based",
        "cron_expr": "0 7 * * *",
        "timezone": "Europe/Vienna",
        "overlap_policy": "queue",
        "jitter_ms": 250,
    }
    plan = plan_of(flow(node("a"), triggers=[{"type": "webhook", "path": "/x"}, trigger]))

    (found,) = plan.triggers
    assert (found.id, repr(found.cadence)) == ("schedule", "cron('0 7 * * *', 'Europe/Vienna')")
    assert schedule_id_of(plan.name, found.id) == "workflow:news:schedule"
    assert found.policies_over(Policies(catch_up=CatchUp.SPREAD)) == Policies(
        overlap=Overlap.QUEUE, catch_up=CatchUp.SPREAD, jitter_ms=250
    )


def test_a_trigger_must_give_the_params_that_nodes_need() -> None:
    document = flow(
        node("a", inputs={"x": {"param": "topic"}}), triggers=[{"type": "schedule_based", "cron_expr": "@daily"}]
    )

    with pytest.raises(InvalidInput, match=r"triggers\.schedule\.params\.topic: is missing: a\.inputs\.x refers to it"):
        plan_of(document)
    assert plan_of({**document, "params": {"topic": "ai"}}).input_for({}) == {"topic": "ai"}


def test_references_lead_to_results_and_params_and_literals_to_themselves() -> None:
    results = {"a": {"items": [{"n": 7}]}}
    inputs = {
        "all": {"from": "a"},
        "one": [{"from": "a", "path": "result.items.0.n"}],
        "given": {"param": "topic"},
        "else": {"param": "none", "default": [1]},
        "data": {"literal": {"from": "a"}},
        "plain": {"from": "a", "to": "b"},
    }

    assert resolved(inputs, results, {"topic": "ai"}) == {
        "all": results["a"],
        "one": [7],
        "given": "ai",
        "else": [1],
        "data": {"from": "a"},
        "plain": {"from": "a", "to": "b"},
    }
    with pytest.raises(InvalidInput, match=r"inputs\.x: node 'a' has no result\.items\.1: no '1'"):
        resolved({"x": {"from": "a", "path": "result.items.1"}}, results, {})


@pytest.mark.req("CRON-06")
def test_a_slots_key_is_a_hash_of_schedule_and_second() -> None:
    assert run_key("sch_1", 1_700_000_000) == hashlib.sha256(b"sch_1:1700000000").hexdigest()
    assert run_key("sch_1", 1_700_000_001) != run_key("sch_1", 1_700_000_000) != run_key("sch_2", 1_700_000_000)


@pytest.mark.req("CRON-06", error=True)
def test_nobody_can_take_the_key_of_anothers_run() -> None:
    assert launch_key("ann", "k") != launch_key("eve", "k")
    assert slot_of_key(launch_key("ann", "mine:2026-01-01T00:00:00Z")) is None


@pytest.mark.req("CRON-10")
def test_an_executor_elsewhere_fails_by_its_own_deadline() -> None:
    executor = {"url": "https://x.example", "callback": True, "deadline_ms": 3_600_000}
    plan = plan_of(flow(node("a"), executor=executor))

    assert plan.executor is not None
    assert plan.longest_ms > plan.executor.deadline_ms
    assert plan_of(flow(node("a"), timeout_ms=5_000)).longest_ms == 5_000


def test_ids_of_graphs_name_workflows() -> None:
    assert named_by("dag:news@3") == ("news", 3)
    assert named_by("dag:news") == ("news", None)
    assert [named_by(each) for each in ("dag:news@x", "dag:news@0", "python:news", "dag:", "dag:News")] == [None] * 5


def test_an_http_action_posts_unless_told_otherwise() -> None:
    plan = plan_of(flow(node("a", action={"http": {"url": "https://x.example/y?z=1"}})))

    assert plan.nodes[0].action == HttpCall("POST", "https://x.example/y?z=1", {})
