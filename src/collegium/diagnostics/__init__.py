"""Looking into agents and their scores."""

from collegium.diagnostics.complexity import complexity

__all__ = ["complexity"]
