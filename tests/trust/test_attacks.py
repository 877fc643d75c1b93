"""Attacks: what each sends, that plain averaging falls to them, and that the honest part of a run is untouched."""

import numpy as np
import pytest
from tests import helpers

import collegium
from collegium import corruption, policy, topology, trust
from collegium.errors import GraphError, RuleError, ScoreError
from collegium.protocol import DeGroot, DeltaTrigger, HoldLast, Quantised, Robust, registry
from collegium.protocol.combine import TrimmedMean
from collegium.trust import Liars, Rogue, SignedFlood, attacks
from collegium.trust.attacks import Sight

COMPLETE = policy.uniform(topology.complete(7))
ALL = [
    attacks.AtStart("noise", 2.0),
    attacks.AtStart("stuck"),
    attacks.AtStart("bias", -1.0),
    attacks.AtStart("sign-flip", 3.0),
    attacks.Stubborn(2.0),
    attacks.Stubborn(2.0, fixed=True),
    attacks.SignFlip(1.5),
    attacks.LittleIsEnough(1.2),
    attacks.InnerProduct(0.5),
    attacks.Mimic(),
    attacks.Mimic(most_wrong=False),
    attacks.TwoFaced(1.0),
    attacks.Silence(0.2),
    attacks.Split.of(topology.complete(7), [1, 4]),
    attacks.Dissension.along(COMPLETE),
]


def sight(seed=0, n=30, h=5, w=1):
    rng = np.random.default_rng(seed)
    known, message = rng.normal(size=(h, n, w)), rng.normal(size=(n, w))
    aim = rng.choice([-1.0, 1.0], size=(n, w))
    return Sight(COMPLETE.at(1)[2], 3, message, known, np.array([0, 1, 3, 4, 5]), aim)


@pytest.mark.parametrize("attack", ALL, ids=str)
def test_text_and_a_run(attack):
    assert registry.from_text(registry.to_text(attack), "attack") == attack
    scores = helpers.scores(40, 7)
    run = collegium.collaborate(scores, COMPLETE, 4, liars=Liars([1, 4], attack))
    assert run.honest.tolist() == [True, False, True, True, False, True, True]
    clean = collegium.collaborate(scores, COMPLETE, 4)
    np.testing.assert_array_equal(run.statistics[0][:, run.honest], clean.statistics[0][:, run.honest])
    assert not np.array_equal(run.statistics[-1][:, run.honest], clean.statistics[-1][:, run.honest])
    several = helpers.of_classes(20, 7, 3)
    if attack != attacks.AtStart("bias", -1.0):
        run = collegium.collaborate(several, COMPLETE, 3, liars=Liars([1, 4], attack))
        np.testing.assert_allclose(run.statistics.sum(axis=3), 0, atol=1e-12)


def test_the_start_is_the_papers_corruption():
    scores = helpers.scores(50, 7)
    run = collegium.collaborate(scores, COMPLETE, 5, rng=3, liars=Liars([0, 6], attacks.AtStart("sign-flip", 2.0)))
    same = collegium.collaborate(corruption.sign_flip(scores, [0, 6], 2.0), COMPLETE, 5)
    np.testing.assert_allclose(run.statistics, same.statistics, rtol=0, atol=1e-15)
    noisy = collegium.collaborate(scores, COMPLETE, 1, rng=3, liars=Liars([0, 6], attacks.AtStart("noise", 2.0)))
    np.testing.assert_array_equal(noisy.statistics[0], corruption.noise(scores, [0, 6], 2.0, 3))


def test_the_start_of_a_single_item_is_false_too():
    one = np.random.default_rng(0).normal(size=(1, COMPLETE.size))

    def start(attack):
        return collegium.collaborate(one, COMPLETE, 1, rng=3, liars=Liars([6], attack)).statistics[0][0]

    assert start(attacks.AtStart("sign-flip", 2.0))[6] == -2.0 * one[0, 6]
    assert start(attacks.AtStart("stuck"))[6] == 0.0
    assert start(attacks.AtStart("bias", 2.0, 0.5))[6] == pytest.approx(one[0, 6] + 1.0)
    noisy = start(attacks.AtStart("noise", 2.0, 0.5))
    np.testing.assert_array_equal(np.flatnonzero(noisy != one[0]), [6])
    with pytest.raises(RuleError, match="give AtStart a unit"):
        start(attacks.AtStart("noise", 2.0))
    with pytest.raises(RuleError, match="a unit"):
        Rogue(DeGroot(), attacks.AtStart("bias", 1.0))


