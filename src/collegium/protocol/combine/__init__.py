"""How an agent makes one value of its neighbours' values."""

from collegium.protocol.combine.base import Combine
from collegium.protocol.combine.clipped import Clipped
from collegium.protocol.combine.mean_subsequence import MeanSubsequence
from collegium.protocol.combine.median import Median
from collegium.protocol.combine.nearest_neighbours import NearestNeighbours
from collegium.protocol.combine.outlier_scissor import OutlierScissor
from collegium.protocol.combine.self_centred import SelfCentred
from collegium.protocol.combine.trimmed_mean import TrimmedMean
from collegium.protocol.combine.weighted_mean import WeightedMean

__all__ = [
    "Clipped",
    "Combine",
    "MeanSubsequence",
    "Median",
    "NearestNeighbours",
    "OutlierScissor",
    "SelfCentred",
    "TrimmedMean",
    "WeightedMean",
]
