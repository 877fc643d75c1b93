"""Push-sum with totals instead of messages: exact although messages are lost, late, doubled or out of order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import Draws
from collegium._util.seat import Seat
from collegium.errors import RuleError
from collegium.protocol.base import RECEIVED, Floats, Inbox, Outbox, Rule
from collegium.protocol.push_sum import MOST_AGENTS, ratio, shared, with_count


class Totals(NamedTuple):
    z: Floats
    """The agent's part of the sum of all scores and, last, of the number of agents, shape (n, w + 1)."""
    given: Floats
    """All that it ever gave to each of its receivers, shape (n, w + 1)."""
    taken: Floats
    """All that it ever took from each of its senders, shape (n, m, w + 1)."""
    senders: NDArray[np.int32]
    """Who they are, shape (n, m)."""


@dataclass(frozen=True)
class RunningSums(Rule[Totals]):
    r"""Push-sum where everybody sends the total of all it has ever given away.

    A receiver takes the difference to what it took before. A lost message is made up for by the next one that arrives;
    one that comes twice, or late, adds nothing. What has been given and not yet taken waits on the link:

    $$ \sum_k z_{k,t} + \sum_{\ell \to k} (\text{given}_\ell - \text{taken}_{\ell k}) = \sum_k (c_k, 1)
       \quad\text{in every round} $$

    So the ratio of the two sums tends to the plain average of the scores on every strongly connected network, directed
    or not, whatever part of the messages is lost, as long as every link delivers now and then; each agent may send at
    its own pace. Without loss it is push-sum.

    A message has one number more than a score. The network's weights play no part. Totals grow for ever, so they cannot
    be quantised; agents must hear the same senders in every round. [vaidya2011, hadjicostis2016]

    >>> import collegium
    >>> from collegium import links, policy, topology
    >>> directed, x = policy.uniform(topology.erdos_renyi(5, links=9, seed=1)), [[1.0, 2.0, 3.0, 4.0, 5.0]]
    >>> lossy = links.Lossy(0.5, seed=1)
    >>> collegium.collaborate(x, directed, rounds=200, rule=RunningSums(), links=lossy).statistics[-1].round(6)
    array([[3., 3., 3., 3., 3.]])
    """

    def width(self, d: int) -> int:
        return d + 1 if d == 1 else d

    def init(self, seat: Seat, scores: Floats) -> Totals:
        z = with_count(scores)
        taken = np.zeros((len(z), len(seat.senders), z.shape[1]))
        return Totals(z, np.zeros_like(z), taken, np.tile(seat.senders, (len(z), 1)))

    def emit(self, seat: Seat, state: Totals, draws: Draws) -> tuple[Outbox, Totals]:
        share, kept = shared(state.z, len(seat.receivers))
        given = state.given + share
        return Outbox(given), state._replace(z=kept, given=given)

    def absorb(self, seat: Seat, state: Totals, inbox: Inbox) -> Totals:
        if len(state.senders) and not np.array_equal(state.senders[0], seat.senders):
            raise RuleError(
                f"RunningSums needs the same senders in every round, but agent {seat.agent} hears others than before: "
                "use PushSum() on networks that change"
            )
        z, taken = state.z, state.taken.copy()
        for place, (value, status) in enumerate(zip(inbox.values, inbox.status, strict=True)):
            came = (status == RECEIVED)[:, None]
            z = z + np.where(came, value - taken[:, place], 0.0)
            taken[:, place] = np.where(came, value, taken[:, place])
        return state._replace(z=z, taken=taken)

    def statistic(self, state: Totals) -> Floats:
        return ratio(state.z)

    def message_growth(self, rounds: int) -> float:
        return MOST_AGENTS * max(rounds, 1)
