"""`Rule`: what one agent does with its scores, what it sends and what it makes of what it receives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import Draws
from collegium._util.seat import Seat
from collegium.errors import RuleError
from collegium.protocol.codec.base import Codec
from collegium.protocol.codec.float64 import Float64

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
if TYPE_CHECKING:
    from typing_extensions import TypeVar as _TypeVar

    S = _TypeVar("S", default=Any)
else:
    S = TypeVar("S")

OWN, RECEIVED, SILENT, LOST = range(4)
"""Status of a message in an inbox: the agent's own; received in this round; not sent, because the sender's rule chose
silence; sent or not, but nothing got through in this round."""


class Outbox(NamedTuple):
    """What an agent sends in a round about n items."""

    values: Floats
    """Shape (n, w), the same for all receivers; or (n, r, w), one message for each of the seat's r receivers."""
    spoke: Mask | None = None
    """About which items it sends at all, shape (n,); None: about all. In round 1 everybody sends."""
    own: Floats | None = None
    """Its own term where `values` differ by receiver, shape (n, w); zero if left out."""


class Inbox(NamedTuple):
    """What an agent has of the m agents it hears, ascending, about n items. A mailbox filled in what is missing."""

    values: Floats
    """Messages of w numbers, shape (m, n, w); where nothing came, what the mailbox puts there."""
    weights: Floats
    """How much each counts, shape (m, n); 0 where the mailbox leaves it out."""
    status: NDArray[np.uint8]
    """OWN, RECEIVED, SILENT or LOST, shape (m, n)."""
    own: Floats
    """What this agent sent last, as its receivers have it, shape (n, w), whether or not it hears itself."""


class Rule(ABC, Generic[S]):
    """One agent's side of a protocol for n items at once, as pure functions of a state.

    A round is: every agent calls `emit`; the codec turns its messages into what goes on the wire and back; links and
    mailbox say what of it is in each inbox; then every agent calls `absorb`. The same object runs in a simulation and
    in a live agent. A state is a NamedTuple of arrays with the items on axis 0, so that items can be gathered,
    split and reordered; scores and statistics have d numbers an item, messages `width(d)`.

    Rules are frozen and compare by value: make yours a frozen dataclass, then run `collegium.check_rule` on it.
    """

    hands_on: ClassVar[bool] = False
    """Whether its messages hand on scores as they are, and not a statistic. An agent without a view of an item then has
    nothing to say instead of zero: its scores are NaN."""

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if cls.message_bits is not Rule.message_bits:
            raise RuleError(
                f"{cls.__name__} must not define message_bits: it follows from codec and width, and cannot be claimed"
            )

    @abstractmethod
    def init(self, seat: Seat, scores: Floats) -> S:
        """The state before the first round, from the agent's own scores, shape (n, d)."""

    @abstractmethod
    def emit(self, seat: Seat, state: S, draws: Draws) -> tuple[Outbox, S]:
        """What the agent sends in this round, and its state after that. Randomness comes from `draws` alone."""

    @abstractmethod
    def absorb(self, seat: Seat, state: S, inbox: Inbox) -> S:
        """The state after this round's messages."""

    @abstractmethod
    def statistic(self, state: S) -> Floats:
        """What the agent decides by, shape (n, d): the sign for d = 1, the largest entry above."""

    @property
    def codec(self) -> Codec:
        """How numbers are written on the wire."""
        return Float64()

    def width(self, d: int) -> int:
        """How many numbers a message has where scores have d."""
        return d

    @final
    def message_bits(self, d: int = 1) -> int:
        """The size of a message where scores have d numbers."""
        return self.codec.message_bits * self.width(d)

    def message_growth(self, rounds: int) -> float:
        """How many times the largest score a message can become within `rounds` rounds; averages never grow."""
        return 1.0

    def sends_own(self, seat: Seat) -> bool:
        """Whether its messages of this round have the agent's own view in them: live agents tell whose views are."""
        return True

    def check_seats(self, seats: Sequence[Seat]) -> None:
        """Raise where the rule cannot keep its promise on a network, given every agent's place in it."""

    def rounding_growth(self, rounds: int) -> float:
        """How many times the largest error of one rounded message a message can be off within `rounds` rounds."""
        return self.message_growth(rounds) - 1

    def max_score(self, rounds: int) -> float:
        """The largest score, in absolute value, the rule can take for that many rounds without any overflow."""
        growth, rounding = self.message_growth(rounds), self.rounding_growth(rounds)
        return self.codec.max_score(growth) if rounding == growth - 1 else self.codec.max_score(growth, rounding)

    def prepared(self, schedule: Any, rounds: int, rounded: bool = False) -> Rule[S]:
        """The rule with what it has to know of the network it is to run on; most need nothing.

        rounded: whether its messages will be rounded. Refuses a network that it is not for.
        """
        return self


class Wrapped(Rule[Any]):
    """A rule around another: what it does not define itself is that of the inner one."""

    rule: Rule

    @property
    def hands_on(self) -> bool:  # type: ignore[override]
        return self.rule.hands_on

    @property
    def codec(self) -> Codec:
        return self.rule.codec

    def width(self, d: int) -> int:
        return self.rule.width(d)

    def init(self, seat: Seat, scores: Floats) -> Any:
        return self.rule.init(seat, scores)

    def emit(self, seat: Seat, state: Any, draws: Draws) -> tuple[Outbox, Any]:
        return self.rule.emit(seat, state, draws)

    def absorb(self, seat: Seat, state: Any, inbox: Inbox) -> Any:
        return self.rule.absorb(seat, state, inbox)

    def statistic(self, state: Any) -> Floats:
        return self.rule.statistic(state)

    def sends_own(self, seat: Seat) -> bool:
        return self.rule.sends_own(seat)

    def check_seats(self, seats: Sequence[Seat]) -> None:
        self.rule.check_seats(seats)

    def message_growth(self, rounds: int) -> float:
        return self.rule.message_growth(rounds)

    def rounding_growth(self, rounds: int) -> float:
        return self.rule.rounding_growth(rounds)


def message_width(d: int) -> int:
    """How many numbers of a score need to travel: all but one where d entries sum to zero."""
    return d if d == 1 else d - 1


def completed(x: Floats) -> Floats:
    """The statistic (n, d) from the numbers that travelled (n, w): entries of several classes sum to zero."""
    if x.shape[1] == 1:
        return x
    last = -x[:, 0]
    for j in range(1, x.shape[1]):  # in this order whatever the shape of the batch
        last = last - x[:, j]
    return np.concatenate([x, last[:, None]], axis=1)
