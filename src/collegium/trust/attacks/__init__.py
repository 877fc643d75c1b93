"""What liars send: one attack a file."""

from collegium.trust.attacks.at_start import AtStart
from collegium.trust.attacks.base import Attack, Sight
from collegium.trust.attacks.dissension import Dissension
from collegium.trust.attacks.inner_product import InnerProduct
from collegium.trust.attacks.little_is_enough import LittleIsEnough
from collegium.trust.attacks.mimic import Mimic
from collegium.trust.attacks.sign_flip import SignFlip
from collegium.trust.attacks.silence import Silence
from collegium.trust.attacks.split import Split
from collegium.trust.attacks.stubborn import Stubborn
from collegium.trust.attacks.two_faced import TwoFaced

__all__ = [
    "AtStart",
    "Attack",
    "Dissension",
    "InnerProduct",
    "LittleIsEnough",
    "Mimic",
    "Sight",
    "SignFlip",
    "Silence",
    "Split",
    "Stubborn",
    "TwoFaced",
]
