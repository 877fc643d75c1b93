"""The checks must find what they are for: each broken part fails with a sentence that names the fault."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from collegium import check_policy, check_rule
from collegium.errors import CheckError
from collegium.kernels import averaging
from collegium.protocol import DeGroot, Outbox, Rule
from helpers import POLICIES, Stubborn


@dataclass
class NotFrozen(Rule):
    init = emit = absorb = statistic = DeGroot.init


@dataclass(frozen=True)
class Mute(Stubborn):
    share: float = 0.5

    def emit(self, seat, state, draws):
        return Outbox(state[0], np.zeros(len(state[0]), bool)), state


@dataclass(frozen=True)
class Forgetful(Stubborn):
    share: float = 0.5
    seen: list = field(default_factory=list, hash=False)

    def init(self, seat, scores):
        self.seen.append(seat)
        return (scores + len(self.seen),)


@dataclass(frozen=True)
class Positional(Stubborn):
    share: float = 0.5

    def init(self, seat, scores):
        return (scores + np.arange(len(scores))[:, None],)


@dataclass(frozen=True)
class Crashing(Stubborn):
    share: float = 0.5

    def absorb(self, seat, state, inbox):
        return state.missing


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        (NotFrozen(), "must be a frozen dataclass"),
        (Mute(), "everybody must send in round 1"),
        (Forgetful(), "run twice|after pickling"),
        (Positional(), "another place of the batch|run twice"),
        (Crashing(), "first round speaks.*AttributeError"),
        (Stubborn, "is not a Rule"),
        ("degroot", "is not a Rule"),
    ],
)
def test_check_rule_names_the_fault(rule, complaint):
    with pytest.raises(CheckError, match=complaint):
        check_rule(rule)


def test_check_rule_sees_a_kernel_off_by_one_bit(monkeypatch):
    original = averaging.run

    def off(job, rule):
        recorded = original(job, rule)
        recorded.statistics[-1, -1, -1] += np.spacing(recorded.statistics[-1, -1, -1])
        return recorded

    monkeypatch.setattr(averaging, "run", off)
    with pytest.raises(CheckError, match="differs from the agents' view"):
        check_rule(DeGroot())


@pytest.mark.parametrize("name", POLICIES)
def test_good_parts_pass(name):
    assert len(check_policy(POLICIES[name])) == 4
    assert check_rule(DeGroot(), POLICIES[name])[-1] == "array path equals agent view"


def test_check_policy_names_the_fault():
    with pytest.raises(CheckError, match=r"wrap your matrix as Policy\(A\)"):
        check_policy(np.eye(2))

    broken = POLICIES["ring"].__class__(POLICIES["ring"].A)
    broken.__dict__["perron"] = np.full(12, 1 / 12) * np.linspace(0.9, 1.1, 12)
    with pytest.raises(CheckError, match="does not keep its Perron vector fixed"):
        check_policy(broken)


def test_check_policy_sees_rounds_that_do_not_converge():
    slow = POLICIES["ring"].__class__(POLICIES["ring"].A)
    slow.__dict__["slem"] = 0.01  # a policy that mixes far more slowly than it says
    with pytest.raises(CheckError, match="do not lead to the Perron-weighted average"):
        check_policy(slow)
