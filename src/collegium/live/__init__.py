"""Real agents, real processes, real network: the same rules, run by one process per agent.

Names are loaded when they are first used, so that a client needs neither Zenoh nor a model.
"""

from typing import TYPE_CHECKING

from collegium._util.lazy import lazy

if TYPE_CHECKING:
    from collegium.live.agent import Agent
    from collegium.live.answers import Busy, Conflict, Evidence, ItemResult, RecentItem, Status
    from collegium.live.client import Client
    from collegium.live.engine import Limits
    from collegium.live.folder import NetworkSettings, create
    from collegium.live.launcher import Member, down, members, statuses, up
    from collegium.live.peers import Deadlines
    from collegium.live.tune_network import tune_network

_HOMES = {
    "Agent": "agent",
    "Busy": "answers",
    "Client": "client",
    "Conflict": "answers",
    "Deadlines": "peers",
    "Evidence": "answers",
    "ItemResult": "answers",
    "Limits": "engine",
    "Member": "launcher",
    "NetworkSettings": "folder",
    "RecentItem": "answers",
    "Status": "answers",
    "create": "folder",
    "down": "launcher",
    "members": "launcher",
    "statuses": "launcher",
    "tune_network": "tune_network",
    "up": "launcher",
}
__all__ = [
    "Agent",
    "Busy",
    "Client",
    "Conflict",
    "Deadlines",
    "Evidence",
    "ItemResult",
    "Limits",
    "Member",
    "NetworkSettings",
    "RecentItem",
    "Status",
    "create",
    "down",
    "members",
    "statuses",
    "tune_network",
    "up",
]

__getattr__, __dir__ = lazy(__name__, _HOMES)
