"""`Ledger`: what an agent's items have cost it in privacy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from collegium._util.arguments import real_number, whole_number
from collegium._util.files import atomic_write
from collegium.errors import CollegiumError, InputFileError, RuleError


class BudgetExceeded(CollegiumError, RuntimeError):
    """An agent was asked for more than it may tell."""


class Ledger:
    """Adds up what was told about each subject, by basic composition: ε of everything sent adds up, whatever was sent.

    A subject is whom the items are about, one for all by default: what two items tell of the same person adds up. An
    item that is sent again, with new noise, costs again.

    >>> ledger = Ledger(budget=1.0)
    >>> ledger.charge(0.4), ledger.charge(0.4)
    (0.4, 0.8)
    >>> ledger
    Ledger(budget=1, 0.8 spent)
    >>> ledger.charge(0.4)
    Traceback (most recent call last):
    collegium.trust.ledger.BudgetExceeded: an item of ε = 0.4 would bring it to 1.2, beyond the budget of 1: refused
    """

    def __init__(self, budget: float) -> None:
        self.budget = real_number(budget, "the budget", RuleError, at_least=0)
        self.spent: dict[str, float] = {}

    def charge(self, epsilon: float, subject: str = "", items: int = 1) -> float:
        """Book items before they are sent; what is spent of this subject now. Beyond the budget nothing is booked."""
        epsilon = real_number(epsilon, "epsilon", RuleError, above=0)
        items = whole_number(items, "how many items are booked", RuleError)
        if not isinstance(subject, str):  # a file keeps names as text, and another name has another account
            raise RuleError(f"a subject is a text, got {subject!r:.60}")
        after = self.spent.get(subject, 0.0) + items * epsilon
        if after > self.budget * (1 + 1e-12):
            raise BudgetExceeded(
                f"{'an item' if items == 1 else f'{items} items'} of ε = {epsilon:g} would bring "
                f"{repr(subject) if subject else 'it'} to {after:.4g}, beyond the budget of "
                f"{self.budget:g}: refused"
            )
        self.spent[subject] = after
        return after

    def __repr__(self) -> str:
        spent = f"{max(self.spent.values(), default=0.0):g} spent"
        subjects = f" of one of {len(self.spent)} subjects" if len(self.spent) > 1 else ""
        return f"Ledger(budget={self.budget:g}, {spent}{subjects})"

    def left(self, subject: str = "") -> float:
        """How much may still be told of a subject."""
        return self.budget - self.spent.get(subject, 0.0)

    def save(self, path: str | Path) -> None:
        """Write it, whole or not at all."""
        with atomic_write(path, sync=True) as file:
            file.write(json.dumps({"budget": self.budget, "spent": self.spent}).encode())

    @classmethod
    def load(cls, path: str | Path) -> Ledger:
        """What `save` wrote; a damaged file is an error, never an empty ledger."""
        try:
            data: Any = json.loads(Path(path).read_bytes())
            ledger = cls(data["budget"])
            ledger.spent = {
                str(key): real_number(one, "spent", RuleError, at_least=0) for key, one in data["spent"].items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
            raise InputFileError(f"{path} is no ledger: {problem}") from problem
        return ledger
