"""From what agents sent to what is in each inbox."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.seat import Seat
from collegium.kernels.job import Floats, Job
from collegium.policy import Policy
from collegium.protocol.base import LOST, OWN, RECEIVED, SILENT, Inbox, Mask
from collegium.protocol.mailbox import HoldLast
from collegium.protocol.sending import Sent


class Direct:
    """Over perfect links: what an agent sent last is what everybody who hears it has.

    Where others hear it than before, that ends when it is silent: then go on with `by_link()`.
    """

    def __init__(self, job: Job, width: int) -> None:
        self._job, self._width = job, width
        n, K = job.scores.shape[:2]
        self._sent: dict[tuple[int, int], Floats] | None = None if type(job.schedule) is Policy else {}
        """Of a network that changes, what was sent last over each link."""
        self._mailbox, self._known = job.mailbox, np.True_
        self._always_read = type(job.mailbox) is not HoldLast
        self._last = np.zeros((K, n, width))
        self._spoke = np.ones((K, n), np.bool_)
        self._silence = False
        self._views: dict[int, tuple[Seat, Floats, NDArray[np.uint8]]] = {}

    def post(self, t: int, seats: Sequence[Seat], sent: Sequence[Sent]) -> None:
        """All messages of a round."""
        self._silence = any(message.spoke is not None for message in sent)
        if self._sent is not None:
            self._last = np.empty_like(self._last)
            for seat, values in zip(seats, self._last, strict=True):
                self._sent.update({(seat.agent, k): values for k in seat.receivers.tolist()})
        for k, message in enumerate(sent):
            if message.spoke is None:
                self._last[k] = message.values
                self._spoke[k] = True
            else:
                self._last[k][message.spoke] = message.values
                self._spoke[k] = message.spoke

    def by_link(self) -> ThroughLinks:
        """The same so far, every link with a memory of its own."""
        found = ThroughLinks(self._job, self._width)
        found.remember(self._last, self._sent or {})
        return found

    def inbox(self, t: int, seat: Seat) -> Inbox:
        """What an agent has in this round."""
        known = self._views.get(seat.agent)
        if known is None or known[0] is not seat:  # most seats are the same in every round
            shape = len(seat.senders), self._last.shape[1]
            views = np.broadcast_to(seat.weights[:, None], shape), np.broadcast_to(all_received(seat), shape)
            known = self._views[seat.agent] = seat, *views
        _, weights, status = known
        if self._silence:
            status = np.where(self._spoke[seat.senders], np.uint8(RECEIVED), np.uint8(SILENT))
            if seat.own is not None:
                status[seat.own] = OWN
        inbox = Inbox(self._last[seat.senders], weights, status, self._last[seat.agent].copy())
        if not (self._silence or self._always_read):
            return inbox
        return self._mailbox.read(inbox, np.broadcast_to(self._known, status.shape))


def all_received(seat: Seat) -> NDArray[np.uint8]:
    """The status of every sender where everything came, shape (m, 1)."""
    status = np.full((len(seat.senders), 1), RECEIVED, np.uint8)
    if seat.own is not None:
        status[seat.own] = OWN
    return status


class _Link:
    """What a receiver has of one sender."""

    def __init__(self, n: int, width: int) -> None:
        self.last = np.zeros((n, width))
        self.known = np.zeros(n, np.bool_)
        self._newest = np.zeros(n, np.int64)
        """The round in which the message was sent that came last."""
        self._read = 0
        """The round in which the receiver last took in what had arrived."""
        self._late: deque[tuple[int, NDArray[np.int64], Floats, Mask | None]] = deque()
        """Messages under way: round sent, round of arrival by item (0: never), values, about which items."""
        self._due: list[tuple[int, Mask | None, Floats, Mask | None]] = []
        """Messages of this round: round sent, which items arrive, values, about which items."""

    def send(self, t: int, values: Floats, spoke: Mask | None, delivered: Mask | None, late: Any) -> None:
        """A message sent in round t about the items of `spoke`."""
        if late is None:
            self._due.append((t, delivered, values, spoke))
        else:
            self._late.append((t, t + late if delivered is None else np.where(delivered, t + late, 0), values, spoke))

    def arrive(self, t: int) -> NDArray[np.uint8]:
        """Take in what arrives in round t; the status of every item."""
        if not self._late and len(self._due) == 1 and self._due[0][3] is None:  # what nearly always happens
            _, delivered, values, _ = self._due.pop()
            if delivered is None:
                delivered = np.ones(len(self.known), np.bool_)
            self.last = np.where(delivered[:, None], values, self.last)
            self.known |= delivered
            return np.uint8(LOST) - np.uint8(LOST - RECEIVED) * delivered.view(np.uint8)
        status = np.full(len(self.known), LOST, np.uint8)
        # What fell due while this sender was not heard is there now.
        arriving = [
            (sent_in, (self._read < arrival) & (arrival <= t), values, spoke)
            for sent_in, arrival, values, spoke in self._late
        ]
        self._read = t
        for sent_in, due, values, spoke in arriving + self._due:
            here = np.ones(len(status), np.bool_) if due is None else due
            fresh = here if spoke is None else here & spoke
            if spoke is not None:
                np.copyto(status, SILENT, where=here & ~spoke & (status == LOST))
            if self._late:  # a message that was overtaken is none
                fresh = fresh & (self._newest < sent_in)
                np.copyto(self._newest, sent_in, where=fresh)
            status -= (status - np.uint8(RECEIVED)) * fresh
            self.last = np.where(fresh[:, None], values, self.last)
            self.known |= fresh
        self._due.clear()
        while self._late and (self._late[0][1] <= t).all():
            self._late.popleft()
        return status


class ThroughLinks:
    """Over links that lose or delay, or with messages that differ by receiver: every link has its own memory."""

    def __init__(self, job: Job, width: int) -> None:
        self._job, self._width = job, width
        n, K = job.scores.shape[:2]
        self._own = np.zeros((K, n, width))
        self._links: dict[tuple[int, int], _Link] = {}

    def remember(self, own: Floats, sent: Mapping[tuple[int, int], Floats]) -> None:
        """What each agent (K, n, w) and each link (n, w) had last, of every item."""
        self._own = own.copy()
        for ends, values in sent.items():
            link = self._links[ends] = _Link(len(self._job.ids), self._width)
            link.last, link.known = values.copy(), np.ones(len(values), np.bool_)

    def post(self, t: int, seats: Sequence[Seat], sent: Sequence[Sent]) -> None:
        """All messages of a round."""
        for seat, message in zip(seats, sent, strict=True):
            values = message.values.copy()  # a rule may keep its arrays
            if message.spoke is not None:  # rows for all items, so that a row is an item
                values = np.zeros((len(self._job.ids), *values.shape[1:]))
                values[message.spoke] = message.values
            self._keep_own(seat.agent, message, values)
            spoke = None if message.spoke is None else message.spoke.copy()
            for place, receiver in enumerate(seat.receivers.tolist()):
                self._send(t, seat.agent, receiver, values if values.ndim == 2 else values[:, place], spoke)

    def _keep_own(self, k: int, message: Sent, values: Floats) -> None:
        own = values if values.ndim == 2 else message.own
        if own is not None:
            self._own[k] = own if message.spoke is None else np.where(message.spoke[:, None], own, self._own[k])

    def _send(self, t: int, sender: int, receiver: int, values: Floats, spoke: Mask | None) -> None:
        ids, links = self._job.ids, self._job.links
        link = self._links.get((sender, receiver))
        if link is None:
            link = self._links[sender, receiver] = _Link(len(ids), self._width)
        delivered, late = links.delivered(sender, receiver, t, ids), links.lateness(sender, receiver, t, ids)
        link.send(t, values, spoke, delivered, late)

    def inbox(self, t: int, seat: Seat) -> Inbox:
        """What an agent has in this round."""
        m, n = len(seat.senders), len(self._job.ids)
        values, status = np.empty((m, n, self._width)), np.full((m, n), OWN, np.uint8)
        known = np.ones((m, n), np.bool_)
        for place, sender in enumerate(seat.senders.tolist()):
            if sender == seat.agent:
                values[place] = self._own[sender]
                continue
            link = self._links[sender, seat.agent]
            status[place] = link.arrive(t)
            values[place], known[place] = link.last, link.known
        weights = np.broadcast_to(seat.weights[:, None], (m, n))
        inbox = Inbox(values, weights, status, self._own[seat.agent].copy())
        return self._job.mailbox.read(inbox, known)
