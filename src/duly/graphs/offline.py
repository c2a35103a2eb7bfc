"""A chat model that needs no network: answers what it is told, streams it word by word, and counts tokens."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

MODEL = "offline:echo"


class OfflineChat(BaseChatModel):
    """Echoes the last message. A token is a word: enough for figures that can be foretold.

    With `metered` off it says nothing of what it used, as some streams do.
    """

    model: str = MODEL
    prefix: str = ""
    metered: bool = True

    @property
    def _llm_type(self) -> str:
        return "duly-offline"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return {**super()._get_ls_params(stop=stop, **kwargs), "ls_provider": "offline", "ls_model_name": self.model}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the interface's
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **_: Any,
    ) -> ChatResult:
        text = self._answer(messages)
        message = AIMessage(
            text, usage_metadata=self._usage(messages, text), response_metadata={"model_name": self.model}
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in self._chunks(messages):
            if run_manager is not None:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._chunks(messages):
            if run_manager is not None:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def _chunks(self, messages: list[BaseMessage]) -> Iterator[ChatGenerationChunk]:
        text = self._answer(messages)
        words = text.split(" ")
        for place, word in enumerate(words):
            piece = word if place == 0 else f" {word}"
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
        last = AIMessageChunk(
            content="", usage_metadata=self._usage(messages, text), response_metadata={"model_name": self.model}
        )
        yield ChatGenerationChunk(message=last)

    def _answer(self, messages: list[BaseMessage]) -> str:
        return self.prefix + (str(messages[-1].content) if messages else "")

    def _usage(self, messages: list[BaseMessage], text: str) -> UsageMetadata | None:
        if not self.metered:
            return None
        asked = sum(len(str(message.content).split()) for message in messages)
        answered = len(text.split())
        return UsageMetadata(input_tokens=asked, output_tokens=answered, total_tokens=asked + answered)
