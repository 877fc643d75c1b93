"""Zero-sum masks: a neighbour learns the average and not the score.

Every pair of agents has a secret, from which both make the same 48 random bits for an item; the one with the smaller
number adds them, the other subtracts them, modulo 2^48. One masked score is as good as random; the sum of all is that
of the scores. Values are whole numbers below 2^48 in float64, so that any rule that hands on or adds what agents sent,
such as flooding, carries them exactly. [bonawitz2017]
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.errors import RuleError, ScoreError

MODULUS = 1 << 48
UNIT = 2.0**-34
"""What scores are rounded to: 6e-11."""
LARGEST = MODULUS * UNIT / 2
"""Sums must stay below this in absolute value: 8192."""
Secrets = Mapping[int, bytes]


def pair_secrets(agent: int, private: Any, public: Mapping[int, Any]) -> dict[int, bytes]:
    """The secrets an agent shares with each other one: X25519 of its private key and their public ones.

    private: an `X25519PrivateKey` of `cryptography`; public: the others' public keys by number.
    """
    found = {}
    for other, key in public.items():
        if other != agent:
            ends = b"".join(int(one).to_bytes(4, "big") for one in sorted((agent, other)))
            found[int(other)] = hashlib.blake2b(private.exchange(key), digest_size=32, person=b"mask" + ends).digest()
    return found


def masks(agent: int, secrets: Secrets, items: Sequence[int], width: int = 1) -> NDArray[np.int64]:
    """The sum of an agent's masks with those others, modulo 2^48, for items and numbers: shape (n, width)."""
    total = np.zeros((len(items), width), np.int64)
    for other, secret in secrets.items():
        drawn = np.array([[_bits(secret, int(item), j) for j in range(width)] for item in items], np.int64)
        total = (total + (drawn if agent < other else -drawn).reshape(len(items), width)) % MODULUS
    return total


def masked(agent: int, scores: ArrayLike, secrets: Secrets, items: Sequence[int]) -> NDArray[np.float64]:
    """What an agent sends about n items instead of its scores (n, d): whole numbers below 2^48.

    An item's number must never come twice: with two scores under the same masks their difference is seen.
    """
    values = np.asarray(scores, np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if not np.isfinite(values).all() or np.abs(values).max(initial=0.0) * (len(secrets) + 1) >= LARGEST:
        raise ScoreError(f"masked scores of {len(secrets) + 1} agents must be below {LARGEST / (len(secrets) + 1):.6g}")
    if len(values) != len(items):
        raise RuleError(f"masks are for one row of scores an item: {len(items)} items and {len(values)} rows")
    if not all(isinstance(item, (int, np.integer)) and 0 <= item < 1 << 64 for item in items):
        raise RuleError(f"items are whole numbers from 0 to 2^64 - 1, got {list(items)!r:.60}")
    if len(set(items)) < len(items):
        raise RuleError("an item's masks serve once: items must be different")
    whole = np.rint(values / UNIT).astype(np.int64)
    return ((whole + masks(agent, secrets, items, values.shape[1])) % MODULUS).astype(np.float64)


def average(
    sent: Mapping[int, ArrayLike],
    agents: int,
    shares: Mapping[int, Mapping[int, ArrayLike]] | None = None,
    *,
    least: int = 3,
) -> NDArray[np.float64]:
    """The mean score (n, d) of those who sent, from what they sent, by agent.

    agents: how many have masks; shares: for each agent that is missing, what every other one reveals, its
        `masks(agent, {missing: secret}, items)`; without all of them the items are refused.
    least: fewer than so many scores are not averaged: of two, each knows the other's.
    """
    unknown = set(sent) - set(range(agents))
    if unknown:
        raise RuleError(f"agent {min(unknown)} has no masks here: they are of agents 0 to {agents - 1}")
    missing = set(range(agents)) - set(sent)
    if len(sent) < least:
        raise RuleError(
            f"only {len(sent)} of {agents} agents sent a score; an average of fewer than {least} reveals too much"
        )
    total: Any = 0
    for values in sent.values():
        total = (total + np.asarray(values, np.float64).astype(np.int64)) % MODULUS
    for gone in sorted(missing):
        known = {} if shares is None else shares.get(gone, {})
        lacking = set(sent) - set(known)
        if lacking:
            raise RuleError(
                f"agent {gone} is missing and agent {min(lacking)} has not revealed its mask with it: "
                "the items are refused"
            )
        for agent in sent:
            total = (total - np.asarray(known[agent], np.int64)) % MODULUS
    centred = np.where(total >= MODULUS // 2, total - MODULUS, total)
    return np.asarray(centred * UNIT / len(sent), np.float64)


def _bits(secret: bytes, item: int, coordinate: int) -> int:
    text = item.to_bytes(8, "big") + coordinate.to_bytes(4, "big")
    return int.from_bytes(hashlib.blake2b(text, key=secret, digest_size=6).digest(), "big")
