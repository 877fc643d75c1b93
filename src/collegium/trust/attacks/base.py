"""`Attack`: what a liar starts from and what it sends, round by round."""

from __future__ import annotations

from abc import ABC
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.seat import Seat
from collegium.protocol.base import Outbox

Floats = NDArray[np.float64]


class Sight(NamedTuple):
    """What a liar knows when it speaks about n items in a round."""

    seat: Seat
    """Its place: whom it hears and who hears it."""
    round: int
    message: Floats
    """What the rule would send, shape (n, w)."""
    known: Floats
    """Messages of honest agents, shape (h, n, w): in a simulation what all of them send in this very round, the most
    anybody could know; in a live agent what it heard in the round before, and nothing in round 1."""
    agents: NDArray[np.int64]
    """Who sent them, shape (h,), ascending."""
    aim: Floats
    """Where it wants to push each item, shape (n, w): away from the label if it knows it, else from its own score."""


class Attack(ABC):  # noqa: B024 — an attack changes the start, the messages or both
    """One liar's side of an attack; frozen, and the same for all liars of a group, which is how they collude."""

    def validate(self, size: int) -> None:  # noqa: B027 — most fit any network
        """Raise unless it fits a network of so many agents."""

    def start(self, scores: Floats, liars: NDArray[np.int64], seed: int) -> Floats:
        """Scores (n, K, d) with those of the liars as they pretend them to be; by default they are true."""
        return scores

    def lie(self, sight: Sight) -> Outbox:
        """What the liar sends instead of `sight.message`; by default that. Everybody must send in round 1."""
        return Outbox(sight.message)


def honest(sight: Sight) -> Floats:
    """What the liar takes for the honest messages: those it knows, or its own where it knows none."""
    return sight.known if len(sight.known) else sight.message[None]


def away_from(labels: Any, d: int) -> Floats:
    """The directions (n, d) that make labels wrong: -y of y = ±1; of several classes from the place to the next."""
    labels = np.asarray(labels)
    if d == 1:
        return np.asarray(-labels.astype(np.float64)[:, None])
    aim = np.zeros((len(labels), d))
    rows = np.arange(len(labels))
    aim[rows, labels] -= 1.0
    aim[rows, (labels + 1) % d] += 1.0
    return aim
