"""The planner: which network, weights, rounds, bits and stopping rule for these scores, this error or this budget."""

from collegium.planner.network_file import NetworkFile, read_network, write_network
from collegium.planner.search import Answer, Plan, plan

__all__ = ["Answer", "NetworkFile", "Plan", "plan", "read_network", "write_network"]
