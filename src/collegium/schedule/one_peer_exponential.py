"""One peer a round, at distances 1, 2, 4, …"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from collegium._util.seat import Seat
from collegium.schedule.exact import one_peer
from collegium.topology.base import number_of_agents


@dataclass(frozen=True)
class OnePeerExponential:
    """Every agent hears one other in a round, 1, 2, 4, … places before it in turn; `schedule.one_peer_exponential`."""

    agents: int
    rule: None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "agents", number_of_agents(self.agents, "a one-peer exponential schedule"))

    @property
    def size(self) -> int:
        """K, the number of agents."""
        return self.agents

    def at(self, t: int) -> Sequence[Seat]:
        """The seats of round t."""
        turns = (self.agents - 1).bit_length()
        return one_peer(self.agents, 1 << (t - 1) % turns if turns else 0, 0.5)


def one_peer_exponential(agents: int) -> OnePeerExponential:
    """Every agent averages with one other in a round: the one 1, 2, 4, … places before it, and again from the start.

    agents: K. Any two agents must be able to reach each other. For any rule that averages.

    With K a power of two, log2 K rounds give the exact average; with another K they only come near, and `exact` does
    it in as many rounds and messages. [ying2021]

    >>> import collegium
    >>> collegium.collaborate([[0.0, 4.0, 2.0, 6.0]], one_peer_exponential(4), rounds=2).statistics[-1]
    array([[3., 3., 3., 3.]])
    """
    return OnePeerExponential(agents)
