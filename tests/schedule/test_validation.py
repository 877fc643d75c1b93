"""A schedule of one's own is looked at before any engine relies on it."""

from dataclasses import dataclass

import numpy as np
import pytest

from collegium import collaborate, policy, topology
from collegium.errors import PolicyError, RuleError
from collegium.protocol import DeGroot, Mailbox, Seat
from collegium.schedule.weights import Weights
from helpers import scores

RING = policy.uniform(topology.ring(3))


@dataclass(frozen=True)
class Changed:
    """A ring of three in which agent 1's seat is not what it should be."""

    change: dict
    size: int = 3
    rule: None = None

    def at(self, t):
        return tuple(seat._replace(**self.change) if seat.agent == 1 else seat for seat in RING.at(t))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"senders": np.array([0, 1, 1000], np.int32)}, "senders must be numbers 0 to 2, ascending"),
        ({"senders": np.array([-1, 1, 2], np.int32)}, "senders must be numbers 0 to 2"),
        ({"senders": np.array([1, 0, 2], np.int32)}, "ascending"),
        ({"senders": [0, 1, 2]}, "senders must be"),
        ({"weights": np.array([3.0, 3.0, 3.0])}, "weights must sum to 1, not 9"),
        ({"weights": np.array([np.nan, 0.5, 0.5])}, "one finite float64 per sender"),
        ({"weights": np.array([0.5, 0.5])}, "one finite float64 per sender"),
        ({"own": None}, "own must be its place among senders"),
        ({"receivers": np.array([0], np.int32)}, "do not agree whether 2 hears 1"),
        ({"agent": 2}, "place 1 has agent 2"),
    ],
)
def test_a_round_that_is_none_is_refused(change, complaint):
    assert collaborate(scores(2, 3), Changed({}), 3).statistics.shape == (4, 2, 3)
    with pytest.raises(PolicyError, match=complaint):
        collaborate(scores(2, 3), Changed(change), 3)


@dataclass(frozen=True)
class Listens:
    """Everybody hears agent 0 and itself, and for some rounds nothing else; later the ring."""

    quiet: int
    size: int = 3
    rule: None = None

    def at(self, t):
        A = np.array([[1.0, 0.5, 0.5], [0, 0.5, 0], [0, 0, 0.5]])
        return Weights(A).seats() if t <= self.quiet else RING.at(t)


def test_rounds_that_never_connect_everybody_are_refused():
    with pytest.raises(PolicyError, match="nothing agent 1 sends ever reaches agent 0"):
        collaborate(scores(2, 3), Listens(10**6), 4)
    assert collaborate(scores(2, 3), Listens(6), 4).rounds == 4  # later rounds would


class Idle(policy.Policy):
    def at(self, t):
        return Weights(np.eye(3)).seats()


def test_a_policy_that_was_changed_runs_as_it_is_and_is_given_no_proof(monkeypatch):
    x, idle = scores(4, 3), Idle(RING.A)
    with pytest.raises(PolicyError, match="nothing agent"):
        collaborate(x, idle, 3)
    monkeypatch.setattr(Idle, "at", lambda self, t: policy.Policy(np.full((3, 3), 1 / 3)).at(t))
    assert collaborate(x, Idle(policy.uniform(topology.path(3)).A), 3).statistics[-1].std(axis=1).max() < 1e-15
    with pytest.raises(RuleError, match="known for a Policy and a built-in mailbox, not for Idle"):
        collaborate(x, Idle(RING.A), 3).settled()


class Negating(Mailbox):
    def read(self, inbox, known):
        return inbox._replace(values=-inbox.values)


def test_a_mailbox_of_ones_own_is_given_no_proof():
    run = collaborate(scores(4, 3), RING, 3, DeGroot(), mailbox=Negating())
    for known in (run.settled, run.limit):
        with pytest.raises(RuleError, match="built-in mailbox"):
            known()


def test_seats_are_what_a_policy_gives():
    assert all(isinstance(seat, Seat) for seat in RING.at(1))
