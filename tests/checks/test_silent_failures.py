"""Four ways in which a rule of one's own once went wrong without a word: each must be impossible, or named."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from collegium import Team, check_rule, collaborate, kernels, policy, topology
from collegium.checks import live, rule_checks
from collegium.dashboard import what_if
from collegium.errors import CheckError, RuleError
from collegium.network import reference_run, validated
from collegium.protocol import DeGroot, Outbox, Quantised, Rule
from collegium.protocol.averaging import Averaging
from collegium.protocol.codec import Codec, Float64, Quantise
from collegium.protocol.combine import WeightedMean
from helpers import Stubborn, scores

RING = policy.uniform(topology.ring(5))
X = scores(8, 5)
ON_THE_WIRE, EQUAL = "bits are true on the wire", "live network equals simulator"


# ── 1: a wrapper around Quantised that forwards message_bits was wrong by up to 4 when live ───────────────────────────


@dataclass(frozen=True)
class Wrapper(Rule):
    """Forwards what a careless author forwards: everything but the codec."""

    rule: Rule

    def width(self, d):
        return self.rule.width(d)

    def init(self, seat, scores):
        return self.rule.init(seat, scores)

    def emit(self, seat, state, draws):
        return self.rule.emit(seat, state, draws)

    def absorb(self, seat, state, inbox):
        return self.rule.absorb(seat, state, inbox)

    def statistic(self, state):
        return self.rule.statistic(state)


@dataclass(frozen=True)
class WholeWrapper(Wrapper):
    """Forwards the codec as well."""

    @property
    def codec(self) -> Codec:
        return self.rule.codec


INNER = Quantised(DeGroot(), bits=4, bound=4.0)


@pytest.mark.parametrize("wrapper", [Wrapper(INNER), WholeWrapper(INNER)], ids=lambda rule: type(rule).__name__)
def test_a_wrapper_is_live_what_it_is_in_the_simulator(wrapper):
    live.equals_simulator(wrapper, RING)


def test_a_wrapper_has_the_bits_of_its_codec(broken):
    for wrapper, bits in ((Wrapper(INNER), 64), (WholeWrapper(INNER), 4)):
        assert not broken(rule_checks(wrapper))
        run = collaborate(X, RING, rule=wrapper, rng=3)
        assert (run.bits == bits * run.transmissions).all()
    np.testing.assert_array_equal(run.statistics, collaborate(X, RING, rule=INNER, rng=3).statistics)


def test_a_rule_cannot_claim_bits_of_its_own():
    with pytest.raises(RuleError, match="Claimer must not define message_bits"):

        class Claimer(Wrapper):
            def message_bits(self, d: int = 1) -> int:
                return self.rule.message_bits(d)


# ── 2: a subclass of Quantised with its own index was run by the base class's kernel ──────────────────────────────────


@dataclass(frozen=True)
class NearestCodec(Quantise):
    """Rounds to the nearest level instead of at random."""

    def index(self, values, uniform):
        return super().index(values, np.full_like(values, 0.5))


@dataclass(frozen=True)
class Nearest(Quantised):
    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "codec", NearestCodec(self.bits, self.bound))


@dataclass(frozen=True)
class Halved(Quantised):
    def statistic(self, state):
        return 0.5 * super().statistic(state)


class Halves(WeightedMean):
    def __call__(self, values, weights, own):
        return 0.5 * super().__call__(values, weights, own)


OWN_ROUNDING = [Nearest(DeGroot(), 3, 2.0), Averaging(codec=NearestCodec(3, 2.0))]
SUBCLASSES = [*OWN_ROUNDING, Halved(DeGroot(), 3, 2.0), Averaging(combine=Halves())]


@pytest.mark.parametrize("rule", SUBCLASSES, ids=repr)
def test_no_kernel_serves_a_subclass(rule):
    assert kernels.numbers(rule) is None
    run = collaborate(X, RING, rounds=6, rule=rule)
    np.testing.assert_array_equal(
        run.statistics, reference_run(validated(X, RING, 6, [rule], 0), rule).statistics[..., 0]
    )
    base = collaborate(X, RING, rounds=6, rule=Quantised(DeGroot(), 3, 2.0))
    assert np.abs(run.statistics - base.statistics).max() > 0.1  # it would be no small mistake


@pytest.mark.parametrize("rule", SUBCLASSES, ids=repr)
def test_the_dashboard_runs_a_subclass_as_it_is(rule):
    world = what_if.World(RING, X, 9, rule)
    assert what_if.changed(world, what_if.Changes()).rule == rule


@pytest.mark.parametrize("rule", OWN_ROUNDING, ids=lambda rule: type(rule).__name__)
def test_a_kernel_that_served_one_would_be_seen(rule, monkeypatch, broken):
    exact = kernels.numbers
    monkeypatch.setattr(kernels, "numbers", lambda rule: exact(Quantised(DeGroot(), 3, 2.0)))
    said = broken(rule_checks(rule))
    assert "the kernel's numbers are not the rule's" in said["array kernel equals the rule"]
    assert "simulator and live network differ" in said[EQUAL]


# ── 3: a subclass of DeGroot with its own absorb was given `settled`, "a proof", and a certificate ────────────────────


@dataclass(frozen=True)
class Contrary(DeGroot):
    """Averages, and then believes the opposite in every other round."""

    def absorb(self, seat: Any, state: Any, inbox: Any) -> Any:
        absorbed = super().absorb(seat, state, inbox)
        return absorbed._replace(x=-absorbed.x)


def test_no_proof_is_given_for_a_subclass():
    run = collaborate(X, RING, rounds=9, rule=Contrary())
    assert (np.sign(run.statistics[-1]) != np.sign(run.statistics[-2])).any()  # nothing ever settles
    for proof in (run.settled, run.limit, run.distance):
        with pytest.raises(RuleError, match="is known for DeGroot at full precision, not for Contrary"):
            proof()
    world = what_if.World(RING, X, 9, Contrary())
    shown = what_if.item(world, 1)
    assert (shown.settled, shown.limit) == (None, None)


@pytest.mark.parametrize("rule", [Contrary(), Quantised(Contrary(), 8, 2.0), Nearest(DeGroot(), 8, 2.0)], ids=repr)
def test_no_theorem_is_claimed_for_a_subclass(rule):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(60) % 2, 1, -1)
    views = [y[:, None] + rng.normal(size=(60, 2)) for _ in range(5)]
    team = Team([(f"a{k}", LogisticRegression()) for k in range(5)], RING, rule=rule, bounded=True).fit(views, y)
    certificate = team.certify(views, y)
    assert certificate.no_theorem
    assert np.isnan(certificate.bound).all()
    assert np.isnan(certificate.limit)
    assert certificate.evidence is not None  # held-out items speak of any rule


# ── 4: check_rule passed rules that send strings, tuples, or claim 3 bits and send doubles ────────────────────────────


@dataclass(frozen=True)
class Sends(Stubborn):
    """Whatever `kind` makes of its statistic."""

    kind: str = ""

    def emit(self, seat, state, draws):
        x = state[0]
        made = {"strings": x.astype(str), "tuple": tuple(map(tuple, x)), "float32": x.astype(np.float32)}[self.kind]
        return Outbox(made), state


@dataclass(frozen=True)
class SaysItself(Stubborn):
    """Its outbox is the statistic itself, as rules of the first version sent it."""

    def emit(self, seat, state, draws):
        return state[0], state


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        (Sends(0.5, "strings"), "messages must be an array of float64, got an array of <U"),
        (Sends(0.5, "tuple"), "messages must be an array of float64, got tuple"),
        (Sends(0.5, "float32"), "messages must be an array of float64, got an array of float32"),
        (SaysItself(0.5), r"emit must return \(Outbox, state\); it returned array"),
    ],
    ids=repr,
)
def test_messages_that_are_no_numbers_are_refused_and_named(rule, complaint, broken):
    with pytest.raises(RuleError, match=complaint):
        collaborate(X, RING, rule=rule)
    assert re.search(complaint, broken(rule_checks(rule))["messages are finite float64 of the promised width"])
    with pytest.raises(CheckError, match=complaint):
        check_rule(rule)


class ThreeBits(Float64):
    """Claims three bits and sends doubles."""

    @property
    def message_bits(self) -> int:
        return 3


@dataclass(frozen=True)
class Claims(Stubborn):
    @property
    def codec(self) -> Codec:
        return ThreeBits()


def test_a_rule_that_claims_three_bits_and_sends_doubles_is_refused_and_named(broken):
    complaint = "has 3 bits a number, but its codes are float64"
    with pytest.raises(RuleError, match=complaint):
        collaborate(X, RING, rule=Claims(0.5))
    assert complaint in broken(rule_checks(Claims(0.5)))[ON_THE_WIRE]
