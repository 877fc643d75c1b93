"""The Δ-trigger: send only if you have moved away from what you sent last."""

from __future__ import annotations

from dataclasses import dataclass

from collegium.protocol.averaging import FixedParts
from collegium.protocol.trigger import Delta


@dataclass(frozen=True)
class DeltaTrigger(FixedParts):
    r"""DeGroot averaging in which an agent sends again only after a change larger than `threshold`.

    Agent k sends its candidate in round t if

    $$ |x^{new}_k(t-1) - x^{sent}_k| > \varepsilon_{send} $$

    and stays silent otherwise; its neighbours keep what it sent last. In round 1 everybody sends. A silent agent
    goes on computing candidates and may send again. With threshold 0 only exact repetitions are saved.
    [hu2026, App. H.3]

    >>> import collegium
    >>> from collegium import policy, topology
    >>> p = policy.uniform(topology.ring(3))
    >>> run = collegium.collaborate([[1.0, 0.9, 1.1]], p, rounds=20, rule=DeltaTrigger(0.5))
    >>> run.transmissions  # everybody was close enough after the first exchange
    array([6])
    """

    threshold: float

    def __post_init__(self) -> None:
        trigger = Delta(self.threshold)
        object.__setattr__(self, "trigger", trigger)
        object.__setattr__(self, "threshold", trigger.threshold)
