"""`check_schedule`: the package's own schedules pass, and each broken one is named."""

from dataclasses import dataclass

import numpy as np
import pytest

from collegium import check_schedule, policy, schedule, topology
from collegium.checks import schedule_checks
from helpers import POLICIES

RING = policy.uniform(topology.ring(4))


@dataclass(frozen=True)
class Turned:
    """A ring whose every seat is changed."""

    change: object = lambda seat, t: seat
    rule: object = None
    size: int = 4

    def at(self, t):
        return [self.change(seat, t) for seat in RING.at(t)]


COUNTED = []


def counts(seat, t):
    """Another seat each time it is asked for."""
    COUNTED.append(t)
    return seat._replace(weights=np.roll([0.5, 0.25, 0.25], len(COUNTED)))


def alone(seat, t):
    return seat._replace(
        senders=np.array([seat.agent], np.int32), own=0, weights=np.ones(1), receivers=np.array([], int)
    )


SEATS, WEIGHTS = "seats are well formed", "weights are positive and sum to one"


@pytest.mark.parametrize(
    "made",
    [
        *POLICIES.values(),
        schedule.pairwise(topology.grid(2, 3), seed=3),
        schedule.alternating([RING, np.roll(np.eye(4), 1, axis=0)]),
    ],
    ids=repr,
)
def test_sound_schedules_pass(made):
    assert check_schedule(made)[-1] == "saved and loaded"
    assert len(check_schedule(made)) == 8


@pytest.mark.parametrize(
    ("made", "name", "complaint"),
    [
        (Turned(rule="degroot"), "its rule is a Rule, or None", "got 'degroot'"),
        (Turned(size=5), SEATS, "a seat for each of 5 agents"),
        (Turned(lambda seat, t: seat._replace(agent=0)), SEATS, "in order; got [0, 0, 0, 0]"),
        (Turned(lambda seat, t: seat._replace(senders=seat.senders[::-1])), SEATS, "senders must be agents, ascending"),
        (Turned(lambda seat, t: seat._replace(senders=seat.senders + 2)), SEATS, "senders must be agents, ascending"),
        (Turned(lambda seat, t: seat._replace(receivers=seat.receivers[::-1])), SEATS, "receivers must be agents"),
        (
            Turned(lambda seat, t: seat._replace(own=None)),
            SEATS,
            "own must be its place among its senders, 0; got None",
        ),
        (
            Turned(lambda seat, t: seat._replace(weights=seat.weights * t)),
            WEIGHTS,
            "round 2, agent 0: weights must sum",
        ),
        (Turned(lambda seat, t: seat._replace(weights=seat.weights[:2])), WEIGHTS, "one for each sender"),
        (Turned(lambda seat, t: seat._replace(weights=np.array([1.5, -0.25, -0.25]))), WEIGHTS, "must be positive"),
        (
            Turned(lambda seat, t: seat._replace(receivers=seat.receivers[:1])),
            "who hears is who is heard",
            "agent 3 hears agent 0, whose receivers disagree",
        ),
        (Turned(alone), "everybody is heard by everybody in the end", "nothing agent 0 sends reaches agent 1"),
        (Turned(counts), "the same when asked twice", "is another when asked again"),
        (np.eye(3), "is a Schedule", "ndarray lacks one of size, rule and at(t)"),
    ],
)
def test_each_fault_is_named(broken, made, name, complaint):
    assert complaint in broken(schedule_checks(made))[name]


def test_a_schedule_may_need_more_rounds(broken):
    slow = schedule.pairwise(topology.ring(30))
    assert "if it needs more, pass rounds=" in broken(schedule_checks(slow, 10)).popitem()[1]
    assert not broken(schedule_checks(slow, 400))
