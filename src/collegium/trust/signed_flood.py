"""Flooding with signatures as a rule: in the simulator and in live agents alike."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import real_number, whole_number
from collegium._util.randomness import U64, Draws
from collegium._util.seat import Seat
from collegium.errors import RuleError
from collegium.protocol.base import RECEIVED, Floats, Inbox, Mask, Outbox, Rule, completed, message_width
from collegium.protocol.combine import Combine, Median, TrimmedMean

_PIECES, _BYTES = 11, 6  # a signature of 64 bytes as whole numbers of 48 bits, which float64 holds exactly
_FLAGS = 16  # agents whose number of statements, 0 to 2, fits into one number
_FUSE = TrimmedMean(1)
_POWERS = 256.0 ** np.arange(_BYTES)


class Statement(NamedTuple):
    """What an agent said of an item, for all to check."""

    agent: int
    item: int
    values: tuple[float, ...]
    signature: bytes

    def text(self, network: bytes) -> bytes:
        """What is signed: network, agent, item and the numbers."""
        head = len(network).to_bytes(2, "big") + network + self.agent.to_bytes(4, "big") + self.item.to_bytes(8, "big")
        return head + np.asarray(self.values, "<f8").tobytes()


class Keys:
    """What an agent signs with, and by what it knows the signatures of all.

    network: what statements are signed for besides: those of another network are refused.
    private: `Ed25519PrivateKey` by the agent's number, of this agent alone except in a simulation; public: of all.
    largest: the largest score of anybody: a statement beyond it is refused.
    """

    def __init__(
        self, network: bytes, private: Mapping[int, Any], public: Mapping[int, Any], largest: float = math.inf
    ) -> None:
        self._network, self._private, self._public, self._largest = network, private, public, largest
        self._seen: dict[tuple[int, bytes, bytes], bool] = {}

    def sign(self, agent: int, item: int, values: Sequence[float]) -> bytes:
        """An agent's signature under its score of an item; of 64 bytes."""
        signature: bytes = self._private[agent].sign(Statement(agent, item, tuple(values), b"").text(self._network))
        return signature

    def holds(self, statement: Statement) -> bool:
        """Whether the agent has signed this."""
        text = statement.text(self._network)
        about = statement.agent, text, statement.signature
        if about not in self._seen:
            if len(self._seen) >= 1 << 16:  # those of items that are long decided
                self._seen.clear()
            fits = bool((np.abs(statement.values) <= min(self._largest, np.finfo(float).max)).all())
            self._seen[about] = fits and self._is_signed(statement.agent, text, statement.signature)
        return self._seen[about]

    def _is_signed(self, agent: int, text: bytes, signature: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        try:
            self._public[agent].verify(signature, text)
        except InvalidSignature:
            return False
        return True

    def is_caught(self, agent: int) -> bool:
        """Whether the agent is left out of whatever comes: a simulation judges every item by itself."""
        return False

    def caught(self, first: Statement, second: Statement) -> None:
        """An agent said two things of one item."""

    def refused(self, sender: int) -> None:
        """A neighbour handed on what the agent it names has not signed."""


@cache
def simulated_keys(agents: int) -> Keys:
    """Keys of a simulation, where nobody has a secret: real ones, made of the agents' numbers."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    seeds = [hashlib.blake2b(f"simulated agent {k}".encode(), digest_size=32).digest() for k in range(agents)]
    private = {k: Ed25519PrivateKey.from_private_bytes(seed) for k, seed in enumerate(seeds)}
    return Keys(b"simulated", private, {k: key.public_key() for k, key in private.items()})


class Heard(NamedTuple):
    """What an agent knows of n items."""

    item: U64
    """What the item is called in statements, shape (n,); known once something is sent."""
    said: Floats
    """Of every agent the first statement, and a second that differs, shape (n, K, 2, w + 11): score, signature."""
    known: NDArray[np.uint8]
    """How many statements of each are known: 0, 1, or 2, which is proof that it lied; shape (n, K)."""
    unsigned: Mask
    """Whether this agent has a score that it has not signed yet, shape (n,)."""
    news: Mask
    """Whether something was learned since the last message, shape (n,)."""


@dataclass(frozen=True)
class SignedFlood(Rule[Heard]):
    """Everybody signs its score of an item once (Ed25519), and all statements are handed on until there is nothing new.

    Nobody can speak for another. Two different statements of one agent about one item prove that it lied: the proof is
    handed on as well, and the agent is left out by all. Then everybody fuses the same scores.

    combine: what all scores are fused by, such as `combine.TrimmedMean(f)`; it must bear its liars among all K values,
        and the network must hold together without any f agents, which may hand nothing on.
    clip: scores are cut to ±clip before; of several classes, the largest entry is, and the others with it.
    agents: K; that of the network it runs on, if left out.

    It takes as many rounds as the network is wide, and one more for proofs. A message has two statements of every
    agent: K (w + 11) numbers twice, w of them the score. A liar that shows a statement to one agent alone in the last
    round is not caught in time: it moves that agent as far as one value moves `combine`. **Everybody sees everybody's
    score.** An item's name serves once: the same name with another score is a second statement.
    """

    combine: Combine = _FUSE
    clip: float | None = None
    agents: int | None = None
    keys: Keys | None = field(default=None, init=False, repr=False, compare=False)
    """Those of a live agent; None: those of a simulation."""
    hands_on = True

    def __post_init__(self) -> None:
        if not isinstance(self.combine, Combine):
            raise RuleError(f"scores are fused by one of collegium.protocol.combine, got {self.combine!r:.60}")
        if self.clip is not None:
            object.__setattr__(self, "clip", real_number(self.clip, "clip", RuleError, above=0))
        if self.agents is not None:
            number = whole_number(self.agents, "the agents of SignedFlood", RuleError, at_least=1)
            object.__setattr__(self, "agents", number)

    def with_keys(self, keys: Keys) -> SignedFlood:
        """The rule as an agent with keys of its own runs it."""
        keyed = copy.copy(self)
        object.__setattr__(keyed, "keys", keys)
        return keyed

    def prepared(self, schedule: Any, rounds: int, rounded: bool = False) -> SignedFlood:
        if rounded:
            raise RuleError("signatures cannot be rounded: use SignedFlood at full precision")
        if self.agents not in (None, schedule.size):
            raise RuleError(f"SignedFlood is for {self.agents} agents, the network has {schedule.size}")
        return replace(self, agents=schedule.size)

    def check_seats(self, seats: Sequence[Seat]) -> None:
        import networkx

        K = len(seats)
        # A median bears almost half of all, whom only a complete network would do without: one, at least.
        liars = int(getattr(self.combine, "liars", min(self.combine.bears(K), 1)))
        everybody, weights = np.arange(K, dtype=np.int32), np.full(K, 1 / K)
        self.combine.check_seats([Seat(k, everybody, k, weights, np.delete(everybody, k)) for k in range(K)])
        graph = networkx.DiGraph([(l, seat.agent) for seat in seats for l in seat.senders.tolist() if l != seat.agent])
        graph.add_nodes_from(range(K))
        if liars and K > 1 and (whole := networkx.node_connectivity(graph)) <= liars:
            raise RuleError(
                f"{self} needs a network that holds together without any {liars} of its agents, which may hand nothing "
                f"on; this one is cut by {whole}: add links, or choose a combine for fewer liars"
            )

    def _size(self) -> int:
        if self.agents is None:
            raise RuleError("SignedFlood must know the number of agents: write SignedFlood(agents=12)")
        return self.agents

    def _keys(self) -> Keys:
        return self.keys or simulated_keys(self._size())

    def width(self, d: int) -> int:
        return 2 * self._size() * (message_width(d) + _PIECES) + -(-self._size() // _FLAGS)

    def message_growth(self, rounds: int) -> float:
        return 2.0**100  # signatures are whole numbers up to 2^48, however small scores are

    def init(self, seat: Seat, scores: Floats) -> Heard:
        n, K, w = len(scores), self._size(), message_width(scores.shape[1])
        said, seen = np.zeros((n, K, 2, w + _PIECES)), np.isfinite(scores[:, 0])
        said[seen, seat.agent, 0, :w] = scores[seen, :w]
        return Heard(np.zeros(n, np.uint64), said, np.zeros((n, K), np.uint8), seen, np.ones(n, np.bool_))

    def emit(self, seat: Seat, state: Heard, draws: Draws) -> tuple[Outbox, Heard]:
        said, count = state.said, state.known
        if state.unsigned.any():
            said, count, rows = said.copy(), count.copy(), np.flatnonzero(state.unsigned)
            own = said[rows, seat.agent, 0, :-_PIECES]
            said[rows, seat.agent, 0], count[rows, seat.agent] = self._signed(seat.agent, own, draws.items[rows]), 1
        quiet = np.zeros_like(state.news)
        return Outbox(_message(said, count), state.news), Heard(draws.items, said, count, quiet, quiet)

    def _signed(self, agent: int, values: Floats, items: U64) -> Floats:
        """Statements (n, w + 11) of an agent's scores (n, w)."""
        keys = self._keys()
        signatures = [keys.sign(agent, item, one) for item, one in zip(items.tolist(), values.tolist(), strict=True)]
        return np.concatenate([values, _as_numbers(signatures)], axis=1)

    def absorb(self, seat: Seat, state: Heard, inbox: Inbox) -> Heard:
        keys, said, count = self._keys(), state.said.copy(), state.known.copy()
        items = state.item.tolist()
        for sender, message, status in zip(seat.senders.tolist(), inbox.values, inbox.status, strict=True):
            if sender == seat.agent or not (status == RECEIVED).any():
                continue
            theirs, there = _statements(message, said.shape)
            there *= (status == RECEIVED)[:, None]
            for slot in (0, 1):
                differs = (theirs[:, :, slot, :-_PIECES] != said[:, :, 0, :-_PIECES]).any(axis=2)
                new = (there > slot) & ((count == 0) | ((count == 1) & differs))
                for row, agent in np.argwhere(new).tolist():
                    statement = _statement(agent, items[row], theirs[row, agent, slot])
                    if not keys.holds(statement):
                        keys.refused(sender)
                    elif count[row, agent]:
                        keys.caught(_statement(agent, items[row], said[row, agent, 0]), statement)
                        said[row, agent, 1], count[row, agent] = theirs[row, agent, slot], 2
                    elif not keys.is_caught(agent):
                        said[row, agent, 0], count[row, agent] = theirs[row, agent, slot], 1
        news = state.news | (count != state.known).any(axis=1)
        return state._replace(said=said, known=count, news=news)

    def statistic(self, state: Heard) -> Floats:
        there = state.known == 1
        if state.unsigned.any():  # before anything is sent, an agent has its own score
            there = there | (state.unsigned[:, None] & state.said[:, :, 0].any(axis=2))
        values = np.where(there[:, :, None], state.said[:, :, 0, :-_PIECES], 0.0)
        there = there | ~there.any(axis=1)[:, None]  # where there is nothing, all are zero
        K = values.shape[1]
        if self.clip is not None:
            whole = np.abs(np.stack([completed(values[:, k]) for k in range(K)], axis=1)).max(axis=2)
            values = values * np.where(whole > self.clip, self.clip / np.where(whole > 0, whole, 1.0), 1.0)[:, :, None]
        by_agent = np.ascontiguousarray(np.moveaxis(values, 1, 0))
        weights = np.ascontiguousarray((there / there.sum(axis=1)[:, None]).T)
        # All are to fuse alike, so that the median stands where a combine wants an agent's own value.
        return completed(self.combine(by_agent, weights, Median()(by_agent, weights, by_agent[0])))

    def own_part(self, agent: int, message: Floats) -> Floats:
        """An agent's score as its message has it, shape (n, w)."""
        K = self._size()
        size = (message.shape[1] - -(-K // _FLAGS)) // (2 * K)
        return message[:, 2 * agent * size : 2 * agent * size + size - _PIECES]

    def restated(self, agent: int, message: Floats, values: Floats, draws: Draws) -> Floats:
        """The agent's message with another score of its own, rightly signed: what a liar sends; (n, w) or (n, r, w)."""
        if values.ndim == 3:
            each = [self.restated(agent, message, values[:, j], draws) for j in range(values.shape[1])]
            return np.stack(each, axis=1)
        K, w = self._size(), values.shape[1]
        said, count = _statements(message, (len(message), K, 2, w + _PIECES))
        said[:, agent, 0], said[:, agent, 1], count[:, agent] = self._signed(agent, values, draws.items), 0.0, 1
        return _message(said, count)


def _message(said: Floats, count: NDArray[np.uint8]) -> Floats:
    n, K = count.shape
    flags = np.zeros((n, -(-K // _FLAGS) * _FLAGS))
    flags[:, :K] = count
    packed = flags.reshape(n, flags.shape[1] // _FLAGS, _FLAGS) @ 4.0 ** np.arange(_FLAGS)
    return np.concatenate([said.reshape(n, K * 2 * said.shape[3]), packed], axis=1)


def _statements(message: Floats, shape: tuple[int, ...]) -> tuple[Floats, NDArray[np.uint8]]:
    """What a message says, (n, K, 2, w + 11), and how many statements of each agent, (n, K)."""
    n, K, _, size = shape
    flags = np.clip(message[:, 2 * K * size :], 0, 2.0**32 - 1).astype(np.uint64)
    place = np.arange(K)
    count = flags[:, place // _FLAGS] >> (2 * (place % _FLAGS)).astype(np.uint64) & np.uint64(3)
    return message[:, : 2 * K * size].reshape(n, K, 2, size).copy(), np.minimum(count, 2).astype(np.uint8)


def _statement(agent: int, item: int, numbers: Floats) -> Statement:
    pieces = np.where((numbers >= 0) & (numbers < 2.0**48), numbers, 0.0)[-_PIECES:].astype("<u8")
    signature = pieces.view(np.uint8).reshape(_PIECES, 8)[:, :_BYTES].tobytes()[:64]
    return Statement(agent, item, tuple(numbers[:-_PIECES].tolist()), signature)


def _as_numbers(signatures: Sequence[bytes]) -> Floats:
    """Signatures (n,) as whole numbers of 48 bits, shape (n, 11)."""
    padded = b"".join(one.ljust(_PIECES * _BYTES, b"\0") for one in signatures)
    return np.asarray(np.frombuffer(padded, np.uint8).reshape(len(signatures), _PIECES, _BYTES) @ _POWERS, np.float64)
