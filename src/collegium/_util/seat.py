"""`Seat`: what an agent knows of its place in a round."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Seat(NamedTuple):
    """One agent's place in a round: whom it hears, how much each counts, and who hears it."""

    agent: int
    senders: NDArray[np.int32]
    """Whom it hears, ascending, itself included where it counts itself; shape (m,)."""
    own: int | None
    """Its own place among `senders`; None where it does not count itself."""
    weights: NDArray[np.float64]
    """The weight a_lk it gives to each of `senders`, shape (m,)."""
    receivers: NDArray[np.int32]
    """Who hears it, itself not included."""
