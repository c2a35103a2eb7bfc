"""Who is told of spans: a tracing backend, or nobody, and then ids are passed on all the same."""

from collections.abc import Mapping
from typing import Protocol

from duly.domain.traces import Trace


class Span(Protocol):
    @property
    def trace(self) -> Trace: ...

    def end(self, error: str | None = None) -> None:
        """It is over, well or with an error; never raises."""


class Tracing(Protocol):
    def begin(
        self, name: str, *, trace_id: str, parent: Trace | None, seed: str, attributes: Mapping[str, str | int]
    ) -> Span:
        """Of this trace, below `parent` if that is of the same. `seed` names the work among all others."""
