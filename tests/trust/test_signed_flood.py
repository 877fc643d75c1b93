"""Signed flooding as a rule: what everybody ends with, whom it catches, and what it refuses."""

import numpy as np
import pytest
from tests import helpers

import collegium
from collegium import check_rule, policy, topology
from collegium.errors import RuleError
from collegium.links import Lossy
from collegium.protocol import Quantised, registry
from collegium.protocol.combine import Median, TrimmedMean, WeightedMean
from collegium.trust import Liars, Rogue, SignedFlood, attacks, evidence
from collegium.trust.signed_flood import Statement, _as_numbers, _statement, simulated_keys

TORUS = policy.metropolis(topology.torus(3, 3))
SCORES = helpers.scores(30, 9)
RULE = SignedFlood(TrimmedMean(2))
LIARS = [4, 5]


def trimmed(scores, f=2):
    return np.sort(scores, axis=1)[:, f : scores.shape[1] - f].mean(axis=1)


def test_everybody_ends_with_the_fusion_of_all_scores():
    run = collegium.collaborate(SCORES, TORUS, 4, RULE)
    np.testing.assert_allclose(run.statistics[-1], trimmed(SCORES)[:, None] * np.ones(9), rtol=0, atol=1e-14)
    assert (np.ptp(run.statistics[-1], axis=1) == 0).all()
    np.testing.assert_array_equal(run.statistics[0], SCORES)
    clipped = collegium.collaborate(SCORES, TORUS, 4, SignedFlood(WeightedMean(), clip=0.25)).statistics[-1][:, 3]
    np.testing.assert_allclose(clipped, evidence.fuse(SCORES, 0.25), rtol=0, atol=1e-14)
    several = helpers.of_classes(20, 9, 4)
    found = collegium.collaborate(several, TORUS, 4, SignedFlood(WeightedMean(), clip=0.25)).statistics[-1][:, 3]
    np.testing.assert_allclose(found, evidence.fuse(several, 0.25), rtol=0, atol=1e-14)


def test_it_is_a_rule_as_any_other():
    assert registry.from_text("signed-flood:(trimmed-mean:2)") == RULE
    assert registry.from_text(registry.to_text(SignedFlood(Median(), 0.5, 9))) == SignedFlood(Median(), 0.5, 9)
    held = check_rule(SignedFlood(TrimmedMean(1)), policy.uniform(topology.complete(4)))
    assert any("live network equals simulator" in one and "skipped" not in one for one in held)


@pytest.mark.parametrize("attack", [attacks.TwoFaced(2.0), attacks.Dissension.along(TORUS, 0.5)], ids=["two", "along"])
def test_who_says_two_things_is_left_out_by_all(attack):
    run = collegium.collaborate(SCORES, TORUS, 6, SignedFlood(TrimmedMean(1)), liars=Liars([4], attack))
    without = trimmed(np.delete(SCORES, 4, axis=1), 1)
    np.testing.assert_allclose(run.statistics[-1][:, run.honest], without[:, None] * np.ones(8), rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    "attack", [attacks.Stubborn(2.0), attacks.Mimic(), attacks.SignFlip(3.0), attacks.LittleIsEnough(1.5)], ids=str
)
def test_who_says_one_false_thing_is_one_value_of_the_fusion(attack):
    y = np.where(SCORES.mean(axis=1) < 0, -1, 1)
    run = collegium.collaborate(SCORES, TORUS, 6, RULE, liars=Liars(LIARS, attack, y))
    last, honest = run.statistics[-1][:, run.honest], np.delete(SCORES, LIARS, axis=1)
    assert (np.ptp(last, axis=1) == 0).all()  # all fuse the same, whatever liars say
    assert (last >= honest.min(axis=1, keepdims=True)).all()
    assert (last <= honest.max(axis=1, keepdims=True)).all()
    if isinstance(attack, attacks.Stubborn):
        said = SCORES.copy()
        said[:, LIARS] = -2.0 * y[:, None]
        np.testing.assert_allclose(last[:, 0], trimmed(said), rtol=0, atol=1e-14)
        rogue = collegium.collaborate(SCORES, TORUS, 6, Rogue(RULE.prepared(TORUS, 6), attack))
        others = np.where(SCORES < 0, 2.0, -2.0)[
            :, 1:
        ]  # each pushes away from its own score; agent 0 knows two of its own
        np.testing.assert_allclose(rogue.statistics[-1][:, 0], trimmed(others), rtol=0, atol=1e-14)


def test_what_is_lost_is_said_again_by_others():
    run = collegium.collaborate(SCORES, TORUS, 12, RULE, links=Lossy(0.2, seed=1))
    known = np.isclose(run.statistics[-1], trimmed(SCORES)[:, None], rtol=0, atol=1e-12)
    assert known.mean() > 0.9


def test_a_signature_survives_the_wire_and_nothing_else_does():
    keys = simulated_keys(3)
    signature = keys.sign(1, 2**63 + 7, [0.5, -0.25])
    numbers = np.concatenate([[0.5, -0.25], _as_numbers([signature])[0]])
    read = _statement(1, 2**63 + 7, numbers)
    assert read == Statement(1, 2**63 + 7, (0.5, -0.25), signature)
    assert keys.holds(read)
    for place in range(len(numbers)):
        changed = numbers.copy()
        changed[place] += 1.0
        assert not keys.holds(_statement(1, 2**63 + 7, changed))
    assert not keys.holds(read._replace(agent=2))
    assert not keys.holds(read._replace(item=7))
    for strange in (np.full(13, -1.0), np.full(13, 1e300), np.full(13, np.nan)):
        assert not keys.holds(_statement(1, 7, strange))


def test_networks_where_it_cannot_work_are_refused():
    with pytest.raises(RuleError, match="cut by 2: add links"):
        collegium.collaborate(helpers.scores(2, 9), policy.metropolis(topology.ring(9)), 9, RULE)
    with pytest.raises(RuleError, match=r"without any 1 of its agents.*cut by 1"):
        collegium.collaborate(helpers.scores(2, 9), policy.metropolis(topology.star(9)), 3, SignedFlood(Median()))
    collegium.collaborate(helpers.scores(2, 9), policy.metropolis(topology.ring(9)), 5, SignedFlood(Median()))
    with pytest.raises(RuleError, match="needs 5 values"):
        collegium.collaborate(helpers.scores(2, 4), policy.uniform(topology.complete(4)), 2, RULE)
    collegium.collaborate(helpers.scores(2, 9), policy.metropolis(topology.ring(9)), 5, SignedFlood(TrimmedMean(1)))
    with pytest.raises(RuleError, match="cannot be rounded"):
        collegium.collaborate(SCORES, TORUS, 4, Quantised(RULE, 8, 2.0))
    with pytest.raises(RuleError, match="is for 8 agents"):
        collegium.collaborate(SCORES, TORUS, 4, SignedFlood(agents=8))
    with pytest.raises(RuleError, match="one of collegium"):
        SignedFlood("median")
    with pytest.raises(RuleError, match="clip"):
        SignedFlood(clip=-1.0)
