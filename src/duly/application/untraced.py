"""Tracing where there is no backend: spans that nobody records, with ids that whoever comes after can refer to."""

from collections.abc import Mapping
from dataclasses import dataclass

from duly.domain.traces import Trace, span_id_from


@dataclass(frozen=True, slots=True)
class UnrecordedSpan:
    trace: Trace

    def end(self, error: str | None = None) -> None:
        """Nobody asks."""


class Untraced:
    def begin(
        self,
        name: str,  # noqa: ARG002 - for those who record it
        *,
        trace_id: str,
        parent: Trace | None,
        seed: str,
        attributes: Mapping[str, str | int],  # noqa: ARG002
    ) -> UnrecordedSpan:
        is_sampled = True if parent is None else parent.is_sampled
        return UnrecordedSpan(Trace(trace_id, span_id_from(seed), is_sampled))
