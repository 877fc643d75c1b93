"""How an agent makes one value of its neighbours' values."""

from collegium.protocol.combine.base import Combine
from collegium.protocol.combine.weighted_mean import WeightedMean

__all__ = ["Combine", "WeightedMean"]
