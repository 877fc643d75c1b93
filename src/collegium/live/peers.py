"""What an agent knows of a neighbour: whether it is connected, how quickly its messages come, what it may use up."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from collegium._util.arguments import real_number
from collegium.errors import LiveError
from collegium.live.naming import Handles
from collegium.live.table import TransitionError
from collegium.live.transport.base import Peer

_ASKED = 8.5  # deadlines, one re-request each: with a fifth of all frames lost, eight without answer are rare
_AT_FIRST = 8  # re-requests within the longest wait, to one whose response time is not known
_PENALTY = 10.0  # seconds without a neighbour that is over its budget; doubled each time
_MOST_STRIKES = 6
_FORGET = 600.0  # seconds in which one strike is forgotten: with few items, a hundred messages may take days
_FIRST, _GROWTH, _MOST = 8, 8, 4096  # messages asked for at once


class State(StrEnum):
    """The state of a neighbour."""

    AWAY = "down"
    """It is not connected."""
    UP = "up"
    """Rounds wait for its messages."""
    SILENT = "silent"
    """Connected, but it answers nothing: left out until a frame of it arrives."""
    MUTE = "mute"
    """It answers, but its messages do not come: left out until one does."""
    OVER_BUDGET = "over-budget"
    """It sent far more than it may: its frames are dropped for some time."""
    REFUSED = "refused"
    """It cannot take part: a certificate, or frames of another network."""


_TRANSITIONS = {
    State.AWAY: {State.UP, State.REFUSED},
    State.UP: {State.AWAY, State.SILENT, State.MUTE, State.OVER_BUDGET},
    State.SILENT: {State.AWAY, State.UP, State.MUTE, State.OVER_BUDGET},
    State.MUTE: {State.AWAY, State.UP, State.OVER_BUDGET},
    State.OVER_BUDGET: {State.AWAY, State.UP},
    State.REFUSED: {State.AWAY, State.UP},
}


class Deadlines(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long to wait, in seconds."""

    longest: float = 2.0
    """For a neighbour's message in one round, at most, however slow it has been (and `view`, if it waits for one)."""
    least: float = 0.25
    """No message is re-requested or counted as lost before this, so that a busy machine's pause is no failure."""
    view: float = 1.0
    """For this agent's own view of an item a neighbour has announced; then it takes part from zero."""
    item: float = 15.0
    """For a whole item, from its beginning here; then it is decided with what is there."""
    still: float = 0.25
    """Without rounds: for how long a statistic must not move before it is the answer."""
    pace: float = 0.01
    """Without rounds: between this agent's own messages."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = real_number(getattr(self, name), f"the deadline {name}", LiveError, above=0)
            msgspec.structs.force_setattr(self, name, value)
        if self.least > self.longest:
            raise LiveError(f"the least deadline ({self.least:g} s) is longer than the longest ({self.longest:g} s)")
        if self.still < 4 * self.pace:
            raise LiveError(
                f"nothing stands still for {self.still:g} s while agents send every {self.pace:g} s: give still at "
                "least four times the pace"
            )
        if self.item < self.view:
            raise LiveError(
                f"the deadline of an item ({self.item:g} s) is shorter than that of a view ({self.view:g} s)"
            )

    @property
    def patience(self) -> float:
        """For a neighbour that answers, but waits itself."""
        return self.longest + self.view


@dataclass
class Budget:
    """So much a second, and `burst` at once."""

    rate: float
    burst: float
    left: float = field(init=False)
    at: float = 0.0
    excess: float = 0.0
    """What was wanted beyond it lately, halved every second."""

    def __post_init__(self) -> None:
        self.left = self.burst

    def take(self, wanted: float, now: float) -> float:
        """As much of it as there is."""
        passed, self.at = max(now - self.at, 0.0), max(now, self.at)
        self.left = min(self.burst, self.left + self.rate * passed)
        granted = min(wanted, self.left)
        self.left -= granted
        self.excess = self.excess * 0.5**passed + wanted - granted
        return granted


@dataclass
class Neighbour:
    """A neighbour, as seen from this agent."""

    peer: Peer
    place: int | None
    """Its place among the senders; None if it is not heard."""
    hears: bool
    deadlines: Deadlines
    bound: float
    """No score of its own is larger."""
    handles: Handles
    questions: Budget
    """Frames that are no messages: questions, answers, announcements."""
    from_zero: Budget
    """Items it begins that get no view here."""
    heads: tuple[bytes, ...] = ()
    """How its frames with one number, or those of two rounds, begin, if there are such."""
    state: State = State.AWAY
    reason: str = ""
    """Why it is not up, or what was wrong with its last rejected frame."""
    revoked: str = ""
    """That the network's authority revoked it: nobody waits for it, and no other reason counts."""
    response: float | None = None
    """Usual time from our own message to its message, in seconds; None before the first."""
    answer: float | None = None
    """Usual time from a question to its answer; None before the first."""
    spread: float = 0.0
    question_at: float | None = None
    """When the last question was sent, until it is answered."""
    window: int = _FIRST
    """How many messages to ask for at once: few, until answers show that they were lost and not only late."""
    asked_at: float | None = None
    """When the first unanswered question was sent."""
    message_at: float = -1e300
    """When its last message arrived."""
    promised: float = -1e300
    """Until when it said its messages may take."""
    expected: float = -math.inf
    """Until when it is waited for, after it said that it goes for a moment."""
    late_at: float = -1e300
    pinged_at: float = -1e300
    until: float = 0.0
    """When a neighbour over its budget is heard again."""
    strikes: int = 0
    """How often it was left out although it is connected, one less for every hundred messages and every ten minutes."""
    struck_at: float = 0.0
    rejected: int = 0
    over_budget: int = 0
    _messages: int = 0

    @property
    def is_left_out(self) -> bool:
        """Whether rounds do not wait for it."""
        return self.state is not State.UP

    @property
    def is_present(self) -> bool:
        """Whether it is connected."""
        return self.state not in (State.AWAY, State.REFUSED)

    def become(self, state: State, reason: str = "") -> None:
        """A transition of the state."""
        if state not in _TRANSITIONS[self.state]:
            raise TransitionError(f"{self.peer.name} cannot become {state} from {self.state}")
        self.state, self.reason, self.asked_at = state, reason, None

    @property
    def is_expected(self) -> bool:
        """Whether it said that it goes for a moment, and is not back."""
        return self.expected > -math.inf

    def going(self, now: float) -> None:
        """It goes for a moment: what it owes is waited for, less long than others wait for those who wait for it."""
        self.promised = self.expected = now + min(1.5 * self.deadlines.patience, self.deadlines.item / 2)
        self.asked_at = None

    def connected(self) -> None:
        """Its token is there, perhaps that of a new process."""
        self.promised, self.expected, self.question_at = -1e300, -math.inf, None
        self.reason = ""
        if self.state is State.SILENT or not self.is_present:
            self.become(State.UP)

    def disconnected(self) -> None:
        """Its token is gone."""
        self.expected = -math.inf
        if self.state is not State.AWAY:
            self.become(State.AWAY, "has left the network")

    def heard(self) -> bool:
        """Any frame of it arrived; whether it comes back by that."""
        self.asked_at = None
        if self.state is State.SILENT:  # one that is not connected comes back by its token: old frames may be under way
            self.become(State.UP)
            return True
        return False

    def sent_message(self, now: float) -> bool:
        """A message of it arrived that was waited for; whether it comes back by that."""
        self.message_at = now
        self._messages += 1
        if self._messages >= 100:
            self._messages, self.strikes = 0, max(self.strikes - 1, 0)
        if self.state is State.MUTE:
            self.become(State.UP)
            return True
        return False

    def leave_out(self, state: State, reason: str, now: float) -> None:
        """Rounds go on without it."""
        self.strike(now)
        self.become(state, reason)
        if state is State.OVER_BUDGET:
            self.until = now + _PENALTY * 2 ** (self.strikes - 1)

    def strike(self, now: float) -> None:
        """Its messages did not come although it is connected."""
        self.strikes, self.struck_at = min(self._strikes_left(now) + 1, _MOST_STRIKES), now

    def _strikes_left(self, now: float) -> int:
        return max(self.strikes - int(max(now - self.struck_at, 0.0) / _FORGET), 0)

    def responded(self, seconds: float) -> None:
        """Its message arrived so long after our own."""
        self.response = seconds if self.response is None else self.response + (seconds - self.response) / 8

    def answered(self, now: float, was_lost: bool = False) -> None:
        """It answered a question: mean and mean deviation of the time that takes, as TCP keeps them."""
        self.window = min(_GROWTH * self.window, _MOST) if was_lost else _FIRST
        if self.question_at is None:
            return
        seconds, self.question_at = max(now - self.question_at, 0.0), None
        if self.answer is None:
            self.answer, self.spread = seconds, seconds / 2
        else:
            self.spread += (abs(seconds - self.answer) - self.spread) / 4
            self.answer += (seconds - self.answer) / 8

    @property
    def deadline(self) -> float:
        """How long after our own message its message is overdue.

        As long as an answer takes: a message that takes longer is lost, or its sender waits itself and will say so.
        """
        usual = self.deadlines.longest / _AT_FIRST if self.answer is None else self.answer + 4 * self.spread
        return min(max(usual, self.deadlines.least), self.deadlines.longest)

    def has_gone_silent(self, now: float) -> bool:
        """Whether several questions brought no frame at all."""
        if self.asked_at is None:
            return False
        deadline, longest = self.deadline, self.deadlines.longest
        if self.answer is None:  # it may be about to begin
            return now - self.asked_at > max(longest - deadline, longest / 2)
        # Well before others count as lost the messages of those that wait for it.
        return now - self.asked_at > min(_ASKED * deadline, longest / 2)

    def patient_until(self, since: float) -> float:
        """How long to wait for its message on an item that waits `since`, as long as it answers.

        It may wait itself and say for how long; but no longer than twice what an honest wait takes, and the less the
        more often it was left out before.
        """
        patience = max(self.deadlines.patience * 0.5 ** self._strikes_left(since), self.deadlines.least)
        begun = max(since, self.message_at)
        return min(max(begun + patience, self.promised), begun + 2 * patience)

    def shown(self, now: float) -> str:
        """Its state for people: `going` if it said so, `late` if a round lately went on without its message."""
        if self.is_expected and self.state is State.UP:
            return "going"
        if self.state is State.UP and now - self.late_at < 10 * self.deadlines.longest:
            return "late"
        return str(self.state)
