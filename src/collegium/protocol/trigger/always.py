"""Send in every round."""

from __future__ import annotations

from dataclasses import dataclass

from collegium.protocol.base import Floats, Mask
from collegium.protocol.trigger.base import Trigger


@dataclass(frozen=True)
class Always(Trigger[tuple[()]]):
    """Everybody sends in every round."""

    def start(self, x: Floats) -> tuple[()]:
        return ()

    def speaks(self, x: Floats, memory: tuple[()]) -> Mask | None:
        return None

    def update(self, memory: tuple[()], before: Floats, after: Floats, sent: Floats) -> tuple[()]:
        return ()
