"""How much each agent trusts whom: combination policies over a graph."""

from collegium.policy.base import Policy
from collegium.policy.hastings import hastings
from collegium.policy.laplacian import laplacian
from collegium.policy.metropolis import metropolis
from collegium.policy.uniform import uniform

__all__ = ["Policy", "hastings", "laplacian", "metropolis", "uniform"]
