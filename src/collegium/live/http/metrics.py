"""An agent's counters as Prometheus metrics: gathered per scrape, never while an item is handled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from collegium.live.answers import Histogram, NeighbourStatus
from collegium.live.http.openapi import collegium_version
from collegium.live.peers import State

if TYPE_CHECKING:
    from collegium.live.agent import Agent

_ITEMS = {
    "done": ("decided", "Items decided."),
    "from_zero": ("from_zero", "Items decided for which this agent had no view in time and took part from zero."),
    "with_missing": ("with_missing", "Items decided with a neighbour's message missing in some round."),
    "incomplete": ("incomplete", "Items decided without some agent's view."),
    "past_deadline": ("past_deadline", "Items decided at their deadline, before the last round."),
    "refused": ("refused", "Items refused because too many were pending."),
    "no_room": ("no_room", "Neighbours' items left out for lack of memory or budget."),
}


class Metrics(Collector):
    """A registry of the agent's own; `responses` counts responses of its port by endpoint and status."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, agent: Agent, responses: Mapping[tuple[str, int], int]) -> None:
        self._agent, self._responses = agent, responses
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """All metrics, in Prometheus' text format."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing: so the registry does not collect from the agent when it is only being set up."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Families made from the agent's status now."""
        status = self._agent.status()
        for field, (name, text) in _ITEMS.items():
            yield _counter(f"items_{name}", text, getattr(status.items, field))
        yield _gauge("items_pending", "Items begun and not decided.", status.items.pending)
        yield _gauge("items_waiting", "Items submitted and not begun, because the agent is busy.", status.items.waiting)
        yield _gauge("items_pending_max", "Items submitted here that may be pending at once.", status.items.most)
        yield _counter("rounds", "Rounds completed, summed over items.", status.rounds_done)
        yield _counter("messages_re_requested", "Messages re-requested after their deadline.", status.re_requested)
        yield _counter(
            "overloaded_seconds", "Seconds in which submissions had to wait or were refused.", status.overloaded_s
        )
        yield _gauge("ready", "1 if all neighbours are connected.", status.ready)
        version = GaugeMetricFamily("collegium_version_info", "1, with the version of Collegium.", labels=["version"])
        version.add_metric([collegium_version()], 1)
        yield version
        carried = CounterMetricFamily("collegium_bytes", "Bytes of frames sent and received.", labels=["direction"])
        carried.add_metric(["sent"], status.bytes.sent)
        carried.add_metric(["received"], status.bytes.received)
        yield carried
        yield from _neighbours(status.neighbours)
        yield _latency(status.latency)
        responses = CounterMetricFamily("collegium_http_responses", "HTTP responses.", labels=["endpoint", "status"])
        for (endpoint, code), count in sorted(self._responses.items()):
            responses.add_metric([endpoint, str(code)], count)
        yield responses


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"collegium_{name}", text, value=value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"collegium_{name}", text, value=value)


def _neighbours(neighbours: list[NeighbourStatus]) -> Iterator[Metric]:
    state = GaugeMetricFamily(
        "collegium_neighbour_state", "1 for the state a neighbour is in.", labels=["neighbour", "state"]
    )
    rejected = CounterMetricFamily(
        "collegium_frames_rejected", "Invalid frames from a neighbour.", labels=["neighbour"]
    )
    over_budget = CounterMetricFamily(
        "collegium_over_budget",
        "Items, questions and frames of a neighbour beyond its budget, which were dropped.",
        labels=["neighbour"],
    )
    missed = CounterMetricFamily(
        "collegium_messages_missed", "Messages of a neighbour missing when a round went on.", labels=["neighbour"]
    )
    response = GaugeMetricFamily(
        "collegium_response_seconds", "Usual time from our own message to the neighbour's.", labels=["neighbour"]
    )
    deadline = GaugeMetricFamily(
        "collegium_deadline_seconds", "Time after which a neighbour's message is re-requested.", labels=["neighbour"]
    )
    for neighbour in neighbours:
        name = neighbour.name
        for possible in State:
            state.add_metric([name, str(possible)], float(neighbour.state == possible))
        rejected.add_metric([name], neighbour.rejected_frames)
        over_budget.add_metric([name], neighbour.over_budget)
        missed.add_metric([name], neighbour.missed)
        if neighbour.response_ms is not None:
            response.add_metric([name], neighbour.response_ms / 1e3)
        deadline.add_metric([name], neighbour.deadline_ms / 1e3)
    yield from (state, rejected, over_budget, missed, response, deadline)


def _latency(latency: Histogram) -> Metric:
    """From a count per interval to Prometheus' counts up to each bound."""
    family = HistogramMetricFamily("collegium_item_seconds", "From an item's beginning here to its decision.")
    bounds = [str(bound) for bound in latency.bounds] + ["+Inf"]
    total, buckets = 0, []
    for bound, count in zip(bounds, latency.counts, strict=True):
        total += count
        buckets.append((bound, float(total)))
    family.add_metric([], buckets, sum_value=latency.sum)
    return family
