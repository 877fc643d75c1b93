"""What a schedule promises: a place for everybody in every round, and that everybody is heard in the end."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from collegium._util.seat import Seat
from collegium.checks import base
from collegium.checks.base import Check, expect, listed
from collegium.protocol import Rule
from collegium.schedule.base import Schedule
from collegium.topology import Graph


def check_schedule(schedule: Schedule, rounds: int = 200) -> list[str]:
    """Check that a schedule keeps the promises `collaborate` relies on; returns what held and what was skipped.

    rounds: how many are looked at; over these, everybody must be heard by everybody, directly or through others.

    >>> from collegium import schedule, topology
    >>> check_schedule(schedule.pairwise(topology.ring(5)))[2]
    'weights are positive and sum to one'
    """
    return base.run(f"{schedule!r:.80}", schedule_checks(schedule, rounds))


@listed
def schedule_checks(schedule: Schedule, rounds: int = 200) -> Iterator[Check]:
    """The checks of `check_schedule`, one by one."""
    if not isinstance(schedule, Schedule):
        yield from base.one_failure("is a Schedule", f"{type(schedule).__name__} lacks one of size, rule and at(t)")
        return
    for name, function in (
        ("its rule is a Rule, or None", _rule),
        ("seats are well formed", _seats),
        ("weights are positive and sum to one", _weights),
        ("who hears is who is heard", _receivers),
        ("everybody is heard by everybody in the end", _connected),
        ("the same when asked twice", _repeats),
    ):
        yield Check(name, partial(function, schedule, rounds))
    yield from base.kept_checks(schedule, "schedule")


def _rule(schedule: Schedule, rounds: int) -> None:
    rule = schedule.rule
    expect(rule is None or isinstance(rule, Rule), f"rule must be a Rule it was made for, or None; got {rule!r:.80}")


def _seats(schedule: Schedule, rounds: int) -> None:
    K = schedule.size
    expect(isinstance(K, int) and K >= 1, f"size must be the number of agents, got {K!r}")
    for t in range(1, rounds + 1):
        seats = schedule.at(t)
        agents = [seat.agent for seat in seats]
        expect(agents == list(range(K)), f"round {t} must have a seat for each of {K} agents, in order; got {agents}")
        for seat in seats:
            where = f"round {t}, agent {seat.agent}"
            expect(_ascending(seat.senders, K), f"{where}: senders must be agents, ascending; got {seat.senders}")
            expect(_ascending(seat.receivers, K), f"{where}: receivers must be agents, ascending; got {seat.receivers}")
            own = next((place for place, l in enumerate(seat.senders) if l == seat.agent), None)
            expect(seat.own == own, f"{where}: own must be its place among its senders, {own}; got {seat.own}")


def _ascending(agents: NDArray[np.int32], K: int) -> bool:
    return (
        isinstance(agents, np.ndarray)
        and agents.ndim == 1
        and agents.dtype.kind in "iu"
        and bool((np.diff(agents) > 0).all())
        and bool(((agents >= 0) & (agents < K)).all())
    )


def _weights(schedule: Schedule, rounds: int) -> None:
    for seat, t in _every(schedule, rounds):
        where, weights = f"round {t}, agent {seat.agent}", np.asarray(seat.weights)
        expect(
            weights.dtype == np.float64 and weights.shape == np.shape(seat.senders),
            f"{where}: weights must be float64, one for each sender; got {weights!r:.80}",
        )
        total = float(weights.sum())
        expect(bool((weights > 0).all()), f"{where}: weights must be positive, got {weights}; leave out who has none")
        expect(abs(total - 1) <= 1e-9, f"{where}: weights must sum to one, they sum to {total:.12g}")


def _receivers(schedule: Schedule, rounds: int) -> None:
    for t in range(1, rounds + 1):
        seats = schedule.at(t)
        links = [(int(l), seat.agent) for seat in seats for l in seat.senders if l != seat.agent]
        told = [(seat.agent, int(j)) for seat in seats for j in seat.receivers]
        for sender, receiver in sorted({*links} ^ {*told})[:1]:
            expect(
                False,
                f"round {t}: agent {receiver} {'hears' if (sender, receiver) in links else 'does not hear'} agent "
                f"{sender}, whose receivers disagree",
            )


def _connected(schedule: Schedule, rounds: int) -> None:
    links = {(int(l), seat.agent) for seat, _ in _every(schedule, rounds) for l in seat.senders}
    sources, targets = np.array(sorted(links), np.int64).reshape(-1, 2).T
    pair = Graph.from_links(schedule.size, sources, targets).unreachable_pair()
    if pair is not None:
        expect(
            False,
            f"nothing agent {pair[0]} sends reaches agent {pair[1]} in {rounds} rounds; if it needs more, pass rounds=",
        )


def _repeats(schedule: Schedule, rounds: int) -> None:
    first = [[_plain(seat) for seat in schedule.at(t)] for t in range(1, rounds + 1)]
    for t in range(rounds, 0, -1):  # in another order, so that nothing can be counted along
        expect([_plain(seat) for seat in schedule.at(t)] == first[t - 1], f"round {t} is another when asked again")


def _plain(seat: Seat) -> tuple[object, ...]:
    return tuple(part.tolist() if isinstance(part, np.ndarray) else part for part in seat)


def _every(schedule: Schedule, rounds: int) -> Iterator[tuple[Seat, int]]:
    for t in range(1, rounds + 1):
        for seat in schedule.at(t):
            yield seat, t
