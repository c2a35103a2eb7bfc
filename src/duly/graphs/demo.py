"""The demo's graphs: LangGraph's, on a model that needs no network and costs money that is only played with."""

from typing import TypedDict

from langchain_core.messages import HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from duly.domain.billing import DEMO_MODEL
from duly.graphs.offline import OfflineChat


class Poem(TypedDict, total=False):
    topic: str
    text: str
    published: bool


async def _write(state: Poem) -> Poem:
    model = OfflineChat(model=DEMO_MODEL, prefix="a poem about ")
    answer = await model.ainvoke([HumanMessage(state["topic"])])
    return {"text": str(answer.content)}


def _ask(state: Poem) -> Poem:
    return {"published": bool(interrupt({"publish": state["text"]}))}


def poem() -> StateGraph[Poem]:
    """Writes, and is done."""
    return StateGraph(Poem).add_node("write", _write).add_edge(START, "write").add_edge("write", END)


def published() -> StateGraph[Poem]:
    """Writes, and asks whether that may be published."""
    graph = StateGraph(Poem).add_node("write", _write).add_node("ask", _ask)
    return graph.add_edge(START, "write").add_edge("write", "ask").add_edge("ask", END)
