"""What an agent answers: results of items, its status, what a dashboard follows. Structs, so that the port, its
OpenAPI document and the client share one definition."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, Struct, UnsetType

from collegium.errors import LiveError, ScoreError


def _plain(label: Any) -> Any:
    """Labels may be NumPy's own numbers and texts."""
    return label.item() if isinstance(label, np.generic) else str(label)


encode = msgspec.json.Encoder(enc_hook=_plain).encode
"""Answers as JSON."""
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
    """Rounds done; fewer than the network's if the item's deadline came first. Without rounds: how often it sent."""
    view: str
    """given, missing (the agent took part from zero), or late (it came after that, and began the item once more)."""
    heard: list[str]
    missed: list[str]
    """Neighbours whose message was missing in at least one round."""
    latency_ms: float
    trace: list[Number | None] | None = None
    """The statistic of every round, round 0 being the score; None before the agent took part."""
    set: list[Any] | UnsetType = UNSET
    """The classes among which the true one is, but for a share α of all items; where the agent has thresholds."""
    sure: bool | UnsetType = UNSET
    """Whether to rely on the label: of items it is sure of, at most a given share is wrong; where it has a limit."""


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
    """in: it sends to this agent; out: it receives from it; both."""
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
    compared: int = 0
    """Messages of it that were compared with the others of their round: with robust rules only."""
    far: int = 0
    """Those of them that lay far from the rest: evidence that it lies, or sees badly. Nothing is done about it."""
    forged: int = 0
    """Scores of others that it handed on and that those others have not signed: refused, with signed flooding only."""


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


class Privacy(Struct, frozen=True):
    """What an agent with noise on its scores has spent."""

    epsilon: float
    """The price of an item."""
    spent: float
    """Of all items together."""
    budget: float | None
    """Beyond it items are refused; None: never."""


class Mass(Struct, frozen=True):
    """Running sums of an agent in a network without rounds, over the items it remembers: numbers of views."""

    own: float
    """Items it has a view of."""
    taken: float
    """What it took from its senders."""
    held: float
    given: float
    """What it gave to its receivers."""
    error: float
    """The largest difference between own + taken and held + given of any item, relative to what was moved: nothing
    but rounding, as long as no sum is lost."""
    epochs: int
    """How often an item began anew, because an agent was restarted, came or left."""


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
    gain: Number = 1.0
    """How much its scores count: 1 unless the network was tuned; of more than two classes maybe one for each."""
    tuning: str = ""
    """The session of the tuning its gain is of."""
    caught: list[str] = []
    """Agents that signed two different scores of one item: left out since then. With signed flooding only."""
    privacy: Privacy | None = None
    """With rules that add noise to scores."""
    mass: Mass | None = None
    """Without rounds only."""
    epoch: int = 0
    """How often the network was changed while it ran."""
    change: str = ""
    """How far the agent is with the next change, and whom it waits for."""


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


class Learned(Struct, frozen=True):
    """What was learned from labelled items, and at what cost. Errors are shares of the held-out items."""

    agreed: bool
    """Whether all agents made the same choice; if not, nothing is proposed."""
    kept: str
    """tuned; or as it was, equal or best agent, if the tuned gains were not better."""
    choice: int
    """Stands for all that was chosen: another number at another agent is another choice."""
    best_agent: str
    held_out_items: int
    error_before: float
    error_equal: float
    error_best: float
    error_tuned: float
    conversations: int
    rows: int
    """Items of all conversations together."""
    bytes_sent: int
    """Of frames, by this agent while it tuned."""
    seconds: float
    largest: float
    """The largest number that enters the network of the labelled items with the new gain."""


class TuningStep(Struct, frozen=True):
    """How far an agent is in a tuning."""

    agent: str
    session: str
    state: str
    """checked, proposed (its gain is known and not used), used or dropped; away: it took no part."""
    gain: Number
    """Proposed or used; of more than two classes maybe one for each."""
    shift: Number
    """What its scores lose before that."""
    bound: float
    """The largest score it may have."""
    learned: Learned | None = None
    """What was learned, if it was just now."""


class Labelled(Struct, frozen=True):
    """What an agent made of an item's label."""

    agent: str
    id: Name
    changed: bool
    """Whether the label was new to it."""
    gain: Number
    """As it is now."""
    labels: int
    """Items whose labels became known one by one, and from which the gain was learned."""


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
