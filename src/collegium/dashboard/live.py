"""The feed of a live network: polls every agent a few times a second, read-only, while a viewer is connected."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from collegium.dashboard import what_if
from collegium.dashboard.snapshot import About, Health, Item, Snapshot, network_of
from collegium.dashboard.sources import Feed
from collegium.dashboard.views import Views
from collegium.dashboard.what_if import Doubles, Labels, World
from collegium.data import Dataset
from collegium.errors import CollegiumError, InputFileError
from collegium.live import signing, suspicion
from collegium.live.answers import RecentItem, Status
from collegium.live.client import Client
from collegium.live.launcher import Member, members
from collegium.policy import Policy
from collegium.protocol import registry

PERIOD = 0.25
"""Seconds between two polls of an agent."""
_TIMEOUT = 2.0
_POLLED = 16  # items requested of an agent: those of different agents must overlap
_SHOWN = 8
_MOMENTS = 3.0  # seconds that rates are means of
_REMEMBERED = 400  # items, for what-ifs
_WORST = ("refused", "over-budget", "down", "silent", "mute", "going", "late", "up")


@dataclass
class _Report:
    """An agent's last status, or why there is none."""

    status: Status | None = None
    why: str = ""
    state: str = "down"
    """Its state, if there is no status."""
    counted: deque[tuple[float, int, int]] = field(default_factory=deque)
    """When it was polled lately, and how many rounds it had done and bytes it had sent by then."""

    def rates(self) -> tuple[float | None, float | None]:
        """Rounds and bytes per second, over the last moments."""
        if len(self.counted) < 2:
            return None, None
        (then, rounds, sent), (now, more_rounds, more_sent) = self.counted[0], self.counted[-1]
        return (more_rounds - rounds) / (now - then), (more_sent - sent) / (now - then)


@dataclass
class _Known:
    """An item, as each agent reports it."""

    born: float
    reports: dict[int, RecentItem] = field(default_factory=dict)


