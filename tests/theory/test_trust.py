"""Breakdown points and the guarantee with f liars, against liars that do the worst that was found."""

import numpy as np
import pytest

import collegium
from collegium import policy, theory, topology
from collegium.errors import AssumptionError, ScoreError
from collegium.protocol import Robust
from collegium.protocol.combine import (
    Clipped,
    MeanSubsequence,
    Median,
    NearestNeighbours,
    OutlierScissor,
    SelfCentred,
    TrimmedMean,
    WeightedMean,
)
from collegium.trust import Liars, attacks

ROBUST = [
    TrimmedMean(2),
    Median(),
    SelfCentred(2),
    NearestNeighbours(2),
    MeanSubsequence(2),
    OutlierScissor(2),
    Clipped(),
]


@pytest.mark.parametrize("combine", ROBUST, ids=str)
def test_below_the_breakdown_point_liars_move_nothing_far(combine):
    m = 9
    point = theory.breakdown_point(combine, m)
    values = np.random.default_rng(0).normal(size=(m, 50, 1))
    liars = min(round(point * m) - 1, combine.bears(m))
    assert liars >= 2
    for size in (1e3, 1e9):
        values[:liars] = size
        assert np.abs(combine(values, np.full((m, 50), 1 / m), values[-1])).max() < 10
    assert theory.breakdown_point(WeightedMean(), m) == 1 / m
    assert WeightedMean()(values, np.full((m, 50), 1 / m), values[-1]).max() > 1e8


@pytest.mark.parametrize("combine", [*ROBUST, Clipped(0.5), WeightedMean()], ids=str)
def test_it_breaks_at_its_breakdown_point_and_not_before(combine):
    """Of any number of values, the agent's own among them: also where it keeps its own, since too few came."""
    for m in range(1, 12):
        breaks = round(theory.breakdown_point(combine, m) * m)
        for liars in range(m):
            values = np.random.default_rng(m).normal(size=(m, 50, 1))
            values[:liars] = 1e9
            moved = np.abs(combine(values, np.full((m, 50), 1 / m), values[-1]))
            assert moved.min() > 1e6 if liars >= breaks else moved.max() < 10


WORST = [
    attacks.Stubborn(2.0),
    attacks.Stubborn(1e6),
    attacks.Mimic(),
    attacks.LittleIsEnough(1.5),
    attacks.InnerProduct(2.0),
    attacks.SignFlip(5.0),
    attacks.Silence(2.0),
    attacks.TwoFaced(1.0),
    attacks.TwoFaced(1e6),
    attacks.Split((0, 0, 0, 1, 1, 1, 1, 1, -1, -1, -1, -1), 3.0),
    attacks.Dissension.along(policy.uniform(topology.complete(12)), 2.0),
]


@pytest.mark.parametrize("f", [1, 2, 3])
def test_no_attack_breaks_the_guarantee_and_the_worst_reaches_it(f):
    K, n = 12, 3000
    rng = np.random.default_rng(f)
    y = rng.choice([-1, 1], n)
    scores = np.tanh(0.4 * y[:, None] + rng.normal(size=(n, K)))
    liars = list(range(f))
    safe = theory.trimmed_guarantee(scores[:, f:], y, f)
    assert 0.1 < safe.mean() < 0.95
    full = policy.uniform(topology.complete(K))
    for attack in WORST:
        run = collegium.collaborate(scores, full, 5, Robust(TrimmedMean(f)), liars=Liars(liars, attack, y))
        right = (run.statistics[1:, :, run.honest] * y[:, None] > 0).all(axis=2)
        assert right[:, safe].all()  # once all honest agents are right, no round makes one of them wrong
        if isinstance(attack, attacks.Stubborn):
            assert not right[0, ~safe].any()  # liars that know the label reach it
    margin = (scores[:, f:] * y[:, None]).mean(axis=1)
    wide = margin > theory.liar_margin(1.0, K - f, f)
    assert wide.any()
    assert safe[wide].all()


def test_liars_that_may_say_anything_else_do_no_more():
    """Many random lies for the same items: none makes a guaranteed item wrong."""
    rng = np.random.default_rng(5)
    y = np.where(np.arange(200) % 2, -1, 1)
    honest = y[:, None] * rng.normal(0.3, 1.0, size=(200, 7))
    safe = theory.trimmed_guarantee(honest, y, 2)
    for _ in range(200):
        lies = rng.normal(size=(200, 2)) * 10.0 ** rng.uniform(-2, 3, size=(200, 2))
        values = np.concatenate([lies, honest], axis=1).T[:, :, None]
        got = TrimmedMean(2)(values, np.full((9, 200), 1 / 9), values[-1])[:, 0]
        assert ((got * y)[safe] > 0).all()


def test_the_expected_error_with_noise():
    rng = np.random.default_rng(1)
    y = rng.choice([-1, 1], 400)
    averages = 0.3 * y + rng.normal(size=400) * 0.2
    sigma = np.sqrt(theory.laplace_variance(2.0, 1.0, 12))
    noise = rng.normal(size=(2000, 400)) * sigma
    seen = ((averages + noise) * y <= 0).mean()
    assert abs(seen - theory.laplace_error(averages, y, 2.0, 1.0, 12)) < 3.9 * np.sqrt(0.25 / noise.size)


def test_assumptions_are_named():
    with pytest.raises(AssumptionError, match="more than 3 are honest"):
        theory.trimmed_guarantee(np.ones((2, 3)), [1, 1], 3)
    with pytest.raises(AssumptionError, match="outweigh"):
        theory.liar_margin(1.0, 2, 2)
    for wrong in (np.nan, np.inf):
        with pytest.raises(AssumptionError, match="scores must be finite"):
            theory.trimmed_guarantee([[1.0, wrong, 1.0], [-1.0, -1.0, -1.0]], [1, -1], 1)
        with pytest.raises(AssumptionError, match="averages must be finite"):
            theory.laplace_error([0.5, wrong], [1, -1], 1.0, 1.0, 12)
    with pytest.raises(AssumptionError, match="breakdown point is that of a combine"):
        theory.breakdown_point("median", 5)
    for averages in (0.5, [], np.zeros((2, 3))):
        with pytest.raises(ScoreError, match="one average an item and at least one"):
            theory.laplace_error(averages, [1, -1], 1.0, 1.0, 12)


def test_items_may_all_be_of_one_class():
    assert theory.trimmed_guarantee([[1.0, 0.2, 0.1], [1.0, -0.5, 0.1]], ["a", "a"], 1, ("a", "b")).tolist() == [
        True, False,
    ]  # fmt: skip
    one, other = (theory.laplace_error([0.4], ["a"], 2.0, 1.0, 12, names) for names in (("a", "b"), ("b", "a")))
    assert one == pytest.approx(1 - other)
    assert one < 0.5
