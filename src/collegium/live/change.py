"""How the agents of a running network go over to its next configuration: prepare, acknowledge, switch together.

    OLD ── prepare ──▶ PREPARED ── all reachable have prepared ──▶ CLOSED ── all reachable have closed ──▶ OPEN

The network's authority numbers and signs configurations, so there is nothing to vote on. An agent that has prepared the
next one says so, and what it heard of others; when everybody whom it can reach has prepared, it begins no more items of
the old epoch, and when all of those have closed it begins items of the new one. Who is reachable follows from the links
that agents tell of. Whoever was away finds others open and opens at once. No thread, clock or socket: times come in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum

import msgspec

SETTLE = 0.4
"""Seconds after all have closed until items of the new epoch begin: what was begun in the old one is known by then."""


class Phase(IntEnum):
    """How far an agent is with a configuration."""

    OLD = 0
    """It has not prepared it yet."""
    PREPARED = 1
    CLOSED = 2
    """It begins no more items of the epoch before."""
    OPEN = 3
    """Items begin in this epoch."""


class Seen(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An agent's own state; a later one has a larger stamp."""

    stamp: int
    number: int
    """The configuration it is about."""
    phase: Phase
    links: list[str]
    """The neighbours it is connected to."""
    reason: str = ""
    """Why it cannot prepare it."""
    joins: bool = False
    """Whether it has yet to be let in."""
    finished: bool = True
    """Whether it has no more items of the epoch before."""


class Change:
    """One agent's part in it.

    name, number: the agent's, and that of the configuration it has; joins: whether it has yet to be let in.
    """

    def __init__(self, name: str, number: int, joins: bool = False) -> None:
        self.name, self.number = name, number
        self.phase = Phase.PREPARED if joins else Phase.OPEN
        self.joins = joins
        self.finished = True
        """Whether this agent has no more items of the epoch before."""
        self.is_going_on = joins
        """Whether others may need it in the epoch before, or have yet to go over."""
        self.seen: dict[str, Seen] = {}
        self._links: frozenset[str] = frozenset()
        self._reason = ""
        self._closed_at: float | None = None
        self._stamp = 0

    def begin(self, number: int) -> None:
        """There is a newer configuration: it is to be prepared."""
        self.number, self.phase, self._reason, self._closed_at = number, Phase.OLD, "", None
        self.is_going_on = True

    def prepared(self) -> None:
        """It is ready to be used."""
        self.phase, self._reason = Phase.PREPARED, ""

    def cannot(self, reason: str) -> None:
        """It cannot be prepared; others wait."""
        self._reason = reason

    def tell(self, links: Collection[str], stamp: int) -> dict[str, Seen]:
        """What to send to neighbours: its own state and those it received; stamp: a clock that outlives the process."""
        self._links = frozenset(links)
        me = self.seen.get(self.name)
        new = Seen(0, self.number, self.phase, sorted(self._links), self._reason, self.joins, self.finished)
        if me is None or msgspec.structs.replace(me, stamp=0) != new:
            self._stamp = max(self._stamp + 1, stamp, 0 if me is None else me.stamp + 1)
            self.seen[self.name] = msgspec.structs.replace(new, stamp=self._stamp)
        return self.seen

    def heard(self, told: Mapping[str, Seen]) -> bool:
        """A neighbour sent this; whether there is news in it of a change that goes on."""
        new = {
            name: one
            for name, one in told.items()
            if name != self.name and (name not in self.seen or self.seen[name].stamp < one.stamp)
        }
        self.seen.update(new)
        return any(self.is_going_on or (one.number, one.phase) != (self.number, Phase.OPEN) for one in new.values())

    def advance(self, now: float) -> Phase:
        """Go on as far as what is known of the others allows."""
        others = self.reachable() - {self.name}
        if self.phase is Phase.OPEN and self.finished and self.is_going_on:
            self.is_going_on = not all(self._has_finished(name) for name in others)
        if self.phase in (Phase.OLD, Phase.OPEN):
            return self.phase
        if self.joins and all(name not in self.seen or self.seen[name].joins for name in others):
            return self.phase  # those who join do not agree on anything among themselves
        phases = {self._phase_of(name) for name in others}
        if Phase.OPEN in phases:
            self.phase = Phase.OPEN
        elif self.phase is Phase.PREPARED and (Phase.OLD not in phases or Phase.CLOSED in phases):
            self.phase = Phase.CLOSED
        elif self.phase is Phase.CLOSED:  # whoever comes only now, and has yet to prepare, will find the others open
            if Phase.PREPARED in phases:
                self._closed_at = None
            elif self._closed_at is None:
                self._closed_at = now
            elif now >= self._closed_at + SETTLE:
                self.phase = Phase.OPEN
        return self.phase

    def reachable(self) -> set[str]:
        """Everybody whom messages reach from here, itself included, as far as links are known."""
        found, ahead = {self.name}, [self.name]
        while ahead:
            name = ahead.pop()
            links = self._links if name == self.name else self.seen[name].links if name in self.seen else ()
            for other in links:
                if other not in found:
                    found.add(other)
                    ahead.append(other)
        return found

    def waits_for(self) -> dict[str, str]:
        """Whom the change waits for, and why, if known."""
        if self.phase is Phase.OPEN:
            return {}
        least = Phase.PREPARED if self.phase < Phase.CLOSED else Phase.CLOSED
        late = [name for name in sorted(self.reachable() - {self.name}) if self._phase_of(name) < least]
        if self.joins and not self._links:
            return {"its neighbours": ""}
        reasons = {name: self.seen[name].reason if name in self.seen else "" for name in late}
        return {self.name: self._reason, **reasons} if self.phase is Phase.OLD else reasons

    def _has_finished(self, name: str) -> bool:
        one = self.seen.get(name)
        return one is not None and (
            one.number > self.number or (one.number == self.number and one.phase is Phase.OPEN and one.finished)
        )

    def _phase_of(self, name: str) -> Phase:
        one = self.seen.get(name)
        if one is None or one.number < self.number:
            return Phase.OLD
        return one.phase if one.number == self.number else Phase.CLOSED  # it is beyond this one, and not waited for


def destinations(known: Sequence[Sequence[bool]], begins: int | None) -> list[int]:
    """In which epoch each item belongs: the first that knows it, else where items begin; -1 while none do.

    known: for each epoch, which of the items it knows; begins: the epoch in which items begin, by its place there.
    """
    elsewhere = -1 if begins is None else begins
    return [next((i for i, one in enumerate(item) if one), elsewhere) for item in zip(*known, strict=True)]


_coder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(dict[str, Seen])


def encode(seen: Mapping[str, Seen]) -> bytes:
    """What is sent, in bytes."""
    return _coder.encode(seen)


def decode(content: bytes) -> dict[str, Seen]:
    """What was received; msgspec.DecodeError if it is nothing of the kind."""
    return _decoder.decode(content)
