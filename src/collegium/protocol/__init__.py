"""What agents send and what they make of it: rules for one agent, their parts, and mailboxes for what did not come."""

from collegium._util.randomness import Draws
from collegium._util.seat import Seat
from collegium.protocol import codec, combine, trigger
from collegium.protocol.averaging import Averaging
from collegium.protocol.base import LOST, OWN, RECEIVED, SILENT, Inbox, Outbox, Rule
from collegium.protocol.ceca import Ceca
from collegium.protocol.chebyshev import Chebyshev
from collegium.protocol.degroot import DeGroot
from collegium.protocol.delta_trigger import DeltaTrigger
from collegium.protocol.flood import Flood
from collegium.protocol.label_stability import LabelStability
from collegium.protocol.mailbox import HoldLast, Mailbox, Renormalise
from collegium.protocol.polynomial import Polynomial
from collegium.protocol.push_sum import PushSum
from collegium.protocol.quantised import Quantised
from collegium.protocol.registry import register
from collegium.protocol.robust import Robust
from collegium.protocol.running_sums import RunningSums
from collegium.protocol.social_learning import SocialLearning

__all__ = [
    "LOST",
    "OWN",
    "RECEIVED",
    "SILENT",
    "Averaging",
    "Ceca",
    "Chebyshev",
    "DeGroot",
    "DeltaTrigger",
    "Draws",
    "Flood",
    "HoldLast",
    "Inbox",
    "LabelStability",
    "Mailbox",
    "Outbox",
    "Polynomial",
    "PushSum",
    "Quantised",
    "Renormalise",
    "Robust",
    "Rule",
    "RunningSums",
    "Seat",
    "SocialLearning",
    "codec",
    "combine",
    "register",
    "trigger",
]
