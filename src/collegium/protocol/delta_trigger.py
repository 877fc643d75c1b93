"""The Δ-trigger: speak only if you have moved away from what you said last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from collegium._util.arguments import real_number
from collegium._util.randomness import Draws
from collegium.errors import RuleError
from collegium.protocol.base import Rule, weighted_sum
from collegium.rule_settings import Settings


class Spoken(NamedTuple):
    candidate: float
    sent: float | None


@dataclass(frozen=True)
class DeltaTrigger(Rule):
    r"""DeGroot averaging in which an agent repeats itself only after a change larger than `threshold`.

    Agent k sends its candidate in round t if

    $$ |x^{new}_k(t-1) - x^{sent}_k| > \varepsilon_{send} $$

    and stays silent otherwise; its neighbours keep its last word. In round 1 everybody speaks. A silent agent
    goes on computing candidates and may speak again. With threshold 0 only exact repetitions are saved.
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
        threshold = real_number(self.threshold, "the threshold of DeltaTrigger", RuleError, at_least=0)
        object.__setattr__(self, "threshold", threshold)

    def init(self, score: float) -> Spoken:
        return Spoken(score, None)

    def emit(self, state: Spoken, rng: Draws) -> tuple[float | None, Spoken]:
        if state.sent is None or abs(state.candidate - state.sent) > self.threshold:
            return state.candidate, self.sent(state, state.candidate)
        return None, state

    def absorb(self, state: Spoken, inbox: Sequence[float], weights: Sequence[float]) -> Spoken:
        return state._replace(candidate=weighted_sum(inbox, weights))

    def statistic(self, state: Spoken) -> float:
        return state.candidate

    def sent(self, state: Spoken, value: float) -> Spoken:
        return state._replace(sent=value)

    @property
    def settings(self) -> Settings:
        return Settings(threshold=self.threshold)
