"""`check_rule` must find what it is for: each broken rule is named with the promises it breaks."""

import sys
import threading
from dataclasses import dataclass, field
from typing import NamedTuple
from unittest import SkipTest

import numpy as np
import pytest

from collegium import check_rule, policy, schedule, topology
from collegium.checks import rule, rule_checks
from collegium.errors import CheckError, RuleError
from collegium.kernels import averaging
from collegium.protocol import Averaging, DeGroot, Outbox, Quantised, Rule, SocialLearning, registry
from collegium.protocol.codec import Quantise
from collegium.protocol.combine import WeightedMean
from helpers import POLICIES, Stubborn

EVERYTHING = [
    "is a frozen dataclass",
    "equals itself after pickling",
    "saved and loaded",
    "everybody sends in round 1",
    "messages are finite float64 of the promised width",
    "states are arrays that keep their form",
    "the same numbers when run twice",
    "n items are n times one item",
    "any order and split of items",
    "leaves scores and messages as they were",
    "bits are true on the wire",
    "several classes",
    "lossy and late links",
    "a schedule that changes",
    "array kernel equals the rule",
    "wrapped by a quantising codec",
    "live network equals simulator",
]


@dataclass
class NotFrozen(Rule):
    init = emit = absorb = statistic = DeGroot.init


@dataclass(frozen=True)
class Mute(Stubborn):
    def emit(self, seat, state, draws):
        return Outbox(state[0], np.zeros(len(state[0]), bool)), state


@dataclass(frozen=True)
class Forgetful(Stubborn):
    seen: list = field(default_factory=list, hash=False, compare=False)

    def init(self, seat, scores):
        self.seen.append(seat)
        return (scores + len(self.seen),)


@dataclass(frozen=True)
class Positional(Stubborn):
    def init(self, seat, scores):
        return (scores + np.arange(len(scores))[:, None],)


@dataclass(frozen=True)
class Normalising(Stubborn):
    def init(self, seat, scores):
        return (scores - (scores.mean() if len(scores) else 0),)


@dataclass(frozen=True)
class Crashing(Stubborn):
    def absorb(self, seat, state, inbox):
        return state.missing


@dataclass(frozen=True)
class CrashesLate(Stubborn):
    """Only a neighbour's frame, on a thread of the transport, brings it to its fault."""

    def absorb(self, seat, state, inbox):
        if threading.current_thread().name.endswith("-post"):
            raise KeyError("lost my notes")
        return super().absorb(seat, state, inbox)


@dataclass(frozen=True)
class Overwrites(Stubborn):
    def init(self, seat, scores):
        scores *= 0.5
        return (scores,)


@dataclass(frozen=True)
class WritesIntoInbox(Stubborn):
    def absorb(self, seat, state, inbox):
        inbox.values[:] *= 0.5
        return super().absorb(seat, state, inbox)


@dataclass(frozen=True)
class Whole(Stubborn):
    """Its state begins as whole numbers: a live agent, which keeps it in an array, would cut what follows."""

    def init(self, seat, scores):
        return (np.sign(scores).astype(np.int64),)

    def emit(self, seat, state, draws):
        return Outbox(state[0].astype(np.float64)), state

    def statistic(self, state):
        return state[0].astype(np.float64)


@dataclass(frozen=True)
class ListState(Stubborn):
    def init(self, seat, scores):
        return (scores.tolist(),)

    def emit(self, seat, state, draws):
        return Outbox(np.array(state[0]).reshape(len(draws), -1)), state

    def absorb(self, seat, state, inbox):
        return (WeightedMean()(inbox.values, inbox.weights, inbox.own).tolist(),)

    def statistic(self, state):
        return np.array(state[0]).reshape(len(state[0]), -1)


@dataclass(frozen=True)
class Grows(Stubborn):
    """Its messages grow, and it does not say so."""

    def absorb(self, seat, state, inbox):
        return (2.0 * WeightedMean()(inbox.values, inbox.weights, inbox.own) + state[0],)


