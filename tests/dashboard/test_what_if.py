"""What the page is told is what `collaborate` gives."""

from dataclasses import replace

import numpy as np
import pytest

from collegium import corruption, policy, protocol, topology
from collegium.dashboard import what_if
from collegium.dashboard.sources import Recorded, opening
from collegium.dashboard.what_if import Changes, World
from collegium.errors import CollegiumError, DataError, RuleError, ScoreError
from collegium.network import collaborate
from helpers import RULES

K, N = 6, 40
Y = np.where(np.arange(N) % 2, -1, 1).astype(np.int8)
SCORES = np.random.default_rng(3).normal(size=(N, K)) * 0.4 + 0.3 * Y[:, None]
GIVEN = World(policy.uniform(topology.ring(K)), SCORES, 12, seed=5, y=Y)
BEFORE = collaborate(SCORES, GIVEN.policy, 12, rng=5).decisions()


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_an_item_is_the_run_of_that_item(rule):
    world = World(
        policy.uniform(topology.erdos_renyi(K, links=14, seed=7)),
        np.tanh(SCORES),
        12,
        rule,
        9,
        [f"i{i}" for i in range(N)],
    )
    run = collaborate(world.scores, world.policy, 12, rule, 9, items=world.names)
    for i in (0, 7, 13):
        item = what_if.item(world, i)
        np.testing.assert_array_equal(item.statistics, run.statistics[:, i])
        assert (item.id, item.name, item.bits) == (str(i), f"i{i}", run.bits[i])
        sent = np.array(item.spoke) @ world.policy.graph.audience_sizes
        assert sent.sum() == run.transmissions[i]
        if isinstance(rule, protocol.DeGroot):
            bound = np.abs(world.scores).max()
            assert item.settled == [run.settled(t, bound)[i].tolist() for t in range(13)]
            assert item.limit == pytest.approx(run.limit()[i], rel=1e-12)
        else:
            assert item.settled is None


def test_averages_are_those_of_the_run():
    run = collaborate(SCORES, GIVEN.policy, 12, rng=5)
    found = what_if.averages(GIVEN, BEFORE)
    errors = run.errors(Y, (1, -1))
    assert found.items == N
    np.testing.assert_allclose(found.errors, errors.mean(axis=1), rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.worst, errors.max(axis=1), rtol=0, atol=1e-15)
    assert found.bits == [(t, t * 12 * 64.0) for t in range(13)]
    assert found.changed == 0
    assert found.wrong == np.flatnonzero((run.statistics[-1] * Y[:, None] <= 0).any(axis=1)).tolist()
    assert 0 < len(found.split) < N


def test_errors_are_those_of_the_items_whose_class_is_known():
    y = np.where(np.arange(N) % 3, Y, 0).astype(np.int8)
    found = what_if.averages(replace(GIVEN, y=y), BEFORE)
    errors = collaborate(SCORES[y != 0], GIVEN.policy, 12, rng=5).errors(Y[y != 0], (1, -1))
    np.testing.assert_allclose(found.errors, errors.mean(axis=1), rtol=0, atol=1e-15)
    assert (found.items, found.total, found.known) == (N, N, (y != 0).sum())
    assert what_if.item(replace(GIVEN, y=y), 0).truth is None
    assert what_if.averages(replace(GIVEN, y=np.zeros(N, np.int8)), BEFORE).errors is None


def test_of_very_many_items_the_first_are_averaged():
    world = World(GIVEN.policy, np.resize(SCORES, (60_000, K)), 12)
    found = what_if.averages(world, what_if.decisions(world))
    assert (found.items, found.total) == (world.averaged(), 60_000)
    assert found.items < found.total


RING, DEGROOT = GIVEN.policy, protocol.DeGroot()
BOUND = float(np.abs(SCORES).max())


@pytest.mark.parametrize(
    ("changes", "built", "rule", "scores"),
    [
        (Changes("star"), policy.uniform(topology.star(K)), DEGROOT, SCORES),
        (Changes("grid 2×3", "metropolis"), policy.metropolis(topology.grid(2, 3)), DEGROOT, SCORES),
        (Changes(weights="laplacian"), policy.laplacian(topology.ring(K)), DEGROOT, SCORES),
        (Changes(rule="delta-trigger", threshold=0.3), RING, protocol.DeltaTrigger(0.3), SCORES),
        (Changes(rule="label-stability", confidence=0.2), RING, protocol.LabelStability(2, 0.2), SCORES),
        (Changes(rule="social-learning"), RING, protocol.SocialLearning(), SCORES),
        (Changes(bits=3), RING, protocol.Quantised(DEGROOT, 3, BOUND), SCORES),
        (Changes(fault="stuck", faulty=[1, 4]), RING, DEGROOT, corruption.stuck(SCORES, [1, 4])),
        (Changes(fault="bias", strength=2, faulty=[3]), RING, DEGROOT, corruption.bias(SCORES, [3], 2)),
        (Changes(fault="sign-flip", strength=3, faulty=[2]), RING, DEGROOT, corruption.sign_flip(SCORES, [2], 3)),
        (Changes(fault="noise", strength=2, faulty=[0]), RING, DEGROOT, corruption.noise(SCORES, [0], 2, 5)),
    ],
    ids=["star", "grid", "laplacian", "delta", "stability", "social", "bits", "stuck", "bias", "flip", "noise"],
)
def test_a_wish_is_what_is_run(changes, built, rule, scores):
    world = what_if.changed(GIVEN, changes)
    run = collaborate(scores, built, 12, rule, 5)
    found = what_if.averages(world, BEFORE)
    assert found.errors[1:] == run.errors(Y, (1, -1)).mean(axis=1)[1:].tolist()
    assert found.errors[0] == (scores * Y[:, None] <= 0).mean(axis=0).mean()  # alone, also where statistics begin at 0
    assert found.bits[-1] == (12, run.bits.mean())
    assert found.changed == (run.decisions() != BEFORE).mean()
    np.testing.assert_array_equal(what_if.item(world, 7).statistics, run.statistics[:, 7])


