"""What an agent counts, as Prometheus reads it: gathered when asked for, never on the way of an item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from collegium.live.peers import State

if TYPE_CHECKING:
    from collegium.live.agent import Agent

_ITEMS = {
    "done": ("decided", "Items decided."),
    "from_zero": ("from_zero", "Items decided for which this agent had no view in time and began from zero."),
    "with_missing": ("with_missing", "Items decided without a word of some neighbour in some round."),
    "refused": ("refused", "Items refused because too many were in hand."),
    "no_room": ("no_room", "Items of neighbours in which this agent could not take part for lack of room."),
}


class Metrics(Collector):
    """A registry of the agent's own; `answers` counts answers of its port by endpoint and status."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, agent: Agent, answers: Mapping[tuple[str, int], int]) -> None:
        self._agent, self._answers = agent, answers
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """Everything, in Prometheus' own format."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing: so the registry does not ask the agent when it is only being set up."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Families made from what the agent says of itself now."""
        status = self._agent.status()
        items = status["items"]
        for key, (name, words) in _ITEMS.items():
            yield _counter(f"items_{name}", words, items[key])
        yield _gauge("items_in_hand", "Items begun and not decided.", items["in_hand"])
        yield _gauge("items_most", "Items submitted here that may be in hand at once.", items["most"])
        yield _counter("rounds", "Rounds done, one for every item.", status["rounds_done"])
        yield _counter("questions", "Words of neighbours that were overdue and asked for.", status["asked"])
        yield _gauge("ready", "1 if all neighbours are there.", status["ready"])
        carried = CounterMetricFamily("collegium_bytes", "Bytes of frames said and heard.", labels=["direction"])
        for direction, count in status["bytes"].items():
            carried.add_metric([direction], count)
        yield carried
        yield from _neighbours(status["neighbours"])
        yield _latency(status["latency"])
        answers = CounterMetricFamily("collegium_http_answers", "Answers of this port.", labels=["endpoint", "status"])
        for (endpoint, code), count in sorted(self._answers.items()):
            answers.add_metric([endpoint, str(code)], count)
        yield answers


def _counter(name: str, words: str, value: float) -> Metric:
    return CounterMetricFamily(f"collegium_{name}", words, value=value)


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(f"collegium_{name}", words, value=value)


def _neighbours(neighbours: list[dict[str, Any]]) -> Iterator[Metric]:
    state = GaugeMetricFamily(
        "collegium_neighbour_state", "1 for the state a neighbour is in.", labels=["neighbour", "state"]
    )
    rejected = CounterMetricFamily(
        "collegium_frames_rejected", "Frames of a neighbour that were nonsense.", labels=["neighbour"]
    )
    missed = CounterMetricFamily(
        "collegium_words_missed", "Words of a neighbour a round went on without.", labels=["neighbour"]
    )
    response = GaugeMetricFamily(
        "collegium_response_seconds", "How long a neighbour's word usually comes after our own.", labels=["neighbour"]
    )
    deadline = GaugeMetricFamily(
        "collegium_deadline_seconds", "When a neighbour's word is overdue.", labels=["neighbour"]
    )
    for neighbour in neighbours:
        name = neighbour["name"]
        for possible in State:
            state.add_metric([name, str(possible)], float(neighbour["state"] == possible))
        rejected.add_metric([name], neighbour["rejected_frames"])
        missed.add_metric([name], neighbour["missed"])
        if neighbour["response_ms"] is not None:
            response.add_metric([name], neighbour["response_ms"] / 1e3)
        deadline.add_metric([name], neighbour["deadline_ms"] / 1e3)
    yield from (state, rejected, missed, response, deadline)


def _latency(latency: dict[str, Any]) -> Metric:
    """From a count per interval to Prometheus' counts up to each bound."""
    family = HistogramMetricFamily("collegium_item_seconds", "From an item's beginning here to its decision.")
    bounds = [str(bound) for bound in latency["bounds"]] + ["+Inf"]
    total, buckets = 0, []
    for bound, count in zip(bounds, latency["counts"], strict=True):
        total += count
        buckets.append((bound, float(total)))
    family.add_metric([], buckets, sum_value=latency["sum"])
    return family
