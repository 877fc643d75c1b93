"""What an agent keeps from its neighbours: noise made of a secret of its own, and the account of what its items cost.

Two files beside the agent's own, made by the agent when it first starts: `agent-3.secret`, from which it makes its
noise, and `agent-3.ledger`, what its items have cost. An item with the same score has the same noise, whatever happens
to the agent or to the item: it is sent once, and costs once.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import U64, Draws
from collegium.errors import InputFileError, LiveError
from collegium.live.answers import Name, Privacy
from collegium.live.naming import identities
from collegium.live.table import rerun
from collegium.protocol import Averaging, Rule
from collegium.protocol.base import completed
from collegium.protocol.codec import Codec, Float64
from collegium.trust.ledger import Ledger

Doubles = NDArray[np.float64]
_BYTES = 32


def secret_of(path: Path) -> bytes:
    """The secret in a file that its owner alone can read, made if there is none."""
    try:
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(secrets.token_bytes(_BYTES))
    except FileExistsError:
        pass
    except OSError as problem:
        raise InputFileError(f"{path}: {problem.strerror or problem}") from None
    found = path.read_bytes()
    if len(found) != _BYTES:
        raise InputFileError(f"{path} is no secret of {_BYTES} bytes: remove it, and a new one is made")
    return found


def with_noise(rule: Rule, secret: bytes | None, d: int) -> tuple[Rule, Noise | None]:
    """The rule as it runs once scores are hidden at the start of their items, and what hides them."""
    if not rule.codec.adds_noise:
        return rule, None
    if not isinstance(rule, Averaging):
        raise LiveError(f"{rule} cannot hide its scores: noise at the start is for Averaging")
    return replace(rule, codec=Float64()), Noise(rule.codec, secret or secrets.token_bytes(_BYTES), rule.width(d))


class Noise:
    """What an agent's scores become before anything is made of them."""

    def __init__(self, codec: Codec, secret: bytes, width: int) -> None:
        self._codec, self._secret, self._width = codec, secret, width

    def hide(self, ids: U64, scores: Doubles) -> Doubles:
        """Scores (n, d) with noise; the same for the same item and score, also when it runs once more."""
        one = np.minimum(ids, rerun(ids)).astype("<u8")
        texts = [number.tobytes() + score.tobytes() for number, score in zip(one, scores.astype("<f8"), strict=True)]
        draws = _SecretDraws([hashlib.blake2b(text, key=self._secret).digest() for text in texts])
        return completed(self._codec.decode(self._codec.encode(scores[:, : self._width], draws)))


class _SecretDraws(Draws):
    """Random numbers that follow from secrets of items by a cryptographic hash: nobody guesses one from others."""

    __slots__ = ("_secrets",)

    def __init__(self, of_items: Sequence[bytes]) -> None:
        self._secrets, self.agent, self.round, self._count = of_items, 0, 1, 0

    def __len__(self) -> int:
        return len(self._secrets)

    def uniform(self, width: int = 1) -> Doubles:
        self._count += 1
        words = [
            hashlib.blake2b(bytes([j, self._count]), key=one, digest_size=4).digest()
            for one in self._secrets
            for j in range(width)
        ]
        return np.frombuffer(b"".join(words), "<u4").reshape(len(self), width) * 2.0**-32


class Spending:
    """What an agent's items have cost, kept in a file, and how much they may.

    epsilon: the price of an item; budget: of all together, without limit if None; path: the file, none if None.
    """

    def __init__(self, epsilon: float, budget: float | None = None, path: Path | None = None) -> None:
        most = sys.float_info.max if budget is None else budget
        self._ledger = Ledger.load(path) if path is not None and path.exists() else Ledger(most)
        self._ledger.budget = most
        self._epsilon, self._budget, self._path = epsilon, budget, path
        self._paid: set[int] = set()

    def charge(self, ids: U64) -> None:
        """Book items before anything of them is sent; beyond the budget `BudgetExceeded`, and nothing is booked."""
        new = [item for item in ids.tolist() if item not in self._paid]
        if new:
            self._ledger.charge(self._epsilon, items=len(new))
            if self._path is not None:
                self._ledger.save(self._path)
        self._paid.difference_update(ids.tolist())

    def paid_before(self, names: Sequence[Name]) -> None:
        """Items that an earlier life of the agent booked, and that are submitted again with the same noise."""
        ids = identities(names)
        self._paid.update([*ids.tolist(), *rerun(ids).tolist()])

    def shown(self) -> Privacy:
        """What is spent."""
        return Privacy(self._epsilon, self._ledger.spent.get("", 0.0), self._budget)


def spending_of(rule: Rule | None, *kept: Any) -> Spending | None:
    """The account of an agent whose rule adds noise; none for other rules, and for the engine's own (None)."""
    codec: Any = None if rule is None else rule.codec
    return Spending(codec.epsilon, *kept) if codec is not None and codec.adds_noise else None
