"""Who waits for which items, and the submissions that wait until the agent has room for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future

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


class Waiters:
    """Requests by the rows of their items."""

    def __init__(self) -> None:
        self._by_row: dict[int, list[Place]] = {}
        self.completed: list[Ticket] = []

    def add(self, row: int, place: Place) -> None:
        """A request waits for the item of a row."""
        self._by_row.setdefault(row, []).append(place)

    def decided(self, rows: Rows, results: Callable[[list[Name], Rows, bool], list[ItemResult]]) -> None:
        """Items are decided: hand their results to those who wait."""
        if not self._by_row:
            return
        news: dict[Ticket, tuple[list[int], list[int]]] = {}
        for row in rows.tolist():
            for ticket, place in self._by_row.pop(row, ()):
                places, decided = news.setdefault(ticket, ([], []))
                places.append(place)
                decided.append(row)
        for ticket, (places, decided) in news.items():
            self.tell(ticket, places, np.array(decided), results)

    def tell(
        self,
        ticket: Ticket,
        places: list[int],
        rows: Rows,
        results: Callable[[list[Name], Rows, bool], list[ItemResult]],
    ) -> None:
        """Results for a request, while the rows are still theirs."""
        for place, result in zip(
            places, results([ticket.names[place] for place in places], rows, ticket.trace), strict=True
        ):
            ticket.results[place] = result
        ticket.open -= len(places)
        if not ticket.open and not ticket.error:
            self.completed.append(ticket)

    def fail(self, rows: Rows, reason: str) -> None:
        """Items are given up: those who wait for them are told, once."""
        for row in rows.tolist():
            for ticket, _ in self._by_row.pop(row, ()):
                if not ticket.error:
                    ticket.error = reason
                    self.completed.append(ticket)

    def drain(self) -> list[Ticket]:
        """Every request that waits; it is told by the caller."""
        by_row, self._by_row = self._by_row, {}
        return [ticket for places in by_row.values() for ticket, _ in places]


class Backlog:
    """Items submitted while the agent is busy, in order; any of them can be taken out once a neighbour begins it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._items: dict[int, tuple[Doubles, list[Place]]] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, item: int) -> bool:
        return item in self._items

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
