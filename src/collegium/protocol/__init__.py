"""What agents send and what they make of it: rules for one agent, their parts, and mailboxes for what did not come."""

from collegium._util.randomness import Draws
from collegium._util.seat import Seat
from collegium.protocol import codec, combine, trigger
from collegium.protocol.averaging import Averaging
from collegium.protocol.base import LOST, OWN, RECEIVED, SILENT, Inbox, Outbox, Rule
from collegium.protocol.degroot import DeGroot
from collegium.protocol.delta_trigger import DeltaTrigger
from collegium.protocol.label_stability import LabelStability
from collegium.protocol.mailbox import HoldLast, Mailbox, Renormalise
from collegium.protocol.quantised import Quantised
from collegium.protocol.registry import register
from collegium.protocol.social_learning import SocialLearning

__all__ = [
    "LOST",
    "OWN",
    "RECEIVED",
    "SILENT",
    "Averaging",
    "DeGroot",
    "DeltaTrigger",
    "Draws",
    "HoldLast",
    "Inbox",
    "LabelStability",
    "Mailbox",
    "Outbox",
    "Quantised",
    "Renormalise",
    "Rule",
    "Seat",
    "SocialLearning",
    "codec",
    "combine",
    "register",
    "trigger",
]
