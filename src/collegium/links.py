"""What gets through: links that are perfect, lossy, late, or cut for some rounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import real_number, whole_number
from collegium._util.randomness import U32, U64, item_keys, mix64, mix64_array, uniform_words
from collegium.errors import RuleError

Mask = NDArray[np.bool_]


class Links(ABC):
    """Says of every message about n items whether it gets through, and how late.

    A message that does not is *lost* to its receiver, whatever the sender's rule meant by it; a sender that is silent
    sends nothing that could cost, but the news of its silence is lost like any other message.
    """

    @abstractmethod
    def delivered(self, sender: int, receiver: int, t: int, ids: U64) -> Mask | None:
        """Which of the messages sent in round t get through, shape (n,); None: all."""

    def lateness(self, sender: int, receiver: int, t: int, ids: U64) -> NDArray[np.int64] | None:
        """How many rounds late each arrives, shape (n,), 0 or more; None: none is late."""
        return None

    def validate(self, size: int) -> None:
        """Refuse a network of that many agents, if there is a reason to."""
        return


@dataclass(frozen=True)
class Perfect(Links):
    """Everything gets through, at once."""

    def delivered(self, sender: int, receiver: int, t: int, ids: U64) -> Mask | None:
        return None


@dataclass(frozen=True)
class Lossy(Links):
    """Every message is lost with probability `loss`, independently by link, round and item.

    >>> import collegium
    >>> from collegium import policy, topology
    >>> ring = policy.uniform(topology.ring(5))
    >>> collegium.collaborate([[1.0, 2.0, 3.0, 4.0, 5.0]], ring, rounds=50, links=Lossy(0.3, seed=1)).statistics.shape
    (51, 1, 5)
    """

    loss: float
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", real_number(self.loss, "the loss of a link", RuleError, at_least=0, at_most=1))
        object.__setattr__(self, "seed", whole_number(self.seed, "seed", RuleError, at_most=2**64 - 1))

    def delivered(self, sender: int, receiver: int, t: int, ids: U64) -> Mask | None:
        return np.asarray(_words(self.seed, sender, receiver, t, ids) >= self.loss * 2.0**32)


@dataclass(frozen=True)
class Delayed(Links):
    """Every message comes `least` to `most` whole rounds late, drawn by link, round and item.

    Of messages that arrive in the same round, and of those that were overtaken, only the newest counts.
    """

    least: int
    most: int | None = None
    """As `least`, if None."""
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "least", whole_number(self.least, "the least delay", RuleError))
        most = self.least if self.most is None else self.most
        object.__setattr__(self, "most", whole_number(most, "the largest delay", RuleError, at_least=self.least))
        object.__setattr__(self, "seed", whole_number(self.seed, "seed", RuleError, at_most=2**64 - 1))

    def delivered(self, sender: int, receiver: int, t: int, ids: U64) -> Mask | None:
        return None

    def lateness(self, sender: int, receiver: int, t: int, ids: U64) -> NDArray[np.int64] | None:
        assert self.most is not None
        span = self.most - self.least + 1
        if span == 1:
            return np.full(len(ids), self.least)
        drawn = _words(self.seed, sender, receiver, t, ids) * 2.0**-32
        return np.asarray(self.least + np.floor(span * drawn), np.int64)


@dataclass(frozen=True)
class Cut(Links):
    """Nothing gets through between `group` and everybody else in rounds `first` to `last`, both included."""

    group: Collection[int]
    first: int = 1
    last: int = 2**31
    _members: frozenset[int] = field(init=False, repr=False, compare=False, default=frozenset())

    def __post_init__(self) -> None:
        if isinstance(self.group, str) or not isinstance(self.group, Collection):
            raise RuleError(f"group must be a list of agents' numbers, got {self.group!r}")
        members = tuple(sorted({whole_number(k, "an agent of group", RuleError) for k in self.group}))
        object.__setattr__(self, "group", members)
        object.__setattr__(self, "_members", frozenset(members))
        object.__setattr__(self, "first", whole_number(self.first, "the first round of a cut", RuleError, at_least=1))
        object.__setattr__(
            self, "last", whole_number(self.last, "the last round of a cut", RuleError, at_least=self.first)
        )

    def validate(self, size: int) -> None:
        if not self._members or max(self._members) >= size or len(self._members) == size:
            raise RuleError(f"a cut parts some of agents 0 to {size - 1} from the others; got the group {self.group}")

    def delivered(self, sender: int, receiver: int, t: int, ids: U64) -> Mask | None:
        crosses = (sender in self._members) != (receiver in self._members)
        return np.zeros(len(ids), np.bool_) if crosses and self.first <= t <= self.last else None


class _Keys:
    """The hash words of the last items asked for: a run asks for the same ones for every link and round."""

    def __init__(self) -> None:
        self._last: tuple[U64 | None, int, Any] = (None, 0, None)

    def of(self, seed: int, ids: U64) -> tuple[U32, U32]:
        last_ids, last_seed, keys = self._last
        if last_ids is not ids or last_seed != seed:
            keys = keys_of(seed, ids)
            if not ids.flags.writeable:
                self._last = ids, seed, keys
        found: tuple[U32, U32] = keys
        return found


_STREAM = 0x4C494E4B53  # apart from the draws of rules with the same seed
_KEYS = _Keys()


def keys_of(seed: int, ids: U64) -> tuple[U32, U32]:
    """Two hash words per item."""
    return item_keys(np.array([mix64(seed ^ _STREAM)], np.uint64), ids)


def salts_of(senders: NDArray[np.int64], receivers: NDArray[np.int64], t: NDArray[np.int64]) -> tuple[U32, U32]:
    """Two hash words per link and round; arrays broadcast."""
    of_senders = mix64_array(mix64_array(t.astype(np.uint64)) ^ mix64_array(senders.astype(np.uint64)))
    salts = mix64_array(of_senders ^ mix64_array(receivers.astype(np.uint64)))
    return (salts >> np.uint64(32)).astype(np.uint32), salts.astype(np.uint32)


def _words(seed: int, sender: int, receiver: int, t: int, ids: U64) -> U32:
    """32 random bits for every item's message over a link in a round."""
    return uniform_words(_KEYS.of(seed, ids), _salts(sender, receiver, t))


@lru_cache(1 << 16)
def _salts(sender: int, receiver: int, t: int) -> tuple[U32, U32]:
    return salts_of(np.array([sender]), np.array([receiver]), np.array([t]))
