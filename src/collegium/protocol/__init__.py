"""What agents say and how they listen: rules for one agent, and mailboxes for what silence means."""

from collegium.protocol.base import Rule
from collegium.protocol.degroot import DeGroot
from collegium.protocol.delta_trigger import DeltaTrigger
from collegium.protocol.label_stability import LabelStability
from collegium.protocol.mailbox import HoldLast, Mailbox, Renormalise
from collegium.protocol.quantised import Quantised
from collegium.protocol.social_learning import SocialLearning

__all__ = [
    "DeGroot",
    "DeltaTrigger",
    "HoldLast",
    "LabelStability",
    "Mailbox",
    "Quantised",
    "Renormalise",
    "Rule",
    "SocialLearning",
]
