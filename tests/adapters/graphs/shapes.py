"""Graphs in the shapes that LangGraph's own documentation teaches, on a model that needs no network."""

import operator
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Send, interrupt

from duly.domain.billing import DEMO_MODEL
from duly.graphs.offline import OfflineChat

model = OfflineChat(model=DEMO_MODEL, prefix="about ")


class State(TypedDict, total=False):
    topic: str
    topics: list[str]
    text: str
    notes: Annotated[list[str], operator.add]


async def _write(state: State) -> State:
    answer = await model.ainvoke([HumanMessage(state["topic"])])
    return {"text": str(answer.content)}


def branching() -> Any:
    """A conditional edge chooses the node."""

    def which(state: State) -> Literal["shout", "whisper"]:
        return "shout" if len(state["topic"]) > 3 else "whisper"

    graph = StateGraph(State)
    graph.add_node("write", _write)
    graph.add_node("shout", lambda state: {"text": state["text"].upper()})
    graph.add_node("whisper", lambda state: {"text": f"({state['text']})"})
    graph.add_edge(START, "write")
    graph.add_conditional_edges("write", which)
    graph.add_edge("shout", END)
    graph.add_edge("whisper", END)
    return graph.compile()


def nested() -> Any:
    """A compiled graph is a node of another, and asks in the middle."""

    def ask(state: State) -> State:
        return {"text": f"{state['text']}: {interrupt({'continue': state['text']})}"}

    inner = StateGraph(State).add_node("write", _write).add_node("ask", ask)
    inner.add_edge(START, "write").add_edge("write", "ask")
    outer = StateGraph(State).add_node("inner", inner.compile())
    outer.add_node("after", lambda state: {"text": f"{state['text']}!"})
    return outer.add_edge(START, "inner").add_edge("inner", "after").compile()


def mapped() -> Any:
    """A node is run once for each of many, and what they wrote is joined."""

    async def one(state: State) -> State:
        answer = await model.ainvoke([HumanMessage(state["topic"])])
        return {"notes": [str(answer.content)]}

    graph = StateGraph(State)
    graph.add_node("one", one)
    graph.add_conditional_edges(
        START, lambda state: [Send("one", {"topic": each}) for each in state["topics"]], ["one"]
    )
    return graph.add_edge("one", END).compile()


def asking_twice_at_once() -> Any:
    """Two branches interrupt in one step."""

    def first(state: State) -> State:
        return {"notes": [f"first {interrupt('first?')}"]}

    def second(state: State) -> State:
        return {"notes": [f"second {interrupt('second?')}"]}

    graph = StateGraph(State).add_node("first", first).add_node("second", second)
    graph.add_node("join", lambda state: {"text": ", ".join(sorted(state["notes"]))})
    for name in ("first", "second"):
        graph.add_edge(START, name).add_edge(name, "join")
    return graph.compile()


def insisting() -> Any:
    """One node asks until the answer is good."""

    def age(state: State) -> State:
        question = "How old are you?"
        while not isinstance(answer := interrupt(question), int):
            question = f"{answer!r} is not an age. How old are you?"
        return {"text": f"{answer} years"}

    return StateGraph(State).add_node("age", age).add_edge(START, "age").compile()


def routed() -> Any:
    """A command of the node's own says where to go after the answer."""

    def approve(state: State) -> Command[Literal["go", "stop"]]:
        return Command(goto="go" if interrupt("go on?") else "stop")

    graph = StateGraph(State).add_node("approve", approve)
    graph.add_node("go", lambda _: {"text": "went"})
    graph.add_node("stop", lambda _: {"text": "stopped"})
    return graph.add_edge(START, "approve").compile()


class CallingChat(OfflineChat):
    """Asks for the weather first, then says what it heard."""

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        message = AIMessage(**self._said(messages), usage_metadata=self._usage(messages, "a tool"))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _chunks(self, messages: list[BaseMessage]) -> Iterator[ChatGenerationChunk]:
        if not isinstance(messages[-1], HumanMessage):
            yield from super()._chunks(messages)
            return
        call = {"name": "weather", "args": '{"city": "Oslo"}', "id": "call_1", "index": 0}
        yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[call]))  # type: ignore[list-item]
        about = {"model_name": self.model}
        last = AIMessageChunk(content="", usage_metadata=self._usage(messages, "a tool"), response_metadata=about)
        yield ChatGenerationChunk(message=last)

    def _said(self, messages: list[BaseMessage]) -> dict[str, Any]:
        about = {"model_name": self.model}
        if not isinstance(messages[-1], HumanMessage):
            return {"content": self._answer(messages), "response_metadata": about}
        call = {"name": "weather", "args": {"city": "Oslo"}, "id": "call_1"}
        return {"content": "", "tool_calls": [call], "response_metadata": about}


@tool
def weather(city: str) -> str:
    """The weather of a city, if somebody lets it be told."""
    return f"rain in {city}" if interrupt({"tell": city}) else "nothing"


def agent() -> Any:
    """A model and its tools, in turn; the tool asks before it acts."""
    calling = CallingChat(model=DEMO_MODEL)

    async def chatbot(state: MessagesState) -> Any:
        return {"messages": [await calling.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("chatbot", chatbot)
    graph.add_node("tools", ToolNode([weather]))
    graph.add_edge(START, "chatbot")
    graph.add_conditional_edges("chatbot", tools_condition)
    graph.add_edge("tools", "chatbot")
    return graph.compile()