def test_rounds_and_seed_are_wishes_too():
    world = what_if.changed(GIVEN, Changes(rounds=30, seed=8, bits=2))
    rule = protocol.Quantised(protocol.DeGroot(), 2, float(np.abs(SCORES).max()))
    np.testing.assert_array_equal(
        what_if.item(world, 2).statistics, collaborate(SCORES, GIVEN.policy, 30, rule, 8).statistics[:, 2]
    )


def test_bits_of_a_rule_that_falls_silent_are_those_of_each_budget():
    world = what_if.changed(GIVEN, Changes(rule="label-stability", patience=1, confidence=0.1))
    for t, bits in what_if.averages(world, BEFORE).bits:
        assert bits == collaborate(SCORES, GIVEN.policy, t, world.rule, 5).bits.mean()


def test_a_bound_that_was_given_stays_if_it_is_wide_enough():
    given = World(GIVEN.policy, SCORES, 12, protocol.Quantised(protocol.DeGroot(), 8, 50.0))
    assert what_if.changed(given, Changes(bits=4)).rule == protocol.Quantised(protocol.DeGroot(), 4, 50.0)
    assert what_if.changed(given, Changes(bits=64)).rule == protocol.DeGroot()
    assert what_if.changed(given, Changes()).rule == given.rule


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (Changes(topology="spiral"), "no topology 'spiral'"),
        (Changes(fault="stuck", faulty=[9]), "no agent 9"),
        (Changes(rule="delta-trigger", threshold=-1), "threshold"),
        (Changes(rule="social-learning", bits=1, rounds=200), "too few"),
    ],
)
def test_impossible_wishes_are_answered_by_a_sentence(changes, sentence):
    with pytest.raises(CollegiumError, match=sentence):
        what_if.changed(GIVEN, changes)


def test_sizes_are_limited():
    with pytest.raises(ScoreError, match="at most 64 agents"):
        World(policy.uniform(topology.ring(65)), np.zeros((1, 65)))
    with pytest.raises(RuleError, match="1 to 200 rounds"):
        World(GIVEN.policy, SCORES, 201)
    many = World(GIVEN.policy, np.zeros((60_000, K)), 12)
    assert many.averaged() * K * 13 <= 4_000_000


def test_views_must_belong_to_the_scores():
    from collegium.dashboard.views import Views
    from helpers import tiny_images

    with pytest.raises(DataError, match="views an item"):
        Views(tiny_images(4, 3), K)
    with pytest.raises(DataError, match="40 items, but views of 4"):
        Recorded(GIVEN, "t", views=Views(tiny_images(4, K), K))


def test_it_opens_where_agents_alone_agree_least():
    assert opening(np.array([[1.0, 2.0, 3.0, 1.0], [1.0, -1.0, 2.0, 1.0], [-1.0, 1.0, 2.0, -3.0]])) == 2


@pytest.mark.parametrize("fault", list(what_if.ATTACKS))
@pytest.mark.parametrize("rule", ["given", "robust:(trimmed-mean:1)"])
def test_lies_in_every_round_are_those_of_the_library(fault, rule):
    from collegium.trust import Liars

    full = replace(GIVEN, policy=policy.uniform(topology.complete(K)))
    world = what_if.changed(full, Changes(rule=rule, fault=fault, strength=1.5, faulty=[2]))
    liars = Liars([2], what_if.ATTACKS[fault](1.5, full.policy, [2]))
    chosen = protocol.registry.rule_from_text("degroot" if rule == "given" else rule)
    run = collaborate(SCORES, full.policy, 12, chosen, 5, liars=liars)
    found = what_if.averages(world, BEFORE)
    np.testing.assert_allclose(found.errors, run.errors(Y, (1, -1))[:, run.honest].mean(axis=1), rtol=0, atol=1e-15)
    one = what_if.item(world, 3)
    np.testing.assert_array_equal(one.statistics, run.statistics[:, 3])
    assert (one.settled, one.limit) == (None, None)
    with pytest.raises(RuleError, match="agents are 0 to 5"):
        what_if.changed(full, Changes(fault=fault, faulty=[9]))


def test_the_page_has_every_attack_and_fault():
    import re
    from importlib.resources import files
    from typing import get_args, get_type_hints

    from collegium.trust import attacks

    made = {type(one(1.0, policy.uniform(topology.complete(4)), [1])).__name__ for one in what_if.ATTACKS.values()}
    assert made == {name for name in attacks.__all__ if name not in ("Attack", "AtStart", "Sight")}
    page = (files("collegium.dashboard") / "static/index.html").read_text()
    offered = re.findall('value="([a-z-]+)"', page.partition('name="fault"')[2].partition("</select>")[0])
    assert offered == list(get_args(get_type_hints(Changes)["fault"]))


def test_what_neighbours_have_against_an_agent_in_words():
    from collegium.live import suspicion

    assert suspicion.evidence(230, 240) == "95 % of its 240 messages lie far from the rest"
    assert suspicion.evidence(100, 240) == suspicion.evidence(30, 40) == ""
