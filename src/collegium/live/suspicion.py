"""Evidence against neighbours: how often a neighbour's message lay far from the rest. It is shown, never acted on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collegium.protocol.averaging import Averaging
from collegium.protocol.base import RECEIVED, Inbox, Rule
from collegium.protocol.combine._robust import RobustCombine, lengths

_FAR = 6.0
"""Median distances from the median beyond which a message is far: for normal values about one in 20 000."""
_CLOSE = 1e-6
"""Where all agree to this, nobody is far who is not farther than that."""
_LEAST = 4
"""Messages of which one can be far: of three, two may lie."""


class Suspicion:
    """Counts, by the sender's number, of messages received with a robust rule; others are not looked at."""

    def __init__(self, rule: Rule, agents: int) -> None:
        rule = getattr(rule, "rule", rule)  # what is quantised
        self.is_kept = isinstance(rule, Averaging) and isinstance(rule.combine, RobustCombine)
        self.compared: NDArray[np.int64] = np.zeros(agents, np.int64)
        """Messages that were compared with the others of their round and item."""
        self.far: NDArray[np.int64] = np.zeros(agents, np.int64)
        """Those of them that lay far from the rest."""

    def look(self, inbox: Inbox, senders: NDArray[np.int32]) -> None:
        """Count the messages of a round."""
        there = inbox.weights > 0
        enough = there.sum(axis=0) >= _LEAST
        if not enough.any():
            return
        values = np.where(there[:, :, None], inbox.values, np.nan)[:, enough]
        away = lengths(values - np.nanmedian(values, axis=0))
        spread = np.maximum(np.nanmedian(away, axis=0), _CLOSE)
        fresh = (inbox.status == RECEIVED)[:, enough] & there[:, enough]
        self.compared[senders] += fresh.sum(axis=1)
        self.far[senders] += (fresh & (away > _FAR * spread)).sum(axis=1)


def evidence(far: int, compared: int) -> str:
    """A sentence on the evidence, where it is worth a look: most messages of many."""
    if compared < 50 or 2 * far <= compared:
        return ""
    return f"{100 * far // compared} % of its {compared} messages lie far from the rest"
