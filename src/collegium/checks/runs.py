"""Small runs that checks try a rule on, and how two of them are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium import topology
from collegium._util.randomness import Draws
from collegium._util.seat import Seat
from collegium.checks.base import expect
from collegium.errors import CheckError
from collegium.kernels.job import Job, Recorded
from collegium.links import Links, Perfect
from collegium.network import reference_run, validated
from collegium.policy import Policy, metropolis, uniform
from collegium.protocol import HoldLast, Mailbox, Rule
from collegium.protocol.base import Floats, Inbox, Outbox, Wrapped
from collegium.protocol.codec import Codec
from collegium.schedule import alternating, pairwise
from collegium.schedule.base import Schedule

ROUNDS = 12
_ITEMS = 7
_SEED = 5


def networks(given: Schedule | None = None) -> list[Schedule]:
    """Networks of different shapes, or the one that is given; and an agent alone, where that is one."""
    alone = uniform(topology.ring(1))
    if given is not None:
        return [given, alone] if isinstance(given, Policy) else [given]
    return [
        uniform(topology.erdos_renyi(5, links=11, seed=3)),
        metropolis(topology.grid(2, 3)),
        metropolis(topology.star(5)),
        Policy([[0.0, 0.5, 0.3], [1.0, 0.0, 0.7], [0.0, 0.5, 0.0]]),  # nobody listens to itself
        alone,
    ]


def changing_networks() -> list[Schedule]:
    """Networks that change from round to round."""
    one, other = np.eye(4), np.eye(4)
    one[:2, :2] = other[1:, 1:] = 0.5
    other[1:, 1:] = 1 / 3
    ring = np.roll(np.eye(4), 1, axis=0)  # everybody hears another one, and not itself
    return [alternating([one, other, ring]), pairwise(topology.grid(2, 3), seed=1)]


def job(
    rule: Rule,
    schedule: Schedule,
    *,
    rounds: int = ROUNDS,
    d: int = 1,
    mailbox: Mailbox = HoldLast(),
    links: Links = Perfect(),
) -> Job:
    """A run with scores of both signs, with ties and repetitions, small enough for the rule's range.

    Rounds are fewer where a rule's messages outgrow its range.
    """
    while rounds > 1 and rule.max_score(rounds) <= 0:
        rounds -= 1
    bound = min(1.0, rule.max_score(rounds))
    expect(bound > 0, f"max_score is 0: it takes no score at all, not even for {rounds} rounds")
    shape = (_ITEMS, schedule.size) if d == 1 else (_ITEMS, schedule.size, d)
    grid = np.round(64 * np.sin(np.arange(np.prod(shape)))).reshape(shape) / 64
    grid[1], grid[2] = 0.0, np.round(grid[2])
    if d > 1:
        grid = (d * grid - grid.sum(axis=2, keepdims=True)) / (2 * d)
    # No rule is named: a robust one refuses networks this small, and its arithmetic must hold there all the same.
    return validated(bound * grid, schedule, rounds, [], _SEED, mailbox=mailbox, links=links)


def some_rows(job: Job, rows: Any) -> Job:
    """The run of some of the items."""
    return job._replace(scores=np.ascontiguousarray(job.scores[rows]), ids=job.ids[rows])


def same(one: Recorded, other: Recorded, complaint: str, items: Any = slice(None)) -> None:
    """Raise unless some items of one run are the other run, number for number."""
    numbers, costs = one.statistics[:, items], one.costs[:, items]
    expect(
        numbers.shape == other.statistics.shape,
        f"{complaint}: statistics have shapes {numbers.shape} and {other.statistics.shape}",
    )
    differ = np.argwhere(numbers != other.statistics)
    if len(differ):
        t, i, k, j = place = tuple(differ[0])
        raise CheckError(
            f"{complaint}: round {t}, item {i}, agent {k}{f', entry {j}' if numbers.shape[3] > 1 else ''} has "
            f"{float(numbers[place])!r} and {float(other.statistics[place])!r}"
        )
    if not np.array_equal(costs, other.costs):
        t, i = np.argwhere(costs != other.costs)[0]
        raise CheckError(f"{complaint}: item {i} costs {costs[t, i]} and {other.costs[t, i]} messages in round {t + 1}")


def any_split(rule: Rule, job: Job, where: str) -> None:
    """Raise unless items are treated the same in any order and in any batch, and statistics are finite."""
    whole = reference_run(job, rule)
    expect(bool(np.isfinite(whole.statistics).all()), f"statistics are not finite {where}")
    n = len(job.scores)
    mixed = np.r_[1:n:2, 0:n:2]
    complaint = f"an item's numbers depend on {{}} {where}: draw only from `draws`, keep nothing, and sum over no items"
    for rows, how in ((np.arange(n)[::-1], "its place in the batch"), (mixed, "its place in the batch"),
                      (np.arange(3), "the rest of the batch"), (np.arange(3, n), "the rest of the batch"),
                      (np.arange(0), "the batch")):  # fmt: skip
        same(whole, reference_run(some_rows(job, rows), rule), complaint.format(how), rows)


class Emitted(NamedTuple):
    """What an agent sent in a round."""

    seat: Seat
    round: int
    outbox: Outbox


class Spy(Wrapped):
    """A rule as it is, with notes of its states and of what it sends."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.states: list[tuple[str, Any]] = []
        self.emitted: list[Emitted] = []
        self.codes: list[NDArray[Any]] = []
        self.changed: list[str] = []
        """Which of the arrays it was given it wrote into."""

    def init(self, seat: Seat, scores: Floats) -> Any:
        before = scores.copy()
        state = self.rule.init(seat, scores)
        if not np.array_equal(scores, before):
            self.changed.append("scores")
        return self._note(f"init of agent {seat.agent}", state)

    def emit(self, seat: Seat, state: Any, draws: Draws) -> tuple[Outbox, Any]:
        outbox, state = self.rule.emit(seat, state, draws)
        self.emitted.append(Emitted(seat, draws.round, outbox))
        return outbox, self._note(f"emit of agent {seat.agent} in round {draws.round}", state)

    def absorb(self, seat: Seat, state: Any, inbox: Inbox) -> Any:
        before = Inbox(*(part.copy() for part in inbox))  # type: ignore[arg-type]
        state = self.rule.absorb(seat, state, inbox)
        self.changed += [
            name for name in Inbox._fields if not np.array_equal(getattr(before, name), getattr(inbox, name))
        ]
        return self._note(f"absorb of agent {seat.agent}", state)

    @property
    def codec(self) -> Codec:
        return _SpyCodec(self.rule.codec, self.codes)

    def prepared(self, schedule: Any, rounds: int, rounded: bool = False) -> Rule[Any]:
        self.rule = self.rule.prepared(schedule, rounds, rounded)
        return self

    def _note(self, after: str, state: Any) -> Any:
        self.states.append((after, state))
        return state

    def __str__(self) -> str:
        return str(self.rule)


class _SpyCodec(Codec):
    def __init__(self, codec: Codec, codes: list[NDArray[Any]]) -> None:
        self._codec, self._codes = codec, codes

    @property
    def message_bits(self) -> int:
        return self._codec.message_bits

    def encode(self, values: Floats, draws: Draws) -> NDArray[Any]:
        codes = self._codec.encode(values, draws)
        self._codes.append(codes)
        return codes

    def decode(self, codes: NDArray[Any]) -> Floats:
        return self._codec.decode(codes)

    def max_score(self, growth: float, rounding: float | None = None) -> float:
        return self._codec.max_score(growth) if rounding is None else self._codec.max_score(growth, rounding)

    def __str__(self) -> str:
        return str(self._codec)


def watched(rule: Rule, schedules: Sequence[Schedule], d: int = 1) -> Spy:
    """A rule's notes of runs over these networks."""
    spy = Spy(rule)
    for schedule in schedules:
        spy.rule = rule  # as it was before the last network
        reference_run(job(rule, schedule, d=d), spy)
    return spy
