"""The exact average in as few rounds as there can be, where any two agents may be linked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from collegium._util.seat import Seat
from collegium.protocol.ceca import Ceca
from collegium.topology.base import number_of_agents

_KEPT = 4096  # agents up to which seats are kept for the next time they are asked for


@dataclass(frozen=True)
class Exact:
    """The exact average of K agents in ceil(log2 K) rounds; made by `schedule.exact`."""

    agents: int
    rule: Ceca = field(default=Ceca(), init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "agents", number_of_agents(self.agents, "an exact schedule"))

    @property
    def size(self) -> int:
        """K, the number of agents."""
        return self.agents

    @property
    def rounds(self) -> int:
        """ceil(log2 K), after which the average is exact and nothing is sent any more."""
        return (self.agents - 1).bit_length()

    def step(self, t: int) -> tuple[int, int]:
        """Round t: how many others an agent knows before it, m, and the next binary digit of K - 1, which says what is
        sent: 1 the average with itself, to m + 1 places further; 0 that of the m others, to m places further."""
        left = self.rounds - t
        return (self.agents - 1) >> (left + 1), (self.agents - 1) >> left & 1

    def at(self, t: int) -> Sequence[Seat]:
        """The seats of round t: every agent hears one other until the average is complete, then nobody."""
        if t > self.rounds:
            return one_peer(self.agents, 0, 1.0)
        m, digit = self.step(t)
        return one_peer(self.agents, m + digit, 0.5 if digit else (m + 1) / (2 * m + 1))


def exact(agents: int) -> Exact:
    r"""The exact average of any number of agents in $\lceil \log_2 K \rceil$ rounds, one message per agent and round.

    agents: K. In every round an agent sends to one other and hears one other, each time another: any two agents must be
        able to reach each other. It brings its own rule, `protocol.Ceca`.

    No method with one message per agent and round needs fewer rounds. K = 12 takes 4 rounds and 48 transmissions.
    Rounded, `Quantised(schedule.exact(12).rule, bits, bound)`, statistics are right on average and off by at most one
    step a round. A lost message is not repaired: see `protocol.Ceca`. [ding2023, CECA-2P]

    >>> import collegium
    >>> run = collegium.collaborate([[float(k) for k in range(12)]], exact(12))
    >>> run.statistics[-1].round(12).tolist() == [[5.5] * 12], run.rounds, int(run.transmissions[0])
    (True, 4, 48)
    """
    return Exact(agents)


def one_peer(K: int, distance: int, own: float) -> Sequence[Seat]:
    """A round in which every agent hears itself, with weight `own`, and the agent so many places before it.

    With distance 0 it hears nobody else.
    """
    return (_one_peer if K <= _KEPT else _one_peer.__wrapped__)(K, distance, own)


@lru_cache(256)
def _one_peer(K: int, distance: int, own: float) -> tuple[Seat, ...]:
    agents, nobody = np.arange(K, dtype=np.int32), np.empty(0, np.int32)
    if not distance:
        return tuple(Seat(k, agents[k : k + 1], 0, np.ones(1), nobody) for k in range(K))
    others, receivers = (agents - distance) % K, (agents + distance) % K
    senders = np.sort(np.stack([agents, others], axis=1), axis=1)
    weights = np.array([own, 1 - own]), np.array([1 - own, own])
    places = (others < agents).astype(int).tolist()
    return tuple(Seat(k, senders[k], i, weights[i], receivers[k : k + 1]) for k, i in enumerate(places))
