"""What models used, told by LangChain when each call ends: once for each call, also where nothing was streamed."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult

from duly.domain.executions import EventKind, ModelCall
from duly.graphs.telling import Tell
from duly.ports.graphs import GraphEvent


class Meter(BaseCallbackHandler):
    """Asks whether a model may be called before it is, and tells what the call used after it.

    Not inline: LangChain forgets other handlers' coroutines when an inline one raises.
    """

    raise_error = True

    def __init__(self, check_model: Callable[[str | None], None], tell: Tell) -> None:
        self._check_model = check_model
        self._tell = tell
        self._models: dict[UUID, str | None] = {}

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        self._begin(run_id, kwargs)

    def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        self._begin(run_id, kwargs)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        self._tell(event_of(_call_of(response, run_id, self._models.pop(run_id, None))))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:  # noqa: ARG002
        """What a call that failed has used, nobody says."""
        self._tell(event_of(ModelCall(unit=str(run_id), model=self._models.pop(run_id, None))))

    def _begin(self, run_id: UUID, kwargs: dict[str, Any]) -> None:
        asked = kwargs.get("invocation_params") or {}
        about = kwargs.get("metadata") or {}
        model = about.get("ls_model_name") or asked.get("model") or asked.get("model_name")
        self._check_model(model)
        self._models[run_id] = model


def event_of(call: ModelCall) -> GraphEvent:
    about = {"unit": call.unit, "model": call.model}
    if not call.is_metered:
        return GraphEvent(EventKind.UNMETERED, about, call)
    return GraphEvent(
        EventKind.USAGE, {**about, "input_tokens": call.input_tokens, "output_tokens": call.output_tokens}, call
    )


def _call_of(response: LLMResult, run_id: UUID, model: str | None) -> ModelCall:
    message: Any = next((getattr(each, "message", None) for row in response.generations for each in row), None)
    usage = getattr(message, "usage_metadata", None) or {}
    said = getattr(message, "response_metadata", None) or {}
    cached = usage.get("input_token_details") or {}
    return ModelCall(
        unit=str(run_id),
        model=said.get("model_name") or said.get("model") or model,
        input_tokens=usage.get("input_tokens"),
        output_tokens=usage.get("output_tokens"),
        cache_read_tokens=cached.get("cache_read") or 0,
        cache_write_tokens=cached.get("cache_creation") or 0,
    )
