"""Send after a change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from collegium._util.arguments import real_number
from collegium.errors import RuleError
from collegium.protocol.base import Floats, Mask, completed
from collegium.protocol.trigger.base import Trigger


class LastSent(NamedTuple):
    sent: Floats


@dataclass(frozen=True)
class Delta(Trigger[LastSent]):
    r"""Send if any entry of the statistic is farther than `threshold` from what was sent last.

    $$ \max_j |x_{k,j} - x^{sent}_{k,j}| > \varepsilon_{send} $$
    """

    threshold: float

    def __post_init__(self) -> None:
        threshold = real_number(self.threshold, "the threshold of a Δ-trigger", RuleError, at_least=0)
        object.__setattr__(self, "threshold", threshold)

    def start(self, x: Floats) -> LastSent:
        return LastSent(np.full_like(x, np.inf))  # farther than any threshold

    def speaks(self, x: Floats, memory: LastSent) -> Mask | None:
        change = x - memory.sent
        if x.shape[1] == 1:
            return np.asarray(np.abs(change[:, 0]) > self.threshold)
        fresh = np.isinf(memory.sent[:, 0])
        change = completed(np.where(fresh[:, None], 0.0, change))
        return np.asarray(fresh | (np.abs(change).max(axis=1) > self.threshold))

    def update(self, memory: LastSent, before: Floats, after: Floats, sent: Floats) -> LastSent:
        return LastSent(sent)
