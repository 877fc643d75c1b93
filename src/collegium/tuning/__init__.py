"""Agents learn how much to count, by the averages the network is made for: no centre, no views or models shared."""

from collegium.tuning.conversation import Conversation
from collegium.tuning.gains import Tuning, tune
from collegium.tuning.online import Followed, Online, follow

__all__ = ["Conversation", "Followed", "Online", "Tuning", "follow", "tune"]
