"""Counter-based random numbers: every draw is a hash of who draws it, never of when.

A draw inside a protocol is a function of (seed, item, agent, round), so a simulator, a batch of any shape and
a live network agree bit for bit whatever the order, and array code draws for many items at once. The hash
does not depend on a library's version, so a seed means the same numbers everywhere.

Two stages, because 64-bit products do not vectorise on common processors: `item_keys` and `sender_salts` are
64-bit mixes (splitmix64) computed once per item and once per (agent, round); `collegium.kernels` and `Draws`
join one of each with a 32-bit finaliser (lowbias32).
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import RuleError

Seed = int | np.integer[Any] | np.random.Generator | np.random.SeedSequence | None
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

_MASK64 = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def seed64(rng: Seed) -> int:
    """The 64-bit seed meant by an integer, a NumPy generator (one draw is taken), a seed sequence or None.

    >>> seed64(7)
    7
    >>> seed64(np.random.default_rng(7)) == seed64(np.random.default_rng(7))
    True
    """
    if isinstance(rng, (bool, np.bool_)) or not (
        rng is None or isinstance(rng, (int, np.integer, np.random.Generator, np.random.SeedSequence))
    ):
        raise RuleError(f"a seed must be a whole number, a numpy Generator or None, got {rng!r}")
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(0, 2**64, dtype=np.uint64))
    if rng is None:
        rng = np.random.SeedSequence()
    if isinstance(rng, np.random.SeedSequence):
        return int(rng.generate_state(1, np.uint64)[0])
    if not 0 <= int(rng) <= _MASK64:
        raise RuleError(f"a seed lies between 0 and 2**64 - 1, got {rng}")
    return int(rng)


def mix64(x: int) -> int:
    """The splitmix64 finaliser on one Python integer."""
    x = (x + _GOLDEN) & _MASK64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK64
    return x ^ (x >> 31)


def mix64_array(x: U64) -> U64:
    """`mix64` of every element: NumPy wraps unsigned products as the hash wants."""
    x = np.atleast_1d(x) + np.uint64(_GOLDEN)  # a scalar would warn of the overflow that is meant
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def child(seed: int, index: int) -> int:
    """The seed of the `index`-th realisation of a run seeded with `seed`.

    >>> child(0, 0) != child(0, 1) != child(1, 0)
    True
    """
    return mix64(mix64(seed) ^ mix64(index ^ 0x52454C49))


def stream(seed: int, start: int, count: int) -> U64:
    """Numbers `start … start + count - 1` of an endless stream of 64-bit words."""
    counters = np.arange(start, start + count, dtype=np.uint64)
    return mix64_array(np.uint64(mix64(seed)) + np.uint64(_GOLDEN) * counters)


def uniforms(seed: int, start: int, count: int) -> NDArray[np.float64]:
    """The same stream as numbers in [0, 1), with 53 random bits each."""
    return (stream(seed, start, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def distinct(seed: int, total: int, count: int) -> NDArray[np.int64]:
    """`count` different whole numbers below `total`, uniformly, sorted.

    >>> distinct(3, total=5, count=5)
    array([0, 1, 2, 3, 4])
    """
    if count > total // 2:  # few are left out: draw those
        left_out = distinct(seed, total, total - count) if count < total else np.empty(0, np.int64)
        return np.setdiff1d(np.arange(total), left_out, assume_unique=True)
    drawn, start = np.empty(0, np.int64), 0
    while len(drawn) < count:  # never draws more than are missing, so the set is that of drawing one by one
        missing = count - len(drawn)
        fresh = (stream(seed, start, missing) % np.uint64(total)).astype(np.int64)
        drawn, start = sorted_distinct(np.concatenate([drawn, fresh])), start + missing
    return drawn


def sorted_distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """`np.unique` by sorting: its hash table takes ten times as long on millions of numbers."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if ordered.size else ordered


def item_ids(items: Sequence[int] | Sequence[str] | NDArray[Any] | None, n: int) -> U64:
    """64-bit identities of n items: 0…n-1 by default, whole numbers as they are, names hashed (BLAKE2b)."""
    if items is None:
        return np.arange(n, dtype=np.uint64)
    names = item_names(items)
    if len(names) != n:
        raise RuleError(f"items names {len(names)} items, but there are {n} rows of scores")
    if all(isinstance(name, (int, np.integer)) and not isinstance(name, bool) for name in names):
        outside = [name for name in names if not 0 <= name <= _MASK64]
        if outside:
            raise RuleError(f"item numbers must lie between 0 and 2**64 - 1, got {outside[0]}")
        return _different(np.array(names, np.uint64), names)
    if all(isinstance(name, str) for name in names):
        digests = [hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in names]
        return _different(np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64), names)
    raise RuleError("items must be whole numbers or strings, one per row of scores and all of one kind")


