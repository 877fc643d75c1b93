"""Who hears whom in round t: networks that change. A `Policy` is the schedule that never does."""

from collegium.schedule.alternating import Alternating, alternating
from collegium.schedule.base import Schedule, own_rounds, own_rule, union
from collegium.schedule.eigenvalue_steps import EigenvalueSteps, eigenvalue_steps
from collegium.schedule.exact import Exact, exact
from collegium.schedule.one_peer_exponential import OnePeerExponential, one_peer_exponential
from collegium.schedule.pairwise import Pairwise, pairwise
from collegium.schedule.weights import Weights

__all__ = [
    "Alternating",
    "EigenvalueSteps",
    "Exact",
    "OnePeerExponential",
    "Pairwise",
    "Schedule",
    "Weights",
    "alternating",
    "eigenvalue_steps",
    "exact",
    "one_peer_exponential",
    "own_rounds",
    "own_rule",
    "pairwise",
    "union",
]
