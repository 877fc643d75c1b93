"""Averaging that liars cannot move as far as they like."""

from __future__ import annotations

from dataclasses import dataclass

from collegium.errors import RuleError
from collegium.protocol.averaging import FixedParts
from collegium.protocol.combine import Combine, Median

_MANY = 1001
"""Values of a neighbourhood in which every robust combine bears at least one liar, but for absurd settings."""


@dataclass(frozen=True)
class Robust(FixedParts):
    """Repeated averaging with a robust combine, see `collegium.protocol.combine`; every message at full precision.

    `Averaging(combine=…, trigger=…, codec=…)` is the same with other parts. Networks where some agent hears too few
    others for the combine's promise are refused before the first round.

    >>> import collegium
    >>> from collegium import policy, protocol, topology
    >>> rule = Robust(protocol.combine.TrimmedMean(f=1))
    >>> complete = policy.uniform(topology.complete(4))
    >>> collegium.collaborate([[1.0, 1.2, 0.9, -50.0]], complete, rounds=1, rule=rule).decisions()
    array([[1, 1, 1, 1]], dtype=int8)
    """

    combine: Combine = Median()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.combine.bears(_MANY):
            raise RuleError(f"{self.combine} bears no liar: take a robust combine such as TrimmedMean(f=1)")
