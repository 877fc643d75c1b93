"""Looking into agents, their views and their scores."""

from collegium._util.measures import mean_interval, wrong
from collegium.diagnostics.complexity import complexity
from collegium.diagnostics.correlations import mean_correlation
from collegium.diagnostics.mutual_information import conditional_mutual_information, mutual_information

__all__ = [
    "complexity",
    "conditional_mutual_information",
    "mean_correlation",
    "mean_interval",
    "mutual_information",
    "wrong",
]
