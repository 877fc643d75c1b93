"""Why a submission is refused."""

from __future__ import annotations

from collegium.errors import LiveError, ScoreError


class Busy(LiveError):
    """Too many items are pending; retry after `retry_after` seconds."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"the agent has as many items pending as it can take: retry in {retry_after:.1f} s")
        self.retry_after = retry_after


class Conflict(ScoreError):
    """An item was submitted before with another score."""
