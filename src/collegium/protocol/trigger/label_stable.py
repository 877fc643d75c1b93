"""Send until the label is stable and clear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import real_number, whole_number
from collegium.errors import RuleError
from collegium.protocol.base import Floats, Mask, completed
from collegium.protocol.trigger.base import Trigger


class Streak(NamedTuple):
    unchanged: NDArray[np.int64]
    """For how many rounds in a row the label has been the same."""


@dataclass(frozen=True)
class LabelStable(Trigger[Streak]):
    r"""Be silent while the label has not changed for `patience` rounds and is at least `confidence` clear.

    The label is the sign, or the largest entry for several classes. How clear it is, is $|x|$, or the lead of the
    largest entry over the second.
    """

    patience: int
    confidence: float

    def __post_init__(self) -> None:
        patience = whole_number(self.patience, "the patience of label stability", RuleError, at_least=1)
        confidence = real_number(self.confidence, "the confidence of label stability", RuleError, at_least=0)
        object.__setattr__(self, "patience", patience)
        object.__setattr__(self, "confidence", confidence)

    def start(self, x: Floats) -> Streak:
        return Streak(np.zeros(len(x), np.int64))

    def speaks(self, x: Floats, memory: Streak) -> Mask | None:
        settled = memory.unchanged >= self.patience
        return np.asarray(~(settled & (_clearness(x) >= self.confidence))) if settled.any() else None

    def update(self, memory: Streak, before: Floats, after: Floats, sent: Floats) -> Streak:
        return Streak(np.where(_label(before) == _label(after), memory.unchanged + 1, 0))


def _label(x: Floats) -> NDArray[np.float64] | NDArray[np.intp]:
    return np.sign(x[:, 0]) if x.shape[1] == 1 else completed(x).argmax(axis=1)


def _clearness(x: Floats) -> Floats:
    if x.shape[1] == 1:
        return np.abs(x[:, 0])
    ordered = np.partition(completed(x), -2, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2])
