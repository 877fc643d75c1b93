"""Traces of items: the same at every agent, with the rounds in order; nothing without being asked for."""

from __future__ import annotations

import numpy as np
import pytest

from collegium import policy, topology
from collegium.errors import BackendError
from collegium.live.spans import provider_of_environment
from live_networks import decide, in_memory

pytest.importorskip("opentelemetry.sdk")
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

RING = policy.uniform(topology.ring(4))


@pytest.mark.parametrize("items", [1, 5])
def test_an_item_has_one_trace_at_every_agent(items: int) -> None:
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    scores = np.random.default_rng(0).normal(size=(items, 4))
    with in_memory(RING, rounds=3, traces=provider) as agents:
        live = decide(agents, scores)
    spans = kept.get_finished_spans()
    traces = {span.context.trace_id for span in spans}
    assert len(traces) == items
    finals = set()
    for trace in traces:
        own = [span for span in spans if span.context.trace_id == trace]
        assert sorted(span.name for span in own) == ["decide"] * 4 + ["round"] * 12 + ["submit"] * 4
        for whole in (span for span in own if span.name == "decide"):
            rounds = [span for span in own if span.parent and span.parent.span_id == whole.context.span_id]
            assert [span.attributes["collegium.round"] for span in rounds] == [1, 2, 3]
            times = [whole.start_time, *(span.end_time for span in rounds), whole.end_time]
            assert times == sorted(times)
            assert {span.attributes["collegium.agent"] for span in rounds} == {whole.attributes["collegium.agent"]}
            assert whole.attributes["collegium.has_view"]
            finals.add((int(whole.attributes["collegium.agent"][-1]), *whole.attributes["collegium.statistic"]))
    assert finals == {(k, live[-1, i, k]) for i in range(items) for k in range(4)}


def test_traces_are_asked_for_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_TRACES_EXPORTER", raising=False)
    assert provider_of_environment("a") is None
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    provider = provider_of_environment("a")
    assert provider.resource.attributes["service.instance.id"] == "a"
    provider.shutdown()
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    with pytest.raises(BackendError, match="must be otlp, console or none; got 'zipkin'"):
        provider_of_environment("a")