@dataclass(frozen=True)
class Breaks(Stubborn):
    """Divides by what came: nothing came, nothing to divide by."""

    def absorb(self, seat, state, inbox):
        with np.errstate(all="ignore"):
            came = (inbox.status == 1).sum(axis=0)[:, None]
            return (state[0] / came * (came / came),)


@dataclass(frozen=True)
class FirstEntry(Stubborn):
    """Sends one number whatever the classes."""

    def emit(self, seat, state, draws):
        return Outbox(state[0][:, :1]), state


@dataclass(frozen=True)
class TwoClasses(FirstEntry):
    def width(self, d):
        if d > 1:
            raise RuleError("PAIR is for two classes")
        return 1


class Halves(NamedTuple):
    x: np.ndarray


@dataclass(frozen=True)
class PerReceiver(Rule):
    """One message for each receiver."""

    def init(self, seat, scores):
        return Halves(scores)

    def emit(self, seat, state, draws):
        return Outbox(np.repeat(state.x[:, None], len(seat.receivers), axis=1), None, state.x), state

    def absorb(self, seat, state, inbox):
        return Halves(WeightedMean()(inbox.values, inbox.weights, inbox.own))

    def statistic(self, state):
        return state.x


@dataclass(frozen=True)
class WrongOwn(PerReceiver):
    def emit(self, seat, state, draws):
        return super().emit(seat, state, draws)[0]._replace(own=0.0), state


def failures(part, *arguments):
    """What every failed check of a rule says, by name."""
    with pytest.raises(CheckError) as refusal:
        check_rule(part, *arguments)
    first, *lines = str(refusal.value).splitlines()
    assert f" fails {len(lines)} of " in first
    return dict(line.strip().split(": ", 1) for line in lines)