class Live(Feed):
    """A network that `collegium live init` made."""

    def __init__(self, folder: str | Path, make_views: Callable[[int], Views] | None = None) -> None:
        network = members(folder)
        K = len(network)
        if [member.file.agent.number for member in network] != list(range(K)):
            raise InputFileError(
                f"{folder} has not the files of all agents of its network: take the folder it was made in"
            )
        policy = _policy(network)
        super().__init__(make_views(K) if make_views is not None else None)
        first = network[0].file
        self._members = network
        classes = tuple(str(label) for label in first.model.classes)
        form = (K,) if len(classes) == 2 else (K, len(classes))
        self._base = World(policy, np.zeros((0, *form)), first.talk.rounds, first.rule(), first.talk.seed)
        dataset = None if self.views is None else self.views.dataset
        names, self._truth = _named(classes, dataset)
        drawn = next((g for g in what_if.topologies(K).values() if g == policy.graph), policy.graph)
        self._about = About(
            kind="live", title=f"network {first.agent.network} in {Path(folder).name or folder}",
            agents=[member.file.agent.name for member in network],
            classes=names,
            rounds=self._base.rounds, rule=registry.describe(self._base.rule), scale=1.0, items=0,
            has_truth=dataset is not None, has_views=dataset is not None, network=network_of(policy, drawn.positions),
            topologies=list(what_if.topologies(K)),
        )  # fmt: skip
        self._reports = [_Report() for _ in network]
        self._items: OrderedDict[str, _Known] = OrderedDict()
        self._sequence = 0
        self._lock = threading.Lock()
        self._viewers = 0
        self._watched, self._ending = threading.Event(), threading.Event()
        clients = [member.client(_TIMEOUT) for member in network]
        for k, client in enumerate(clients):
            threading.Thread(target=self._poll, args=(k, client), name=f"poll-{k}", daemon=True).start()
        self.compile(replace(self._base, scores=np.zeros((1, *form))))

    @property
    def about(self) -> About:
        return self._about

    def watch(self, starts: bool) -> None:
        with self._lock:
            self._viewers += 1 if starts else -1
            (self._watched.set if self._viewers else self._watched.clear)()

    def close(self) -> None:
        self._ending.set()
        self._watched.set()

    def snapshot(self) -> Snapshot:
        with self._lock:
            newest = sorted(self._items, key=lambda id: -self._items[id].born)[:_SHOWN]
            items = [self._item(id) for id in newest]
            health = [self._health(k) for k in range(len(self._members))]
            refused = {reason for one in self._reports if one.status for reason in one.status.refused_peers}
            return Snapshot(self._sequence, items, health, sorted(refused))

    def world(self, item: str) -> tuple[World, int]:
        with self._lock:
            whole = {id: scores for id, known in self._items.items() if (scores := self._scores(known)) is not None}
        if item not in whole:
            raise InputFileError("this item's local statistics are not known for all agents: choose another item")
        names = [int(id, 16) for id in whole]
        y = None
        if self._truth is not None:
            places = [self.place(id) for id in whole]
            y = np.array([self._base.unknown if place is None else self._truth[place] for place in places], np.int64)
        return replace(self._base, scores=np.array(list(whole.values())), names=names, y=y), list(whole).index(item)

    def place(self, item: str) -> int | None:
        number = int(item, 16)
        return number if self.views is not None and number < len(self.views) else None

    # ── polling ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _poll(self, k: int, client: Client) -> None:
        """Poll one agent: a slow one is polled less often and does not delay the others."""
        with client:
            self._watched.wait()
            while not self._ending.is_set():
                begun = time.monotonic()
                self._poll_once(k, client)
                self._ending.wait(max(PERIOD - (time.monotonic() - begun), 0.02))
                self._watched.wait()

    def _poll_once(self, k: int, client: Client) -> None:
        try:
            status, recent = client.status(), client.recent(_POLLED)
            if other := self._members[k].is_another(status):
                raise InputFileError(other)
            self._record(k, status, recent, time.monotonic())
        except CollegiumError as problem:
            with self._lock:
                # It answers, but refuses this token.
                refuses = re.search(r" answered 40[13]:", str(problem))
                self._reports[k] = _Report(None, str(problem), "refused" if refuses else "down")
                self._sequence += 1

    def _record(self, k: int, status: Status, recent: list[RecentItem], now: float) -> None:
        with self._lock:
            counted = self._reports[k].counted
            if counted and status.rounds_done < counted[-1][1]:  # it was started again
                counted = deque()
            counted.append((now, status.rounds_done, status.bytes.sent))
            while now - counted[0][0] > _MOMENTS:
                counted.popleft()
            self._reports[k] = _Report(status, counted=counted)
            for item in recent:
                born = now - item.age_ms / 1e3
                known = self._items.setdefault(item.identity, _Known(born))
                known.reports[k] = item
            while len(self._items) > _REMEMBERED:
                self._items.pop(min(self._items, key=lambda id: self._items[id].born))
            self._sequence += 1

    # ── showing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _item(self, id: str) -> Item:
        known, K, T = self._items[id], len(self._members), self._base.rounds
        reports = [known.reports.get(k) for k in range(K)]
        traces: Any = [one.trace if one else [] for one in reports]
        reached = max((len(trace) for trace in traces), default=0)
        spoke = np.zeros((T, K), bool)
        for k, one in known.reports.items():
            spoke[: len(one.spoke), k] = one.spoke
        scores = self._scores(known)
        place = self.place(id)
        number = int(id, 16)
        audience = self._base.policy.graph.audience_sizes
        return Item(
            id=id,
            # A name of one's own comes as its hash, which hardly ever looks like a small number.
            name=str(number) if number < 2**40 else f"item {id[:6]}…",
            truth=None if place is None or self._truth is None else int(self._truth[place]),
            rounds=T,
            statistics=[[trace[t] if t < len(trace) else None for trace in traces] for t in range(reached)],
            limit=None if scores is None else what_if.limit(self._base, scores),
            settled=[[one.settled if one and t == T else None for one in reports] for t in range(reached)],
            spoke=spoke[: max(reached - 1, 0)].tolist(),
            bits=int((spoke @ audience).sum()) * self._base.rule.message_bits(),
            missed=[one.missed if one else [] for one in reports],
            views=[one.view if one else "waiting" for one in reports],
            picture=self.picture(id),
        )

    def _scores(self, known: _Known) -> Doubles | None:
        scores = [known.reports[k].score if k in known.reports else None for k in range(len(self._members))]
        return None if any(score is None for score in scores) else np.array(scores, np.float64)

    def _suspicion(self, k: int) -> str:
        """What others have against an agent: that it signed two scores, or that most of its messages lie far off."""
        for about in self._reports:
            if about.status and self._members[k].file.agent.name in about.status.caught:
                return f"{about.status.name}: it {signing.LIED}"
            for one in about.status.neighbours if about.status else ():
                if about.status and one.number == k and (evidence := suspicion.evidence(one.far, one.compared)):
                    return f"{about.status.name}: {evidence}"
        return ""

    def _health(self, k: int) -> Health:
        report = self._reports[k]
        views = [
            (one.state, f"{about.status.name}: {one.reason}" if one.reason else "")
            for about in self._reports
            if about.status
            for one in about.status.neighbours
            if one.number == k
        ]
        if report.why:
            views.append((report.state, report.why))
        nothing = ("up", "") if report.status else ("not polled yet", "")
        state, why = min(views, key=lambda view: _WORST.index(view[0]), default=nothing)
        if report.status is None:
            return Health(state, why or report.why, *[None] * 9)
        status, rates = report.status, report.rates()
        return Health(
            state=state,
            why=why or status.not_ready_reason or self._suspicion(k),
            rounds_per_second=rates[0],
            p50_ms=status.latency_ms.p50,
            p99_ms=status.latency_ms.p99,
            bytes_sent=status.bytes.sent,
            bytes_received=status.bytes.received,
            bytes_per_second=rates[1],
            rejected=sum(one.rejected_frames for one in status.neighbours),
            pending=status.items.pending,
            done=status.items.done,
        )


def _named(classes: tuple[str, ...], dataset: Dataset | None) -> tuple[tuple[str, ...], Labels | None]:
    """The classes as the page has them, that of +1 first or in the order of entries; and the labels of the data set's
    items in these terms. Names that both have are the same classes; else the network's are signs or places."""
    shown = classes if len(classes) > 2 else classes[::-1]
    if dataset is None:
        return shown, None
    names, y = dataset.class_names, np.asarray(dataset.y, np.int64)
    if len(names) != len(classes):
        raise InputFileError(
            f"the network has {len(classes)} classes, but the views are of {len(names)}: leave out --data"
        )
    if set(names) != set(shown):
        return names, y
    places = np.array([shown.index(name) for name in names])[y if len(names) > 2 else np.where(y > 0, 0, 1)]
    return shown, places if len(names) > 2 else np.where(places == 0, 1, -1)


def _policy(network: Sequence[Member]) -> Policy:
    A = np.zeros((len(network), len(network)))
    for k, member in enumerate(network):
        for heard in member.file.hears:
            if not 0 <= heard.number < len(network):
                raise InputFileError(f"{member.path.name} hears agent {heard.number}, whose file is not in the folder")
            A[heard.number, k] = heard.weight
    return Policy(A)