def test_one_stubborn_agent_drags_averaging_to_its_word():
    grid = policy.metropolis(topology.grid(3, 4))
    y = np.where(np.arange(60) % 2, -1, 1)
    scores = y[:, None] + 0.3 * helpers.scores(60, 12)
    run = collegium.collaborate(scores, grid, 400, liars=Liars([5], attacks.Stubborn(2.0), y))
    np.testing.assert_allclose(run.statistics[-1][:, run.honest], -2.0 * y[:, None] * np.ones(11), atol=1e-3)
    robust = collegium.collaborate(
        scores[:, :7], COMPLETE, 30, Robust(TrimmedMean(1)), liars=Liars([5], attacks.Stubborn(2.0), y)
    )
    assert robust.errors(y)[-1, robust.honest].max() == 0.0


def test_liars_without_labels_push_away_from_their_own_score():
    scores = helpers.scores(50, 7)
    run = collegium.collaborate(scores, COMPLETE, 1, liars=Liars([3], attacks.Stubborn(7.0)))
    false = scores.copy()
    false[:, 3] = np.where(scores[:, 3] < 0, 7.0, -7.0)
    np.testing.assert_allclose(run.statistics[1][:, 0], false.mean(axis=1), atol=1e-14)


def test_each_message_is_the_one_that_is_named():
    seen = sight()
    mean, spread = seen.known.mean(axis=0), seen.known.std(axis=0)
    np.testing.assert_allclose(attacks.LittleIsEnough(1.5).lie(seen).values, mean + 1.5 * spread * seen.aim)
    np.testing.assert_allclose(attacks.InnerProduct(0.3).lie(seen).values, -0.3 * mean)
    np.testing.assert_array_equal(attacks.SignFlip(2.0).lie(seen).values, -2.0 * seen.message)
    by_hand = [max(seen.known[:, i, 0], key=lambda x, i=i: x * seen.aim[i, 0]) for i in range(30)]
    np.testing.assert_array_equal(attacks.Mimic().lie(seen).values[:, 0], by_hand)
    two = attacks.TwoFaced(1.5).lie(seen)
    assert two.values.shape == (30, 6, 1)
    np.testing.assert_array_equal(two.values[:, :, 0], np.tile([1.5, -1.5], 3)[None].repeat(30, axis=0))
    quiet = attacks.Silence(0.4).lie(seen)
    np.testing.assert_array_equal(quiet.spoke, np.abs(mean[:, 0]) >= 0.4)
    assert attacks.Silence(0.4).lie(seen._replace(round=1)).spoke is None


@pytest.mark.parametrize("rule", [DeGroot(), DeltaTrigger(0.01), SignedFlood(TrimmedMean(1))], ids=str)
def test_silence_is_silent_in_a_run(rule):
    """About items that are close, after the lie of round 1; a trigger keeps its own silence besides."""
    scores = np.random.default_rng(0).normal(size=(60, 7)) * 0.3
    run = collegium.collaborate(scores, COMPLETE, 4, rule, liars=Liars([1], attacks.Silence(1e9)))
    assert run.spoke[0].all()
    assert not run.spoke[1:, :, 1].any()
    far = collegium.collaborate(scores, COMPLETE, 4, rule, liars=Liars([1], attacks.Silence(0.0)))
    np.testing.assert_array_equal(far.spoke, collegium.collaborate(scores, COMPLETE, 4, rule).spoke)


def test_a_group_on_a_cut_keeps_the_sides_apart():
    """Two cliques joined by two agents, which lie: the sides end on opposite classes."""
    left, right, bridge = range(4), range(4, 8), (8, 9)
    links = [(i, j) for side in (left, right) for i in side for j in side if i < j]
    links += [(i, b) for b in bridge for i in (*left, *right)]
    graph = topology.Graph.from_links(10, *zip(*links, strict=True), undirected=True)
    liars = trust.placement.on_cut(graph, 2)
    assert liars.tolist() == [8, 9]
    split = attacks.Split.of(graph, liars.tolist(), 1.0)
    assert split.sides == (1, 1, 1, 1, -1, -1, -1, -1, 0, 0)
    run = collegium.collaborate(np.zeros((3, 10)), policy.metropolis(graph), 50, liars=Liars(liars, split))
    assert (run.statistics[-1][:, :4] > 0.9).all()
    assert (run.statistics[-1][:, 4:8] < -0.9).all()


