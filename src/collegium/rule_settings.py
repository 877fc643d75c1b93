"""The built-in rules as numbers, for those who run them over arrays."""

from typing import NamedTuple


class Settings(NamedTuple):
    """A built-in rule as numbers: None or 0 where it has no such part."""

    accumulate: bool = False
    threshold: float | None = None
    patience: int = 0
    confidence: float = 0.0
    levels: int = 0
    bound: float = 0.0

    @property
    def is_plain(self) -> bool:
        """Whether everybody says its statistic, as it is, in every round."""
        return self == Settings()
