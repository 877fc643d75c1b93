"""An agent's counters as Prometheus metrics: gathered per scrape, never while an item is handled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any

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
_BY_NEIGHBOUR = {
    "rejected_frames": ("frames_rejected", "Invalid frames from a neighbour."),
    "over_budget": ("over_budget", "Items, questions and frames of a neighbour beyond its budget, which were dropped."),
    "compared": ("messages_compared", "Messages of a neighbour compared with the rest of their round (robust rules)."),
    "far": ("messages_far", "Messages of a neighbour that lay far from the rest of their round."),
    "forged": ("scores_forged", "Scores of others that a neighbour handed on and that those others have not signed."),
    "missed": ("messages_missed", "Messages of a neighbour missing when a round went on."),
}
_Values = float | Mapping[Any, float]
"""One number, or one for each tuple of labels."""
_TIMES = {
    "response_ms": ("response_seconds", "Usual time from our own message to the neighbour's."),
    "deadline_ms": ("deadline_seconds", "Time after which a neighbour's message is re-requested."),
}


class Metrics(Collector):
    """A registry of the agent's own; `responses` counts responses of its port by endpoint and status."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(
        self,
        agent: Agent,
        responses: Mapping[tuple[str, int], int],
        certificate_end: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._agent, self._responses, self._certificate_end = agent, responses, certificate_end
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
        items = status.items
        for field, (name, text) in _ITEMS.items():
            yield _counter(f"items_{name}", text, getattr(items, field))
        yield _gauge("items_pending", "Items begun and not decided.", items.pending)
        yield _gauge("items_waiting", "Items submitted and not begun, because the agent is busy.", items.waiting)
        yield _gauge("items_pending_max", "Items submitted here that may be pending at once.", items.most)
        yield _counter("rounds", "Rounds completed, summed over items.", status.rounds_done)
        yield _counter("messages_re_requested", "Messages re-requested after their deadline.", status.re_requested)
        text = "Seconds in which submissions had to wait or were refused."
        yield _counter("overloaded_seconds", text, status.overloaded_s)
        if (mass := status.mass) is not None:
            parts = {(part,): getattr(mass, part) for part in ("own", "taken", "held", "given")}
            yield _gauge(
                "mass", "Views in running sums, by part: own and taken are as many as held and given.", parts, "part"
            )
            yield _gauge("mass_error", "Largest difference of the two for any item: rounding and no more.", mass.error)
            yield _counter(
                "epochs", "Times an item began anew because an agent was restarted, came or left.", mass.epochs
            )
        yield _gauge("ready", "1 if all neighbours are connected.", status.ready)
        yield _gauge("epoch", "How often the network was changed while it ran.", status.epoch)
        yield _gauge("version_info", "1, with the version of Collegium.", {(collegium_version(),): 1}, "version")
        refused = sum(status.refused_peers.values())
        yield _counter("peers_refused", "Reports of peers that were refused.", refused)
        if status.privacy is not None:
            text = "ε of all items together that this agent has sent with noise."
            yield _gauge("privacy_spent_epsilon", text, status.privacy.spent)
            if status.privacy.budget is not None:
                text = "ε of all items together beyond which items are refused."
                yield _gauge("privacy_budget_epsilon", text, status.privacy.budget)
        caught = {(name,): 1.0 for name in status.caught}
        yield _gauge("agent_caught", "1 for an agent that signed two scores of one item: left out.", caught, "agent")
        end = self._certificate_end()
        if end is not None:
            yield _gauge("certificate_end_seconds", "When the agent's certificate ends, in seconds since 1970.", end)
        carried = {("sent",): status.bytes.sent, ("received",): status.bytes.received}
        yield _counter("bytes", "Bytes of frames sent and received.", carried, "direction")
        yield from _neighbours(status.neighbours)
        yield _latency(status.latency)
        responses = {(endpoint, str(code)): n for (endpoint, code), n in sorted(self._responses.items())}
        yield _counter("http_responses", "HTTP responses.", responses, "endpoint", "status")


def _counter(name: str, text: str, value: _Values, *labels: str) -> Metric:
    return _filled(CounterMetricFamily(f"collegium_{name}", text, labels=labels), value)


def _gauge(name: str, text: str, value: _Values, *labels: str) -> Metric:
    return _filled(GaugeMetricFamily(f"collegium_{name}", text, labels=labels), value)


def _filled(family: CounterMetricFamily | GaugeMetricFamily, value: _Values) -> Metric:
    for labels, number in value.items() if isinstance(value, Mapping) else [((), value)]:
        family.add_metric(labels, number)
    return family


def _neighbours(neighbours: list[NeighbourStatus]) -> Iterator[Metric]:
    states = {(n.name, state): float(n.state == state) for n in neighbours for state in (*State, "late", "going")}
    yield _gauge("neighbour_state", "1 for the state a neighbour is in.", states, "neighbour", "state")
    for field, (name, text) in _BY_NEIGHBOUR.items():
        yield _counter(name, text, {(n.name,): getattr(n, field) for n in neighbours}, "neighbour")
    for field, (name, text) in _TIMES.items():
        known = {(n.name,): ms / 1e3 for n in neighbours if (ms := getattr(n, field)) is not None}
        yield _gauge(name, text, known, "neighbour")


def _latency(latency: Histogram) -> Metric:
    """From a count per interval to Prometheus' counts up to each bound."""
    family = HistogramMetricFamily("collegium_item_seconds", "From an item's beginning here to its decision.")
    bounds = [*map(str, latency.bounds), "+Inf"]
    family.add_metric([], list(zip(bounds, accumulate(latency.counts), strict=True)), sum_value=latency.sum)
    return family