@pytest.mark.parametrize(
    ("part", "name", "complaint"),
    [
        (NotFrozen(), "is a frozen dataclass", "must be a frozen dataclass"),
        (Mute(0.5), "everybody sends in round 1", "everybody must send in round 1"),
        (Forgetful(0.5), "the same numbers when run twice", "other numbers when run twice"),
        (Positional(0.5), "any order and split of items", "depend on its place in the batch"),
        (Positional(0.5), "n items are n times one item", "other numbers in a batch than alone"),
        (Normalising(0.5), "any order and split of items", "depend on the rest of the batch"),
        (Crashing(0.5), "everybody sends in round 1", "AttributeError"),
        (CrashesLate(0.5), "live network equals simulator", "failed at agent-.: KeyError: 'lost my notes'"),
        (Overwrites(0.5), "leaves scores and messages as they were", "changes the scores"),
        (WritesIntoInbox(0.5), "leaves scores and messages as they were", "changes the values"),
        (Whole(0.5), "states are arrays that keep their form", r"float64\[7, 1\], after init int64"),
        (Whole(0.5), "live network equals simulator", "simulator and live network differ"),
        (ListState(0.5), "states are arrays that keep their form", "holds list: a state is a tuple of arrays"),
        (Grows(0.5), "wrapped by a quantising codec", "lies outside the quantiser's range"),
        (Breaks(0.5), "lossy and late links", r"must be finite, (got|agent \d has) nan"),
        (FirstEntry(0.5), "several classes", r"shape \(7, 4\).* got \(7, 1\)"),
        (WrongOwn(), "messages are finite float64 of the promised width", "own must be finite float64 of shape"),
        (Stubborn, "is a Rule", "derive it from collegium.protocol.Rule"),
        ("degroot", "is a Rule", "'degroot' is not a Rule"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Rule) else None,
)
def test_each_fault_is_named(part, name, complaint):
    with pytest.raises(CheckError, match=complaint):
        next(check for check in rule_checks(part) if str(check) == name)()


def test_every_fault_is_in_the_one_error():
    assert failures(Mute(0.5)).keys() == {*EVERYTHING} - {
        "is a frozen dataclass", "equals itself after pickling", "saved and loaded", "array kernel equals the rule",
    }  # fmt: skip
    assert failures(Positional(0.5)).keys() == {
        "n items are n times one item", "any order and split of items", "several classes", "lossy and late links",
        "a schedule that changes", "wrapped by a quantising codec", "live network equals simulator",
    }  # fmt: skip


def test_a_sound_rule_passes_everything():
    assert check_rule(DeGroot()) == EVERYTHING
    assert [str(check) for check in rule_checks(DeGroot())] == EVERYTHING


def test_what_cannot_be_tried_is_skipped_openly(monkeypatch):
    said = check_rule(PerReceiver())
    assert "live network equals simulator: skipped, it sends one message per receiver, which live agents do not" in said
    assert "array kernel equals the rule: skipped, there is no kernel for PerReceiver: it runs as it is" in said
    assert any(line.startswith("saved and loaded: skipped, PerReceiver has no name") for line in said)
    assert "several classes: skipped, it is for two classes: PAIR is for two classes" in check_rule(TwoClasses(0.5))
    quantised = check_rule(Quantised(DeGroot(), 4, 2.0))
    assert "wrapped by a quantising codec: skipped, it has a codec of its own, Quantise(bits=4, bound=2.0)" in quantised
    monkeypatch.setattr(SocialLearning, "message_growth", lambda self, rounds: 1e9)
    assert "wrapped by a quantising codec: skipped, its messages outgrow any bound" in check_rule(SocialLearning())


def test_a_rule_with_a_name_is_saved_and_loaded(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {"per-receiver": PerReceiver, "drifts": Drifts})
    assert "saved and loaded" in check_rule(PerReceiver())
    assert failures(Drifts(0.5)).keys() == {"saved and loaded"}


@dataclass(frozen=True)
class Drifts(Stubborn):
    """Read back with another setting than it was written with."""

    def __post_init__(self):
        object.__setattr__(self, "share", self.share / 2)


def test_a_kernel_off_by_one_bit_is_seen(monkeypatch):
    original = averaging.run

    def off(job, numbers):
        recorded = original(job, numbers)
        recorded.statistics[-1, -1, -1] += np.spacing(recorded.statistics[-1, -1, -1])
        return recorded

    monkeypatch.setattr(averaging, "run", off)
    assert "the kernel's numbers are not the rule's" in failures(DeGroot())["array kernel equals the rule"]


@pytest.mark.parametrize("name", POLICIES)
def test_a_network_of_ones_own(name):
    said = check_rule(DeGroot(), POLICIES[name])
    assert said == [one for one in EVERYTHING if one != "a schedule that changes"]


def test_a_schedule_of_ones_own():
    said = check_rule(DeGroot(), schedule.pairwise(topology.ring(4)))
    assert said[-1] == "live network equals simulator: skipped, live networks do not change from round to round"
    large = check_rule(Averaging(codec=Quantise(8, 2.0)), policy.uniform(topology.ring(30)))
    assert large[-1].endswith("skipped, a network of 30 agents is too large for one process")


def test_without_the_live_extra_the_rest_is_checked(monkeypatch):
    for module in [name for name in sys.modules if name.startswith(("collegium.live.", "collegium.checks.live"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delattr("collegium.checks.live", raising=False)
    monkeypatch.setitem(sys.modules, "msgspec", None)
    live = rule_checks(DeGroot())[-1]
    assert live.skipped == "live networks need the extra: pip install 'collegium[live]' (msgspec is missing)"
    with pytest.raises(SkipTest):
        live()


def test_without_numba_there_is_no_kernel(monkeypatch):
    monkeypatch.setattr(rule.kernels, "find", lambda job, rule: None)
    assert "array kernel equals the rule: skipped, no kernel serves it here: is numba installed?" in check_rule(
        DeGroot()
    )
