"""Rogue live agents whose frames are right and differ by receiver: what `trust.Rogue` cannot send."""

import numpy as np

from collegium._util.randomness import Draws
from collegium.live.transport.memory import MemoryTransport
from collegium.live.wire import Kind, decode, encode
from collegium.trust.attacks import Sight
from collegium.trust.signed_flood import _message, _statements

PIECES = 11


def by_receiver(frame, receiver, seat, attack):
    """The frame with what the attack tells this receiver."""
    values, place = frame.values, seat.receivers.tolist().index(receiver)
    t = 1 if (frame.rounds == 1).all() else 2
    nobody = np.empty((0, *values.shape))
    lie = attack.lie(Sight(seat, t, values, nobody, np.empty(0, np.int64), np.where(values < 0, 1.0, -1.0)))
    return frame._replace(values=lie.values if lie.values.ndim == 2 else lie.values[:, place])


def two_scores(frame, receiver, rule, agent, seed):
    """The frame of an agent that signs +2 for one half of its receivers and -2 for the other, and later hands on
    statements of others alone, so that only those who compare notes can know."""
    K, size = rule.agents, frame.values.shape[1] // (2 * rule.agents)
    said, count = _statements(frame.values, (len(frame.values), K, 2, size))
    said[:, agent], count[:, agent] = 0.0, 0
    hidden = _message(said, count)
    ids, place = [], 0
    for _, items, _, is_named in frame.runs:
        ids += frame.ids[place : place + items].tolist() if is_named else [0] * items
        place += items if is_named else 0
    spoke = np.ones(len(ids), bool) if frame.spoke is None else frame.spoke
    draws = Draws(seed, np.array(ids, np.uint64)[spoke], agent, 1)
    lie = np.full((len(hidden), size - PIECES), 2.0 if receiver // 2 % 2 else -2.0)
    first = (frame.rounds == 1)[spoke]
    return frame._replace(values=np.where(first[:, None], rule.restated(agent, hidden, lie, draws), hidden))


def forged(frame, victim, agents):
    """The frame with another score in the name of an agent, and its signature as it was."""
    size = frame.values.shape[1] // (2 * agents)
    values = frame.values.copy()
    values[:, 2 * victim * size] += 1.0
    return frame._replace(values=values)


def retold(data, dialect, tell, receiver):
    """The bytes of a frame with messages as `tell(frame, receiver)` has them; others as they are."""
    frame = decode(data, dialect)
    return encode(tell(frame, receiver), dialect) if frame.kind is Kind.ROUND and len(frame.values) else data


class LyingTransport(MemoryTransport):
    """In memory; every receiver gets a frame of its own."""

    def __init__(self, place, hub, dialect, tell):
        super().__init__(place, hub)
        self._dialect, self._tell = dialect, tell

    def broadcast(self, frame):
        for number in self._audience:
            self.send(number, frame)

    def send(self, number, frame):
        super().send(number, retold(frame, self._dialect, self._tell, number))
