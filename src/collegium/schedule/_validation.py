"""A schedule of one's own, round by round: what engines rely on without looking again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from collegium._util.seat import Seat
from collegium.errors import PolicyError
from collegium.policy import Policy
from collegium.schedule.alternating import Alternating, require_connected
from collegium.schedule.base import Schedule
from collegium.schedule.eigenvalue_steps import EigenvalueSteps
from collegium.schedule.exact import Exact
from collegium.schedule.one_peer_exponential import OnePeerExponential
from collegium.schedule.pairwise import Pairwise
from collegium.topology import Graph

_MOST_ROUNDS = 10_000
_CHECKED = Policy, Alternating, Pairwise, EigenvalueSteps, Exact, OnePeerExponential


def validate(schedule: Any, rounds: int) -> None:
    """Refuse what is no schedule of `rounds` rounds. Built-in ones were checked when they were made."""
    if not isinstance(schedule, Schedule):
        missing = [name for name in ("size", "rule", "at") if not hasattr(schedule, name)]
        lacks = f", which lacks {', '.join(missing)}" if "at" not in missing else "; wrap a matrix as Policy(A)"
        raise PolicyError(f"schedule must be a Policy or another Schedule, got {type(schedule).__name__}{lacks}")
    if type(schedule) in _CHECKED:
        return
    graphs: list[Graph] = []
    known: list[Any] = []
    for t in range(1, rounds + 1):
        seats = schedule.at(t)
        if not any(seats is one for one in known):  # the same object again needs no second look
            known = [*known[-64:], seats]
            graphs.append(_validate_round(schedule, t, seats))
    if not graphs:
        return
    try:
        require_connected(graphs)
    except PolicyError:  # the network may need more rounds than these
        longer = range(rounds + 1, min(rounds + 1 + 4 * schedule.size * schedule.size.bit_length(), _MOST_ROUNDS))
        require_connected(graphs + [_validate_round(schedule, t, schedule.at(t)) for t in longer])


def _validate_round(schedule: Schedule, t: int, seats: Any) -> Graph:
    K, where = schedule.size, f"round {t} of {type(schedule).__name__}"
    if not isinstance(seats, Sequence) or len(seats) != K or not all(isinstance(seat, Seat) for seat in seats):
        raise PolicyError(f"{where} must have a seat for each of {K} agents, in order")
    heard = set()
    for k, (agent, senders, own, weights, _) in enumerate(seats):
        if agent != k:
            raise PolicyError(f"{where} must have a seat for each of {K} agents, in order; place {k} has agent {agent}")
        good = isinstance(senders, np.ndarray) and senders.dtype.kind in "iu" and senders.ndim == 1 and len(senders)
        if not good or senders.min() < 0 or senders.max() >= K or (np.diff(senders) <= 0).any():
            raise PolicyError(
                f"{where}, agent {k}: senders must be numbers 0 to {K - 1}, ascending; got {senders!r:.60}"
            )
        fits = isinstance(weights, np.ndarray) and weights.dtype == np.float64 and weights.shape == senders.shape
        if not fits or not np.isfinite(weights).all():
            raise PolicyError(f"{where}, agent {k}: weights must be one finite float64 per sender; got {weights!r:.60}")
        if schedule.rule is None and abs(weights.sum() - 1) > 1e-9:
            raise PolicyError(f"{where}, agent {k}: weights must sum to 1, not {weights.sum():.6g}")
        place = int(np.searchsorted(senders, k))
        if own != (place if place < len(senders) and senders[place] == k else None):
            raise PolicyError(f"{where}, agent {k}: own must be its place among senders {senders!r:.60}, got {own!r}")
        heard |= {(l, k) for l in senders.tolist() if l != k}
    sent = {(seat.agent, r) for seat in seats for r in np.asarray(seat.receivers).tolist()}
    if sent != heard:
        l, k = min(sent ^ heard)
        raise PolicyError(f"{where}: agents {l} and {k} do not agree whether {k} hears {l}: receivers mirror senders")
    links = np.array(sorted(heard), np.int64).reshape(-1, 2)
    return Graph.from_links(K, links[:, 0], links[:, 1])
