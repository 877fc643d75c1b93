"""What a live agent signs or masks its scores with, and whom it caught signing two things.

The private key is a file beside the agent's own, `agent-3.private`; everybody's public keys are in all agents' files.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from collegium.errors import InputFileError
from collegium.protocol import Rule
from collegium.trust.masked_mean import MaskedMean
from collegium.trust.masks import pair_secrets
from collegium.trust.signed_flood import Keys, SignedFlood, Statement

LIED = "signed two different scores of one item: it is left out"
"""The status text of an agent that was caught."""
_KINDS: dict[type, tuple[Any, Any]] = {
    SignedFlood: (Ed25519PrivateKey, Ed25519PublicKey),
    MaskedMean: (X25519PrivateKey, X25519PublicKey),
}


def needs_keys(rule: Rule) -> bool:
    """Whether every agent needs a key of its own for this rule, and everybody's public ones."""
    return type(rule) in _KINDS


def create(path: Path, rule: Rule) -> str:
    """Make a private key that its owner alone can read; the public key, as 64 hexadecimal digits."""
    key = _KINDS[type(rule)][0].generate()
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(key.private_bytes_raw())
    public: str = key.public_key().public_bytes_raw().hex()
    return public


def load(path: Path, rule: Rule, agent: int, keys: Sequence[str], network: str, largest: float) -> Any:
    """What `with_keys` of the rule takes at the agent with that number, whose private key is in a file."""
    private, public = _KINDS[type(rule)]
    try:
        key = private.from_private_bytes(path.read_bytes())
    except OSError as problem:
        raise InputFileError(f"{path}: {problem.strerror or problem}") from None
    except ValueError:
        raise InputFileError(f"{path} is no key of 32 bytes, as collegium live init makes them") from None
    if key.public_key().public_bytes_raw().hex() != keys[agent]:
        raise InputFileError(f"{path} is not the key of agent {agent} in this network: others would not know it by it")
    others = {k: public.from_public_bytes(bytes.fromhex(one)) for k, one in enumerate(keys)}
    if isinstance(rule, MaskedMean):
        return pair_secrets(agent, key, others)
    return Witness(bytes.fromhex(network), {agent: key}, others, largest)


class Witness(Keys):
    """The keys of a live agent, and its memory of who lied: whoever was caught is left out of all items after that."""

    def __init__(self, network: bytes, private: Mapping[int, Any], public: Mapping[int, Any], largest: float) -> None:
        super().__init__(network, private, public, largest)
        self.proofs: dict[int, tuple[Statement, Statement]] = {}
        """Two different statements about one item, of every agent that was caught, by number."""
        self.forged: Counter[int] = Counter()
        """Statements that a neighbour handed on and that their agent has not signed, by the neighbour's number."""

    def is_caught(self, agent: int) -> bool:
        return agent in self.proofs

    def caught(self, first: Statement, second: Statement) -> None:
        self.proofs.setdefault(first.agent, (first, second))

    def refused(self, sender: int) -> None:
        self.forged[sender] += 1
