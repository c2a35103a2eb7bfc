"""What other services say about reviews, in their JSON: Duly's own words, and Plane's."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from pydantic import ConfigDict, Field

from duly.domain.reviews import ReviewState, Verdict
from duly.wire.reviews import Decision
from duly.wire.shapes import Shape

_REVIEW = re.compile(r"\breview_[0-9a-f]{32}\b", re.ASCII)
_LABELS = {
    "duly:reject": Verdict.REJECT,
    "rejected": Verdict.REJECT,
    "duly:approve": Verdict.APPROVE,
    "approved": Verdict.APPROVE,
}
_GROUPS = {"completed": Verdict.APPROVE, "cancelled": Verdict.REJECT}
_LONGEST_NAME = 100


class InboundDecision(Decision):
    model_config = ConfigDict(json_schema_extra={"examples": [{"review_id": "review_01", "decision": "approve"}]})

    review_id: str


class Outcome(StrEnum):
    DECIDED = "decided"
    ALREADY_DECIDED = "already_decided"
    IGNORED = "ignored"


class Received(Shape):
    outcome: Annotated[Outcome, Field(description="`ignored`: it says nothing about a review.")]
    review_id: str | None = None
    state: ReviewState | None = None


class PlaneSaid(NamedTuple):
    review_id: str
    verdict: Verdict
    by: str


def plane_said(event: object) -> PlaneSaid | None:
    """What a work item of Plane's says about a review; most of them say nothing.

    The item names the review in its external id, its title or its description. A label decides, a rejecting one before
    an approving one; without any, the group of its state does: completed approves, cancelled rejects.
    """
    item = event.get("data") if isinstance(event, dict) else None
    if not isinstance(event, dict) or not isinstance(item, dict):
        return None
    if not str(event.get("event")).startswith(("issue", "workitem", "work_item")):
        return None
    review_id, verdict = _review_of(item), _verdict_of(item)
    return None if review_id is None or verdict is None else PlaneSaid(review_id, verdict, _actor(event))


def _review_of(item: Mapping[str, Any]) -> str | None:
    for name in ("external_id", "name", "description_stripped", "description_html"):
        if found := _REVIEW.search(str(item.get(name) or "")):
            return found[0]
    return None


def _verdict_of(item: Mapping[str, Any]) -> Verdict | None:
    labels = set(_names(item.get("labels")))
    for label, verdict in _LABELS.items():
        if label in labels:
            return verdict
    state = item.get("state")
    group = state.get("group") if isinstance(state, dict) else None
    return _GROUPS.get(group) if isinstance(group, str) else None


def _names(labels: object) -> Iterator[str]:
    for label in labels if isinstance(labels, list) else ():
        name = label.get("name") if isinstance(label, dict) else label
        if isinstance(name, str):
            yield name.strip().lower()


def _actor(event: Mapping[str, Any]) -> str:
    activity = event.get("activity")
    actor = activity.get("actor") if isinstance(activity, dict) else None
    name = actor.get("display_name") or actor.get("id") if isinstance(actor, dict) else None
    told = "".join(each for each in str(name or "somebody") if each.isprintable())[:_LONGEST_NAME]
    return f"plane: {told or 'somebody'}"
