"""Label stability with confidence: fall silent once your label has settled and you are sure of it."""

from __future__ import annotations

from dataclasses import dataclass

from collegium.protocol.averaging import FixedParts
from collegium.protocol.trigger import LabelStable


@dataclass(frozen=True)
class LabelStability(FixedParts):
    r"""DeGroot averaging in which an agent is silent while its label is stable and its statistic large.

    Agent k stays silent in round t if, for its candidate of the round before,

    $$ s_k(t-1) \ge L \quad\text{and}\quad |x^{new}_k(t-1)| \ge \tau_{conf} $$

    where $s_k$ counts consecutive rounds in which the label, the candidate's sign, did not change (from round 0
    to round 1 is the first such transition), L is `patience` and $\tau_{conf}$ is `confidence`. In round 1 everybody
    sends; a silent agent goes on computing candidates and may send again. In the paper it beats the Δ-trigger,
    most of all with few messages. [hu2026, App. H.3]

    >>> import collegium
    >>> from collegium import policy, topology
    >>> p = policy.uniform(topology.ring(3))
    >>> rule = LabelStability(patience=2, confidence=0.5)
    >>> collegium.collaborate([[1.0, 2.0, 3.0]], p, rounds=20, rule=rule).transmissions
    array([12])
    """

    patience: int
    confidence: float

    def __post_init__(self) -> None:
        trigger = LabelStable(self.patience, self.confidence)
        object.__setattr__(self, "trigger", trigger)
        object.__setattr__(self, "patience", trigger.patience)
        object.__setattr__(self, "confidence", trigger.confidence)
