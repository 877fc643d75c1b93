"""Liars, spies and leavers: attacks, what networks bear, masks and what privacy costs.

Names are loaded when they are first used: a live agent needs the ledger, and none of the graphs.
"""

from typing import TYPE_CHECKING

from collegium._util.lazy import lazy

if TYPE_CHECKING:
    from collegium.trust import attacks, evidence, masks, placement
    from collegium.trust._robustness import Robustness, helpful_links, robustness
    from collegium.trust.ledger import BudgetExceeded, Ledger
    from collegium.trust.liars import Liars, Rogue
    from collegium.trust.masked_mean import MaskedMean
    from collegium.trust.signed_flood import SignedFlood

_HOMES = {
    "BudgetExceeded": "ledger",
    "Ledger": "ledger",
    "Liars": "liars",
    "MaskedMean": "masked_mean",
    "Robustness": "_robustness",
    "Rogue": "liars",
    "SignedFlood": "signed_flood",
    "helpful_links": "_robustness",
    "robustness": "_robustness",
}
_MODULES = ("attacks", "evidence", "masks", "placement")
__all__ = [
    "BudgetExceeded",
    "Ledger",
    "Liars",
    "MaskedMean",
    "Robustness",
    "Rogue",
    "SignedFlood",
    "attacks",
    "evidence",
    "helpful_links",
    "masks",
    "placement",
    "robustness",
]

__getattr__, __dir__ = lazy(__name__, _HOMES, _MODULES)
