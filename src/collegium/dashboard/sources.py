"""The feed: what the page asks of a source, and the source for runs that are recorded or simulated."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod

import msgspec
import numpy as np

from collegium.dashboard import what_if
from collegium.dashboard.snapshot import About, Averages, Item, Network, Snapshot, network_of
from collegium.dashboard.views import Views
from collegium.dashboard.what_if import Changes, Doubles, Labels, World
from collegium.errors import DataError, InputFileError
from collegium.protocol import registry


class Answer(msgspec.Struct, frozen=True):
    """What came of a what-if."""

    network: Network
    rule: str
    item: Item
    averages: Averages | None
    """None while the fast path is being compiled: ask again in a moment."""


class Feed(ABC):
    """A source of snapshots, and of what-ifs on the local statistics it has seen."""

    def __init__(self, views: Views | None) -> None:
        self.views = views
        self._compiled = threading.Event()
        self._one_at_a_time = threading.Lock()

    @property
    @abstractmethod
    def about(self) -> About:
        """What stays as it is."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """How things are now; its sequence grows with every change."""

    @abstractmethod
    def world(self, item: str) -> tuple[World, int]:
        """What a what-if starts from, and the place of an item in it."""

    def watch(self, starts: bool) -> None:
        """A viewer connects or leaves."""
        del starts

    def close(self) -> None:
        """No viewer will connect again."""
        return

    def answer(self, item: str, changes: Changes) -> Answer:
        """The item and the averages, with the changes."""
        given, i = self.world(item)
        world = what_if.changed(given, changes)
        with self._one_at_a_time:
            averages = None
            if self._compiled.is_set():
                averages = what_if.averages(world, self._before(given))
            return Answer(
                network_of(world.policy),
                registry.describe(world.rule),
                what_if.item(world, i, self.picture(item)),
                averages,
            )

    def picture(self, item: str) -> str | None:
        """Address of the item's views."""
        i = self.place(item)
        return None if i is None else f"/api/views/{i}.png"

    def place(self, item: str) -> int | None:
        """Place of an item in the data set whose views are shown."""
        return int(item) if self.views is not None and int(item) < len(self.views) else None

    def compile(self, world: World) -> None:
        """Run once in a thread of its own: the first run compiles, which may take a while on a new machine."""

        def run() -> None:
            self._before(world)
            self._compiled.set()

        threading.Thread(target=run, name="compile", daemon=True).start()

    def _before(self, world: World) -> Labels:
        return what_if.decisions(world)


class Recorded(Feed):
    """A run that is computed from scores: all of it is there from the start."""

    def __init__(
        self,
        world: World,
        title: str,
        agents: tuple[str, ...] = (),
        classes: tuple[str, ...] = ("+1", "-1"),
        views: Views | None = None,
    ) -> None:
        super().__init__(views)
        n, K = world.scores.shape[:2]
        if n == 0:
            raise InputFileError("there are no items to show")
        if views is not None and len(views) != n:
            raise DataError(
                f"there are scores of {n} items, but views of {len(views)}: leave out --data, or take its own test set"
            )
        self._world = world
        self._about = About(
            kind="recorded", title=title, agents=list(agents) or [f"agent {k}" for k in range(K)], classes=classes,
            rounds=world.rounds, rule=registry.describe(world.rule), scale=usual(world.scores), items=n,
            has_truth=world.y is not None, has_views=views is not None, network=network_of(world.policy),
            topologies=list(what_if.topologies(K)), rules=what_if.own_rules(),
        )  # fmt: skip
        self._given: Labels | None = None
        first = opening(world.scores)
        self._snapshot = Snapshot(1, [what_if.item(world, first, self.picture(str(first)))])
        self.compile(world)

    @property
    def about(self) -> About:
        return self._about

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def world(self, item: str) -> tuple[World, int]:
        n = len(self._world.scores)
        if not (item.isascii() and item.isdecimal() and len(item) < 10 and int(item) < n):
            raise InputFileError(f"there is no item {item[:40]!r}: they are 0 to {n - 1}")
        return self._world, int(item)

    def _before(self, world: World) -> Labels:
        if self._given is None:
            self._given = what_if.decisions(world)
        return self._given


def opening(scores: Doubles) -> int:
    """The item to begin with: agents alone agree on it as little as possible, so that there is something to see."""
    labels = what_if.labels_of(scores)
    if scores.ndim == 2:
        return int(np.abs(labels.sum(axis=1)).argmin())
    return int((labels[:, :, None] == np.arange(scores.shape[2])).sum(axis=1).max(axis=1).argmin())


def usual(scores: Doubles) -> float:
    """How clear a clear but not extreme label is: where colours become strong."""
    sizes = what_if.clearness(scores)
    return float(np.quantile(sizes, 0.8)) or 1.0 if sizes.size else 1.0
