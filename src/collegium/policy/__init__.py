"""How much each agent trusts whom: combination policies over a graph."""

from collegium.policy.base import Policy
from collegium.policy.fastest import fastest, fastest_matrix
from collegium.policy.hastings import hastings
from collegium.policy.laplacian import laplacian
from collegium.policy.metropolis import metropolis
from collegium.policy.uniform import uniform

__all__ = ["Policy", "fastest", "fastest_matrix", "hastings", "laplacian", "metropolis", "uniform"]
