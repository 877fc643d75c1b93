"""Who waits for which items, and the submissions that wait until the agent has room for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import U64
from collegium.errors import LiveError
from collegium.live.answers import ItemResult, Name

Rows = NDArray[np.intp]
Doubles = NDArray[np.float64]


class Ticket:
    """A request that waits for its items."""

    def __init__(self, names: Sequence[Name], trace: bool) -> None:
        self.names, self.trace, self.open = names, trace, len(names)
        self.results: list[ItemResult | None] = [None] * len(names)
        self.error = ""
        """Why some of them will never be decided."""
        self.future: Future[list[ItemResult]] = Future()


Place = tuple[Ticket, int]
"""A request and an item's place in it."""


Answers = Callable[[Sequence[Name], Rows, bool], list[ItemResult]]


class Waiters:
    """Requests by the rows of their items: the first of each row in arrays, further ones beside them."""

    def __init__(self, capacity: int) -> None:
        self._ticket = np.full(capacity, None, object)
        self._place = np.zeros(capacity, np.intp)
        self._more: dict[int, list[Place]] = {}
        self.completed: list[Ticket] = []

    def add(self, rows: Rows, ticket: Ticket, places: Rows) -> None:
        """A request waits for the items of rows, which have these places in it."""
        taken = self._ticket[rows] != None  # noqa: E711 - an array of objects
        if taken.any():
            for row, place in zip(rows[taken].tolist(), places[taken].tolist(), strict=True):
                self._more.setdefault(row, []).append((ticket, place))
            rows, places = rows[~taken], places[~taken]
        self._ticket[rows], self._place[rows] = ticket, places

    def rows(self) -> Rows:
        """The rows that are waited for."""
        return np.flatnonzero(self._ticket != None)  # noqa: E711

    def _pop(self, rows: Rows) -> Iterator[tuple[Ticket, list[int], Rows]]:
        """Who waits for these items: requests, the places of the items in them, and their rows."""
        tickets, self._ticket[rows] = self._ticket[rows].tolist(), None
        if tickets.count(tickets[0]) == len(tickets):
            groups: Any = {tickets[0]: slice(None)}
        else:
            groups = {}
            for i, ticket in enumerate(tickets):
                groups.setdefault(ticket, []).append(i)
        for ticket, some in groups.items():
            if ticket is not None:
                yield ticket, self._place[rows[some]].tolist(), rows[some]
        for row in rows.tolist() if self._more else ():
            for ticket, place in self._more.pop(row, ()):
                yield ticket, [place], np.array([row])

    def decided(self, rows: Rows, results: Answers) -> None:
        """Items are decided: hand their results to those who wait."""
        for ticket, places, some in self._pop(rows):
            self.tell(ticket, places, some, results)

    def tell(self, ticket: Ticket, places: list[int], rows: Rows, results: Answers) -> None:
        """Results for a request, while the rows are still theirs."""
        for place, result in zip(
            places, results([ticket.names[place] for place in places], rows, ticket.trace), strict=True
        ):
            ticket.results[place] = result
        ticket.open -= len(places)
        if not ticket.open and not ticket.error:
            self.completed.append(ticket)

    def fail(self, rows: Rows, reason: str) -> None:
        """Items are given up: requests that wait for them fail, once."""
        for ticket, _, _ in self._pop(rows):
            if not ticket.error:
                ticket.error = reason
                self.completed.append(ticket)

    def drain(self) -> list[Ticket]:
        """Every request that waits; it is told by the caller."""
        return [ticket for ticket, _, _ in self._pop(self.rows())] if len(self.rows()) else []


class Backlog:
    """Items submitted while the agent is busy, in order; any of them can be taken out once a neighbour begins it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._items: dict[int, tuple[Doubles, list[Place]]] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, item: int) -> bool:
        return item in self._items

    def has(self, ids: U64) -> NDArray[np.bool_]:
        """Which items wait."""
        if not self._items:
            return np.zeros(len(ids), np.bool_)
        return np.array([item in self._items for item in ids.tolist()], np.bool_)

    def score(self, item: int) -> Doubles:
        """The score an item was submitted with."""
        return self._items[item][0]

    def add(self, item: int, score: Doubles, place: Place) -> None:
        """An item waits, or one more request for it."""
        self._items.setdefault(item, (score, []))[1].append(place)

    def first(self, most: int) -> U64:
        """The items that wait longest."""
        return np.fromiter((item for item, _ in zip(self._items, range(most), strict=False)), np.uint64)

    def take(self, ids: Iterable[int]) -> tuple[list[Doubles], list[list[Place]]]:
        """Take items out: their scores and who waits for them."""
        taken = [self._items.pop(item) for item in ids]
        return [score for score, _ in taken], [places for _, places in taken]

    def drain(self) -> list[Ticket]:
        """Every request that waits; it is told by the caller."""
        items, self._items = self._items, {}
        return [ticket for _, places in items.values() for ticket, _ in places]


def deliver(tickets: list[Ticket]) -> None:
    """Hand out results, or the reason why there are none; to be called outside of any lock."""
    for ticket in tickets:
        if not ticket.future.set_running_or_notify_cancel():
            continue
        if ticket.error:
            ticket.future.set_exception(LiveError(ticket.error))
        else:
            ticket.future.set_result([one for one in ticket.results if one is not None])
