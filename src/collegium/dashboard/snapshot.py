"""What the page is sent: the same fields for a recorded run and for a live network."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from collegium.policy import Policy
from collegium.topology.deterministic import circle

Label = int
"""+1 or -1; of several classes, the place among them."""
Statistic = float | list[float]
"""One number; of several classes, one for each."""
START = secrets.token_hex(8)
"""Another one every time a dashboard starts, so that a page of the one before knows."""


class Network(msgspec.Struct, frozen=True):
    """The links, their weights, and where to draw the agents."""

    positions: list[tuple[float, float]]
    """x to the right and y upwards."""
    links: list[tuple[int, int, float]]
    """Sender, receiver and the weight the receiver gives; no self-loops."""
    perron: list[float]
    slem: float
    """How fast disagreement shrinks: its share that is left after a round, in the long run."""


class Item(msgspec.Struct, frozen=True):
    """One item, as far as its rounds have come; None where it is not known yet."""

    id: str
    """What the server calls it."""
    name: str
    truth: Label | None
    rounds: int
    """How many rounds it will have."""
    statistics: list[list[Statistic | None]]
    """By round, then by agent; round 0 is the local statistic."""
    limit: Statistic | None
    """Where all statistics tend to, for rules that average."""
    settled: list[list[bool | None]] | None
    """By round, then by agent: whether the label is proven to stay; None for rules without a proof."""
    spoke: list[list[bool]]
    """By round from 1 on, then by agent: who sent a message."""
    bits: int | None = None
    """Sent about this item by all agents, in all rounds."""
    missed: list[list[str]] = []
    """Live: by agent, the neighbours it had to do without."""
    views: list[str] = []
    """Live: by agent, whether it had a view: given, missing, late, waiting."""
    picture: str | None = None
    """Address of the strip with every agent's view, side by side."""


class Averages(msgspec.Struct, frozen=True):
    """Averages over the items at hand."""

    items: int
    total: int
    """How many items there are: of very many, the first ones are averaged."""
    known: int
    """Of how many items the class is known: errors are averages over these."""
    errors: list[float] | None
    """Mean error of the agents after each round, and before the first that of each alone; None without labels."""
    best: list[float] | None
    worst: list[float] | None
    bits: list[tuple[int, float]]
    """Rounds, and mean bits per item when agents stop after so many."""
    changed: float
    """Share of all final decisions that are not those of the run as it was given."""
    split: list[int]
    """Places of items on which agents alone do not agree."""
    wrong: list[int]
    """Places of items that some agent gets wrong in the end; without labels, on which they do not agree in the end."""


class Health(msgspec.Struct, frozen=True):
    """The state of a live agent; None for what is not known."""

    state: str
    """up, late, down or refused, by its neighbours and its own port."""
    why: str
    rounds_per_second: float | None
    p50_ms: float | None
    p99_ms: float | None
    bytes_sent: int | None
    bytes_received: int | None
    bytes_per_second: float | None
    rejected: int | None
    """Frames this agent refused."""
    pending: int | None
    done: int | None


class Snapshot(msgspec.Struct, frozen=True):
    """Everything that may have changed since the one before."""

    sequence: int
    items: list[Item]
    """Newest first."""
    health: list[Health] | None = None
    """By agent; None for a run that is not live."""
    notes: list[str] = []
    start: str = START


class About(msgspec.Struct, frozen=True):
    """What stays as it is while the dashboard runs."""

    kind: str
    """recorded or live."""
    title: str
    agents: list[str]
    classes: tuple[str, ...]
    """The labels of +1 and -1; of several classes, of the entries of a statistic."""
    rounds: int
    rule: str
    scale: float
    """How clear a label usually is, for colours: a usual |statistic|, or lead of the largest entry over the second."""
    items: int
    """How many there are to choose from; 0 for a live network, whose items come and go."""
    has_truth: bool
    has_views: bool
    network: Network
    topologies: list[str]
    """Those that a what-if may change to."""
    rules: list[str] = []
    """Rules of one's own that a what-if may change to, beside the built-in ones."""
    start: str = START


def network_of(policy: Policy, positions: NDArray[np.float64] | None = None) -> Network:
    """A policy as the page draws it."""
    graph = policy.graph
    places: Any = graph.positions if positions is None else positions
    places = circle(policy.size) if places is None else places
    receiver = np.repeat(np.arange(policy.size), np.diff(graph.indptr))
    links = [
        (int(l), int(k), float(weight))
        for l, k, weight in zip(graph.indices, receiver, policy.weights, strict=True)
        if l != k
    ]
    return Network([(float(x), float(y)) for x, y in places], links, policy.perron.tolist(), float(policy.slem))
