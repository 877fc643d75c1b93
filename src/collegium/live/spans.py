"""OpenTelemetry traces of items, where they are asked for: what each agent did with an item, and when.

The spans of an item have the same trace at every agent, since its number follows from the network and the item: nothing
travels for it. In a process they are asked for as with any other program, by `OTEL_TRACES_EXPORTER=otlp` or `console`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from collegium.errors import BackendError
from collegium.live.answers import Name
from collegium.live.naming import identities
from collegium.live.table import NO_VIEW, Rounds, Rows

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from collegium.live.engine import Engine

_EXTRA = "traces need the extra: pip install 'collegium[otel]'"


class Spans:
    """Spans of one agent's items.

    submit: from the call until its messages are on their way; decide: from when the agent first knew of the item until
    it was decided, with a child `round` for each round the agent took part in, from one combination to the next.

    provider: where spans go; a `TracerProvider` of OpenTelemetry.
    """

    def __init__(self, engine: Engine, provider: Any) -> None:
        self._engine, self._tracer = engine, provider.get_tracer("collegium.live")
        self._network = engine.place.network
        self._own = {"collegium.network": self._network, "collegium.agent": engine.name}
        self._ends = np.zeros((engine.progress.T + 1, engine.table.capacity))
        self._offset = time.time() - time.monotonic()
        engine.progress.on_round, engine.tell_decided = self._combined, self._decided

    def submitted(self, names: Sequence[Name], begun: float, now: float) -> None:
        """Items were submitted here."""
        for name, item in zip(names, identities(names).tolist(), strict=True):
            span = self._start("submit", item, begun, {"collegium.item": str(name)})
            span.end(self._time(now))

    def _combined(self, rows: Rows | int, rounds: Rounds | int, now: float) -> None:
        self._ends[rounds, rows] = now

    def _decided(self, rows: Rows, now: float) -> None:
        from opentelemetry.trace import set_span_in_context

        table = self._engine.table
        for row in rows.tolist():
            begun, first, done = float(table.born[row]), int(table.first[row]), int(table.done[row])
            facts = {
                "collegium.rounds": done - first + 1,
                "collegium.has_view": bool(table.view[row] != NO_VIEW),
                "collegium.missing_neighbours": int(table.missed[:, row].sum()),
                "collegium.statistic": table.trace[done, row].tolist(),
            }
            whole = self._start("decide", int(table.id[row]), begun, facts)
            inside, since = set_span_in_context(whole), begun
            for t in range(first, done + 1):
                end = float(self._ends[t, row])
                if end < since:  # without rounds of its own, or left from an item that had the row before
                    continue
                part = self._tracer.start_span(
                    "round", inside, start_time=self._time(since), attributes=self._own | {"collegium.round": t}
                )
                part.end(self._time(end))
                since = end
            whole.end(self._time(now))

    def _start(self, name: str, item: int, begun: float, facts: dict[str, Any]) -> Any:
        context = trace_of(self._network, item)
        return self._tracer.start_span(name, context, start_time=self._time(begun), attributes=self._own | facts)

    def _time(self, now: float) -> int:
        return int((now + self._offset) * 1e9)


def trace_of(network: str, item: int) -> Context:
    """The context all spans of an item are in, at every agent: item is its identity, as it travels."""
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    digest = blake2b(f"{network}/{item}".encode(), digest_size=24).digest()
    trace, span = int.from_bytes(digest[:16]), int.from_bytes(digest[16:])
    context = SpanContext(trace or 1, span or 1, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return set_span_in_context(NonRecordingSpan(context))


def provider_of_environment(agent: str) -> Any:
    """What `OTEL_TRACES_EXPORTER` asks for: a provider, or None for none.

    `OTEL_TRACES_SAMPLER` and `OTEL_EXPORTER_OTLP_ENDPOINT` mean what they mean elsewhere; of a share of all traces,
    every agent takes the same ones.
    """
    wanted = os.environ.get("OTEL_TRACES_EXPORTER", "none").strip()
    if wanted in ("", "none"):
        return None
    if wanted not in ("otlp", "console"):
        raise BackendError(f"OTEL_TRACES_EXPORTER must be otlp, console or none; got {wanted!r}")
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
    except ImportError:
        raise BackendError(_EXTRA) from None
    if wanted == "otlp":
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # type: ignore[import-not-found,unused-ignore]
                OTLPSpanExporter,
            )
        except ImportError:
            raise BackendError(
                "OTEL_TRACES_EXPORTER=otlp needs: pip install opentelemetry-exporter-otlp-proto-http"
            ) from None
        exporter: Any = OTLPSpanExporter()
    else:
        exporter = ConsoleSpanExporter()
    provider = TracerProvider(resource=Resource.create({"service.name": "collegium", "service.instance.id": agent}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider
