"""`Liars`: who lies in a run, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.labels import to_places, to_signs
from collegium._util.randomness import Draws
from collegium._util.seat import Seat
from collegium.errors import RuleError
from collegium.protocol.base import Floats, Inbox, Outbox, Rule, Wrapped
from collegium.protocol.codec import Codec
from collegium.trust.attacks.at_start import AtStart
from collegium.trust.attacks.base import Attack, Sight, away_from
from collegium.trust.signed_flood import Keys, SignedFlood


@dataclass(frozen=True, eq=False)
class Liars:
    """Agents that lie in a simulated run: `collaborate(…, liars=Liars([3, 7], attacks.Stubborn(2.0)))`.

    They know the rule, the network and what all honest agents send in the very round, and act together.

    agents: who lies; attack: how, see `collegium.trust.attacks`; labels, classes: the true
    ones, if the liars know them, as `Run.errors` takes them. Liars that do not know a label push away from what their
    own score says.
    """

    agents: Sequence[int] | NDArray[Any]
    attack: Attack
    labels: ArrayLike | None = None
    classes: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        chosen = np.asarray(self.agents)
        if (
            chosen.ndim != 1
            or (chosen.size and chosen.dtype.kind not in "iu")
            or len(set(chosen.tolist())) < chosen.size
        ):
            raise RuleError(f"liars are a list of different agent numbers; got {self.agents!r:.60}")
        if not isinstance(self.attack, Attack):
            raise RuleError(f"an attack must be one of collegium.trust.attacks, got {self.attack!r:.60}")
        object.__setattr__(self, "agents", np.sort(chosen.astype(np.int64)))

    def validate(self, n: int, K: int, d: int) -> None:
        """Raise unless these liars fit n items of K agents and d numbers."""
        chosen = np.asarray(self.agents)
        unknown = chosen[(chosen < 0) | (chosen >= K)]
        if len(unknown):
            raise RuleError(f"agent {unknown[0]} cannot lie: agents are 0 to {K - 1}")
        if len(chosen) == K:
            raise RuleError(f"all {K} agents lie: at least one honest agent is needed")
        self.attack.validate(K)
        if self.labels is not None:
            _labels(self.labels, n, d, self.classes)

    def start(self, scores: Floats, seed: int) -> Floats:
        """Scores (n, K, d) as the liars pretend them to be."""
        chosen = np.asarray(self.agents)
        return self.attack.start(scores, chosen, seed) if len(chosen) and len(scores) else scores

    def lies(
        self, seats: Sequence[Seat], outboxes: list[Outbox], scores: Floats, rule: Rule, draws: Sequence[Draws]
    ) -> list[Outbox]:
        """What is sent in a round: the honest outboxes as they are, those of liars as the attack has them."""
        chosen = np.asarray(self.agents)
        others = np.setdiff1d(np.arange(len(seats)), chosen)
        known = np.stack([_own(rule, k, outboxes[k]) for k in others.tolist()])
        said = list(outboxes)
        for k in chosen.tolist():
            message = _own(rule, k, outboxes[k])
            aim = _aim(scores[:, k], self.labels, message.shape[1], self.classes)
            sight = Sight(seats[k], draws[k].round, message, known, others, aim)
            said[k] = _told(rule, outboxes[k], message, self.attack.lie(sight), draws[k])
        return said


class Lying(NamedTuple):
    """A rogue agent's state."""

    inner: Any
    scores: Floats
    heard: Floats
    """What its neighbours sent in the round before, items first: (n, m, w)."""


