"""The mean of all scores, none of which anybody sees: zero-sum masks as a rule, in the simulator and in live agents."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from collegium._util.arguments import whole_number
from collegium._util.randomness import Draws
from collegium._util.seat import Seat
from collegium.errors import RuleError
from collegium.protocol.base import Floats, Inbox, Mask, Outbox, Rule, completed, message_width
from collegium.protocol.flood import Flood, Known
from collegium.trust.masks import LARGEST, average, masked, pair_secrets

Secrets = Mapping[int, bytes]


@cache
def simulated_secrets(agents: int) -> list[dict[int, bytes]]:
    """What pairs of agents share in a simulation, where nobody has a secret, by agent."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    seeds = [hashlib.blake2b(f"simulated agent {k}".encode(), digest_size=32).digest() for k in range(agents)]
    private = [X25519PrivateKey.from_private_bytes(seed) for seed in seeds]
    public = {k: key.public_key() for k, key in enumerate(private)}
    return [pair_secrets(k, key, public) for k, key in enumerate(private)]


class Hidden(NamedTuple):
    """What an agent knows of n items."""

    own: Floats
    """Its own scores, shape (n, w): they leave it under masks only."""
    seen: Mask
    """Whether it has any, shape (n,)."""
    others: Known
    """What all agents sent, as far as it came: whole numbers, as good as random."""


@dataclass(frozen=True)
class MaskedMean(Rule[Hidden]):
    """Everybody sends its score under masks that sum to zero over all agents, and all masked scores are handed on.

    Whoever has them all has the exact mean (to 6e-11), and no score: not even K - 2 agents together know more of two
    others than their sum. Where one is missing, because its agent has no view or has left, the mean is refused: an
    agent then has its own score alone to decide by, and a live one says that its answer is not settled.

    agents: K, three or more; that of the network it runs on, if left out. Scores must stay below 8192 / K.

    It takes as many rounds as the network is wide. **A liar may say any number unseen**: no robust combine can be used
    with it. An item's name serves once: two scores under the same masks show their difference. [bonawitz2017]
    """

    agents: int | None = None
    secrets: Secrets | None = field(default=None, init=False, repr=False, compare=False)
    """What a live agent shares with each other one; None: those of a simulation."""
    hands_on = True

    def __post_init__(self) -> None:
        if self.agents is not None:
            number = whole_number(self.agents, "the agents of MaskedMean", RuleError, at_least=1)
            object.__setattr__(self, "agents", number)

    def with_keys(self, secrets: Secrets) -> MaskedMean:
        """The rule as an agent with secrets of its own runs it."""
        keyed = copy.copy(self)
        object.__setattr__(keyed, "secrets", secrets)
        return keyed

    def prepared(self, schedule: Any, rounds: int, rounded: bool = False) -> MaskedMean:
        if rounded:
            raise RuleError("masked scores cannot be rounded: use MaskedMean at full precision")
        if self.agents not in (None, schedule.size):
            raise RuleError(f"MaskedMean is for {self.agents} agents, the network has {schedule.size}")
        return replace(self, agents=schedule.size)

    def check_seats(self, seats: Sequence[Seat]) -> None:
        if len(seats) < 3:
            raise RuleError(f"the mean of {len(seats)} scores gives each agent the other's: masks need 3 agents")

    def _flood(self) -> Flood:
        if self.agents is None:
            raise RuleError("MaskedMean must know the number of agents: write MaskedMean(12)")
        return Flood(self.agents)

    def width(self, d: int) -> int:
        return self._flood().width(d)

    def message_growth(self, rounds: int) -> float:
        return 2.0**100  # masked scores are whole numbers up to 2^48, however small scores are

    def max_score(self, rounds: int) -> float:
        return LARGEST / (self.agents or 1) * (1 - 1e-9)

    def init(self, seat: Seat, scores: Floats) -> Hidden:
        seen, w = np.isfinite(scores[:, 0]), message_width(scores.shape[1])
        nothing = self._flood().init(seat, np.full_like(scores, np.nan))
        return Hidden(np.where(seen[:, None], scores[:, :w], 0.0), seen, nothing)

    def emit(self, seat: Seat, state: Hidden, draws: Draws) -> tuple[Outbox, Hidden]:
        flood, others, me = self._flood(), state.others, seat.agent
        rows = np.flatnonzero(state.seen & ~others.known[:, me])
        if len(rows):
            secrets = simulated_secrets(flood.agents or 0)[me] if self.secrets is None else self.secrets
            values, known = others.values.copy(), others.known.copy()
            values[rows, me] = masked(me, state.own[rows], secrets, draws.items[rows].tolist())
            known[rows, me] = True
            others = others._replace(values=values, known=known)
        outbox, others = flood.emit(seat, others, draws)
        return outbox, state._replace(others=others)

    def absorb(self, seat: Seat, state: Hidden, inbox: Inbox) -> Hidden:
        return state._replace(others=self._flood().absorb(seat, state.others, inbox))

    def statistic(self, state: Hidden) -> Floats:
        found, complete = state.own.copy(), state.others.known.all(axis=1)
        if complete.any():
            sent = np.clip(state.others.values[complete], 0, 2.0**48 - 1)  # what a liar sends may be anything
            found[complete] = average({k: sent[:, k] for k in range(sent.shape[1])}, sent.shape[1], least=1)
        return completed(found)
