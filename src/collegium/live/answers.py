"""What an agent answers: results of items, its status, what a dashboard follows. Structs, so that the port, its
OpenAPI document and the client share one definition."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from collegium.errors import LiveError, ScoreError

Name = int | str
Number = float | list[float]
"""A statistic or score: one number for two classes, one for each class for more."""


class Evidence(Struct, frozen=True, gc=False):
    """Whose views are in a statistic."""

    views: int
    """How many agents' views."""
    agents: int
    """How many there can be: the agents whose views reach this one within the rounds."""
    missing: list[str]
    """Agents whose views are not in it, the first 32; those out of reach are not counted."""


class ItemResult(Struct, frozen=True, gc=False):
    """The result of an item at this agent."""

    id: Name
    label: Any
    statistic: Number
    score: Number
    """The agent's own local statistic, 0 if it had no view."""
    settled: bool
    """Whether every view that can be is in the statistic, no message was missing, the label was the same before the
    last round, and all messages agreed on it."""
    evidence: Evidence
    rounds: int
    """Rounds done; fewer than the network's if the item's deadline came first."""
    view: str
    """given, missing (the agent took part from zero), or late (it came after that, and began the item once more)."""
    heard: list[str]
    missed: list[str]
    """Neighbours whose message was missing in at least one round."""
    latency_ms: float
    trace: list[Number | None] | None = None
    """The statistic of every round, round 0 being the score; None before the agent took part."""


class RecentItem(Struct, frozen=True):
    """An item as far as it is."""

    identity: str
    round: int
    decided: bool
    view: str
    """waiting, given, missing or late."""
    score: Number | None
    statistic: Number | None
    trace: list[Number | None]
    spoke: list[bool]
    """In which rounds this agent sent a message about it."""
    settled: bool | None
    evidence: Evidence | None
    missed: list[str]
    age_ms: float


class Recent(Struct, frozen=True):
    """The items that came last, newest first."""

    name: str
    number: int
    rounds: int
    items: list[RecentItem]


class NeighbourStatus(Struct, frozen=True):
    """A neighbour, as this agent sees it."""

    name: str
    number: int
    direction: str
    """in: it is heard; out: it hears this agent; both."""
    state: str
    reason: str
    """Why it is not up, or what was wrong with the last frame of it that was rejected."""
    response_ms: float | None
    deadline_ms: float
    missed: int
    """Messages missing when a round went on."""
    rejected_frames: int
    over_budget: int
    """Items, questions and frames of it beyond its budget, which were dropped."""


class ItemCounts(Struct, frozen=True):
    """Items by state and result."""

    pending: int
    """Begun and not decided."""
    waiting: int
    """Submitted here and not begun, because the agent is busy."""
    most: int
    """That may be submitted here and not decided."""
    done: int
    from_zero: int
    """Decided without this agent's view."""
    with_missing: int
    """Decided with a neighbour's message missing in some round."""
    incomplete: int
    """Decided without some agent's view."""
    past_deadline: int
    """Decided at their deadline, before the last round."""
    refused: int
    """Refused because too many were pending."""
    no_room: int
    """Neighbours' items left out for lack of memory or budget."""
    failed: int
    """Given up because the rule raised an exception."""


class ByteCounts(Struct, frozen=True):
    """Bytes of frames."""

    sent: int
    received: int


class Quantiles(Struct, frozen=True):
    """Latencies in milliseconds; None before any item."""

    p50: float | None
    p99: float | None


class Histogram(Struct, frozen=True):
    """Latencies in seconds: how many up to each bound, and one more for those above."""

    bounds: list[float]
    counts: list[int]
    sum: float


class Status(Struct, frozen=True):
    """The state of an agent and its neighbours."""

    name: str
    number: int
    network: str
    ready: bool
    not_ready_reason: str | None
    rule: str
    rounds: int
    agents: list[str]
    """Everybody in the network, by number."""
    classes: list[Any]
    neighbours: list[NeighbourStatus]
    refused_peers: dict[str, int]
    items: ItemCounts
    rounds_done: int
    re_requested: int
    overloaded_s: float
    """Seconds in which submissions had to wait or were refused."""
    bytes: ByteCounts
    latency_ms: Quantiles
    latency: Histogram
    up_s: float


class ItemResults(Struct, frozen=True):
    """One result for each item of a request, in its order."""

    items: list[ItemResult]


class Accepted(Struct, frozen=True):
    """Items that were accepted, by a request that does not wait for their results."""

    accepted: int


class Pending(Struct, frozen=True):
    """An item that is not decided yet."""

    id: Name
    state: str = "pending"


class Readiness(Struct, frozen=True, omit_defaults=True):
    """Whether all neighbours are connected."""

    ready: bool
    error: str | None = None
    """Who is missing."""


class Error(Struct, frozen=True, omit_defaults=True):
    """Why a request was refused, in one sentence."""

    error: str
    retry_after: float | None = None
    """Seconds after which a retry makes sense, if too much was asked at once."""


class Busy(LiveError):
    """Too many items are pending; retry after `retry_after` seconds."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"the agent has as many items pending as it can take: retry in {retry_after:.1f} s")
        self.retry_after = retry_after


class Conflict(ScoreError, LiveError):
    """An item was submitted before, with another score."""