def item_names(items: Any) -> list[Any]:
    """The items' names as a list; a set has no order and a string is one name."""
    if isinstance(items, (str, bytes, set, frozenset, dict)) or not hasattr(items, "__iter__"):
        raise RuleError(f"items must be a list of names, one per row of scores, got {type(items).__name__}")
    return items.tolist() if isinstance(items, np.ndarray) else list(items)


def _different(ids: U64, names: list[Any]) -> U64:
    order = np.argsort(ids, kind="stable")
    twice = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if len(twice):
        first, second = order[twice[0]], order[twice[0] + 1]
        raise RuleError(f"items must be different, but {names[first]!r} stands at {first} and at {second}")
    return ids


def item_keys(seeds: U64, ids: U64) -> tuple[U32, U32]:
    """Two 32-bit words per (seed, item), for the kernels; arrays broadcast."""
    return _halves(mix64_array(mix64_array(seeds) ^ mix64_array(ids)))


def sender_salts(
    agents: NDArray[np.int64], rounds: NDArray[np.int64], coordinates: NDArray[np.int64] | None = None
) -> tuple[U32, U32]:
    """Two 32-bit words per (agent, round), and coordinate of a message, for the kernels; arrays broadcast."""
    first_draw = mix64_array(mix64_array(rounds.astype(np.uint64)))
    salts = mix64_array(first_draw ^ mix64_array(agents.astype(np.uint64)))
    if coordinates is not None:
        salts = np.where(coordinates, mix64_array(salts ^ mix64_array(coordinates.astype(np.uint64))), salts)
    return _halves(salts)


def _halves(words: U64) -> tuple[U32, U32]:
    return (words >> np.uint64(32)).astype(np.uint32), words.astype(np.uint32)


def uniform_words(keys: tuple[U32, U32], salts: tuple[U32, U32]) -> U32:
    """32 random bits for every item's key and sender's salt; arrays broadcast."""
    x = (keys[0] ^ salts[0]) + (keys[1] ^ salts[1])
    y = x >> np.uint32(16)
    x ^= y
    x *= np.uint32(0x21F0AAAD)
    x ^= np.right_shift(x, np.uint32(15), out=y)
    x *= np.uint32(0xD35A2D97)
    x ^= np.right_shift(x, np.uint32(15), out=y)
    return np.asarray(x)


def uniform_draws(keys: tuple[U32, U32], salts: tuple[U32, U32]) -> NDArray[np.float64]:
    """A number in [0, 1) for every item's key and sender's salt; arrays broadcast."""
    return np.asarray(uniform_words(keys, salts) * 2.0**-32, np.float64)


class Draws:
    """The random numbers of one agent in one round, for n items at once: what `emit` and `encode` receive.

    A draw is a hash of (seed, item, agent, round), of how many came before it, and of its coordinate: it does not
    depend on the batch, so a simulator, a batch of any shape and a live network agree bit for bit.

    >>> a, b = Draws(0, np.arange(3, dtype=np.uint64), agent=2, round=1), Draws(0, np.array([1], np.uint64), 2, 1)
    >>> float(a.uniform()[1, 0]) == float(b.uniform()[0, 0])
    True
    """

    __slots__ = ("_count", "_keys", "agent", "round")

    def __init__(self, seed: int, ids: U64, agent: int, round: int) -> None:
        self._keys = item_keys(np.array([seed], np.uint64), ids)
        self.agent, self.round, self._count = agent, round, 0

    @classmethod
    def of_keys(cls, keys: tuple[U32, U32], agent: int, round: int) -> "Draws":
        """The same from the items' `item_keys`, which stay the same for all agents and rounds."""
        draws = cls.__new__(cls)
        draws._keys, draws.agent, draws.round, draws._count = keys, agent, round, 0
        return draws

    def __len__(self) -> int:
        return len(self._keys[0])

    @property
    def items(self) -> U64:
        """A 64-bit word for every item, the same at all agents and in all rounds of a run or a live network."""
        return np.asarray((self._keys[0].astype(np.uint64) << np.uint64(32)) | self._keys[1].astype(np.uint64))

    def take(self, rows: NDArray[Any]) -> "Draws":
        """The draws of some of the items, going on where these are."""
        some = Draws.of_keys((self._keys[0][rows], self._keys[1][rows]), self.agent, self.round)
        some._count = self._count
        return some

    def uniform(self, width: int = 1) -> NDArray[np.float64]:
        """Numbers in [0, 1) with 32 random bits, shape (n, width); each call gives the next ones."""
        salts = _halves(np.array([salt64(self.agent, self.round, self._count, j) for j in range(width)], np.uint64))
        self._count += 1
        return uniform_draws((self._keys[0][:, None], self._keys[1][:, None]), salts)


@lru_cache(1 << 14)
def salt64(agent: int, round: int, count: int = 0, coordinate: int = 0) -> int:
    """The 64-bit salt of an agent's draw: the `count`-th of its round, for one coordinate of a message."""
    salt = mix64(mix64(mix64(round) ^ count) ^ mix64(agent))
    return mix64(salt ^ mix64(coordinate)) if coordinate else salt
