"""Label stability with confidence: fall silent once your label has settled and you are sure of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from collegium._util.arguments import real_number, whole_number
from collegium._util.randomness import Draws
from collegium.errors import RuleError
from collegium.protocol.base import Rule, sign, weighted_sum
from collegium.rule_settings import Settings


class Settling(NamedTuple):
    candidate: float
    streak: int
    spoken: bool


@dataclass(frozen=True)
class LabelStability(Rule):
    r"""DeGroot averaging in which an agent is silent while its label is stable and its statistic large.

    Agent k stays silent in round t if, for its candidate of the round before,

    $$ s_k(t-1) \ge L \quad\text{and}\quad |x^{new}_k(t-1)| \ge \tau_{conf} $$

    where $s_k$ counts consecutive rounds in which the label, the candidate's sign, did not change (from round 0
    to round 1 is the first such transition), L is `patience` and $\tau_{conf}$ is `confidence`. In round 1 everybody
    speaks; a silent agent goes on computing candidates and may speak again. In the paper it beats the Δ-trigger,
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
        patience = whole_number(self.patience, "the patience of LabelStability", RuleError, at_least=1)
        confidence = real_number(self.confidence, "the confidence of LabelStability", RuleError, at_least=0)
        object.__setattr__(self, "patience", patience)
        object.__setattr__(self, "confidence", confidence)

    def init(self, score: float) -> Settling:
        return Settling(score, 0, False)

    def emit(self, state: Settling, rng: Draws) -> tuple[float | None, Settling]:
        settled = state.streak >= self.patience and abs(state.candidate) >= self.confidence
        if state.spoken and settled:
            return None, state
        return state.candidate, state._replace(spoken=True)

    def absorb(self, state: Settling, inbox: Sequence[float], weights: Sequence[float]) -> Settling:
        candidate = weighted_sum(inbox, weights)
        unchanged = sign(candidate) == sign(state.candidate)
        return state._replace(candidate=candidate, streak=state.streak + 1 if unchanged else 0)

    def statistic(self, state: Settling) -> float:
        return state.candidate

    @property
    def settings(self) -> Settings:
        return Settings(patience=self.patience, confidence=self.confidence)
