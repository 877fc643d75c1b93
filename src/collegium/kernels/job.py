"""A run as every engine takes it and what it gives back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import U64
from collegium.links import Links
from collegium.protocol.mailbox import Mailbox
from collegium.schedule.base import Schedule
from collegium.trust.liars import Liars

Floats = NDArray[np.float64]


class Job(NamedTuple):
    """Validated arguments of a run: nothing is left to check or to guess."""

    scores: Floats  # (n, K, d)
    schedule: Schedule
    rounds: int
    seed: int
    ids: U64  # (n,)
    links: Links
    mailbox: Mailbox
    final: bool  # keep only the last statistics, and not who spoke
    liars: Liars | None = None  # who lies, and how


class Recorded(NamedTuple):
    """What a run gives."""

    statistics: Floats  # (rounds + 1, n, K, d), or (1, n, K, d)
    costs: NDArray[np.int64]  # (rounds, n) transmissions of each round
    spoke: NDArray[np.bool_] | None  # (rounds, n, K); None: everybody in every round, or not kept