def test_dissension_follows_the_second_eigenvector():
    grid = policy.metropolis(topology.grid(3, 4))
    attack = attacks.Dissension.along(grid, 0.5)
    direction = np.array(attack.direction)
    np.testing.assert_allclose(grid.A.T @ direction, grid.slem * direction, atol=1e-9)
    run = collegium.collaborate(np.zeros((2, 12)), grid, 60, liars=Liars([5, 6], attack))
    apart = run.statistics[-1][0][run.honest]
    assert np.corrcoef(apart, direction[run.honest])[0, 1] > 0.9
    assert np.ptp(apart) > 0.1


def test_a_codec_takes_lies_as_far_as_it_can():
    rule = Quantised(DeGroot(), 8, 2.0)
    run = collegium.collaborate(helpers.scores(20, 7), COMPLETE, 3, rule, liars=Liars([0], attacks.Stubborn(99.0)))
    assert np.abs(run.statistics).max() <= 2.0


def test_a_rogue_sends_what_its_attack_says():
    scores = helpers.scores(20, 7)
    for attack in (attacks.Stubborn(1.0), attacks.SignFlip(2.0), attacks.TwoFaced(1.0)):
        rogue = collegium.collaborate(scores, COMPLETE, 3, Rogue(DeGroot(), attack))
        np.testing.assert_allclose(rogue.statistics[1][:, 0], _next(scores, attack, 0), atol=1e-14)


def _next(scores, attack, k):
    """What agent k has after one round in which all others lie, by hand."""
    if isinstance(attack, attacks.TwoFaced):
        return (scores[:, 0] + 6 * attack.size) / 7  # agent 0 is everybody's first receiver
    factor = -attack.eta * scores if isinstance(attack, attacks.SignFlip) else np.where(scores < 0, 1.0, -1.0)
    return factor.mean(axis=1)


def test_mistakes_are_named():
    scores = helpers.scores(5, 7)
    for agents, complaint in (([7], "agents are 0 to 6"), ([1, 1], "different agent numbers"), (range(7), "all 7")):
        with pytest.raises(RuleError, match=complaint):
            collegium.collaborate(scores, COMPLETE, 1, liars=Liars(list(agents), attacks.Stubborn()))
    with pytest.raises(RuleError, match=r"Liars\(agents, attack\)"):
        collegium.collaborate(scores, COMPLETE, 1, liars=[3])
    with pytest.raises(RuleError, match="must be one of"):
        Liars([1], "stubborn")
    run = collegium.collaborate(scores, COMPLETE, 1, mailbox=HoldLast(), liars=Liars([1], attacks.Stubborn()))
    with pytest.raises(RuleError, match="where nobody lies"):
        run.limit()


def test_an_attack_that_does_not_fit_the_network_is_named():
    for attack in (attacks.Split((1, -1)), attacks.Dissension((1.0, -1.0))):
        with pytest.raises(RuleError, match=r"for 2 agents, and the network has 7"):
            collegium.collaborate(np.ones((2, 7)), COMPLETE, 1, liars=Liars([1], attack))
    with pytest.raises(RuleError, match="an entry of a direction must be a finite number"):
        attacks.Dissension(("a", 1.0))
    with pytest.raises(RuleError, match="a direction is that of a Policy, got Graph"):
        attacks.Dissension.along(topology.ring(5))
    for made in (lambda: attacks.Split.of(COMPLETE, [1]), lambda: trust.placement.on_cut(COMPLETE, 1)):
        with pytest.raises(GraphError, match=r"of a Graph such as .* got Policy"):
            made()
    apart = topology.Graph.from_links(4, [0, 2], [1, 3], undirected=True)
    assert len(trust.placement.on_cut(apart, 1)) == 1


def test_evidence_needs_others_and_their_scores():
    with pytest.raises(ScoreError, match="at least two agents"):
        trust.evidence.contradictions([[1.0], [2.0]])
    assert np.isnan(trust.evidence.contradictions(np.full((3, 4), np.nan))).all()
    for wrong in ([9], [-1], ["a"]):
        with pytest.raises(ScoreError, match="agents that are left out are numbers from 0 to 1"):
            trust.evidence.fuse([[1.0, 2.0]], 0.5, without=wrong)