@dataclass(frozen=True)
class Rogue(Wrapped):
    """A rule as a liar runs it, by what it hears alone: for tests with a real rogue agent among honest ones.

    It does everything the rule does, so that its frames are right and signed, and sends what the attack says.
    """

    rule: Rule
    attack: Attack

    def __post_init__(self) -> None:
        if isinstance(self.attack, AtStart) and self.attack.needs_items:
            raise RuleError(f"a rogue agent sees one item at a time: give {self.attack} a unit")

    def with_keys(self, keys: Keys) -> Rogue:
        """The rule as an agent with keys of its own runs it."""
        return replace(self, rule=self.rule.with_keys(keys)) if isinstance(self.rule, SignedFlood) else self

    def init(self, seat: Seat, scores: Floats) -> Lying:
        false = self.attack.start(scores[:, None], np.zeros(1, np.int64), seat.agent)[:, 0]
        heard = np.zeros((len(scores), len(seat.senders), self.width(scores.shape[1])))
        return Lying(self.rule.init(seat, false), scores, heard)

    def emit(self, seat: Seat, state: Lying, draws: Draws) -> tuple[Outbox, Lying]:
        outbox, inner = self.rule.emit(seat, state.inner, draws)
        message = _own(self.rule, seat.agent, outbox)
        others = [place for place, l in enumerate(seat.senders.tolist()) if l != seat.agent] if draws.round > 1 else []
        heard = np.moveaxis(state.heard, 1, 0)
        known = np.stack([_own(self.rule, int(seat.senders[l]), Outbox(heard[l])) for l in others] or [message])
        sight = Sight(
            seat, draws.round, message, known[: len(others)], seat.senders[others].astype(np.int64),
            _aim(state.scores, None, message.shape[1]),
        )  # fmt: skip
        return _told(self.rule, outbox, message, self.attack.lie(sight), draws), state._replace(inner=inner)

    def absorb(self, seat: Seat, state: Lying, inbox: Inbox) -> Lying:
        return state._replace(
            inner=self.rule.absorb(seat, state.inner, inbox), heard=np.moveaxis(inbox.values, 0, 1).copy()
        )

    def statistic(self, state: Lying) -> Floats:
        return self.rule.statistic(state.inner)


def _one(outbox: Outbox) -> Floats:
    """One message of an outbox: the mean of those that differ by receiver."""
    return outbox.values if outbox.values.ndim == 2 else np.asarray(outbox.values.mean(axis=1))


def _aim(scores: Floats, labels: ArrayLike | None, width: int, classes: Sequence[Any] | None = None) -> Floats:
    n, d = scores.shape
    if labels is None:
        known = np.where(scores[:, 0] < 0, -1, 1) if d == 1 else scores.argmax(axis=1)
    else:
        known = _labels(labels, n, d, classes)
    aim = away_from(known, d)[:, :width]
    return aim if aim.shape[1] == width else np.pad(aim, ((0, 0), (0, width - aim.shape[1])))


def _labels(labels: ArrayLike, n: int, d: int, classes: Sequence[Any] | None) -> NDArray[Any]:
    return to_signs(labels, n, classes) if d == 1 else to_places(labels, n, d, classes)


def _own(rule: Rule, agent: int, outbox: Outbox) -> Floats:
    """What an agent says for itself, shape (n, w): its message, or its own statement among those that it hands on."""
    return rule.own_part(agent, _one(outbox)) if isinstance(rule, SignedFlood) else _one(outbox)


def _told(rule: Rule, outbox: Outbox, message: Floats, lie: Outbox, draws: Draws) -> Outbox:
    """A lie as it is sent, rightly signed where the rule signs. message: what the liar knew the rule would send."""
    if lie.values is message:  # it sends what the rule says, or is silent where the rule is not
        both = lie.spoke if outbox.spoke is None or lie.spoke is None else lie.spoke & outbox.spoke
        return outbox if lie.spoke is None else outbox._replace(spoke=both)
    values = _writable(lie.values, rule.codec)
    if rule.hands_on and not isinstance(rule, SignedFlood):
        raise RuleError(
            f"{rule} hands on scores, and messages of another form would be noticed: let liars lie about their own "
            "score, by at-start, or take signed-flood"
        )
    if not isinstance(rule, SignedFlood):
        return lie._replace(values=values)
    return lie._replace(values=rule.restated(draws.agent, outbox.values, values, draws), own=outbox.values)


def _writable(values: Floats, codec: Codec) -> Floats:
    """A lie as far as the codec can write it: what does not fit would be noticed at once."""
    most = codec.max_score(1.0)
    return np.clip(values, -most, most)
