"""LangGraph graphs that tests run: real ones, on a model that needs no network."""

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.messages import HumanMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

from duly.graphs.offline import OfflineChat

entered: list[str] = []


class News(TypedDict, total=False):
    topic: str
    text: str
    steps: Annotated[list[str], operator.add]


def _writer(metered: bool) -> Any:
    model = OfflineChat(prefix="news of ", metered=metered)

    async def write(state: News) -> News:
        entered.append("write")
        get_stream_writer()({"wrote": state["topic"]})
        answer = await model.ainvoke([HumanMessage(state["topic"])])
        return {"text": str(answer.content), "steps": ["write"]}

    return write


def _sign(state: News) -> News:
    entered.append("sign")
    return {"text": f"{state['text']}.", "steps": ["sign"]}


def _review(state: News) -> News:
    entered.append("review")
    decision = interrupt({"publish": state["text"]})
    return {"text": f"{state['text']} ({decision['by']})", "steps": ["review"]}


def news(*, metered: bool = True, middle: Any = _sign) -> StateGraph[News]:
    graph = StateGraph(News)
    graph.add_node("write", _writer(metered))
    graph.add_node("middle", middle)
    graph.add_edge(START, "write")
    graph.add_edge("write", "middle")
    graph.add_edge("middle", END)
    return graph


def reviewed() -> StateGraph[News]:
    return news(middle=_review)


def chat() -> Any:
    async def answer(state: MessagesState) -> Any:
        return {"messages": [await OfflineChat().ainvoke(state["messages"])]}

    return StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()
