"""Several classes in the formulas: by hand, by another route, and the same numbers for two classes as vectors."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from collegium import collaborate, policy, theory, topology
from collegium.errors import AssumptionError, LabelError, ScoreError
from collegium.protocol import DeGroot, Quantised
from collegium.protocol.base import completed
from collegium.theory import certificate, margins
from collegium.theory.finite_precision import rounding_errors
from worlds import Ballots, World

TWO = policy.Policy([[0.75, 0.5], [0.25, 0.5]])
GRID = policy.metropolis(topology.grid(3, 4))
BOTH = pytest.mark.parametrize("raw", [False, True], ids=["centred", "raw"])


@BOTH
def test_every_rival_is_another_chance_to_be_overtaken(raw):
    for C in (2, 3, 10):
        for two, several in (
            (theory.sufficient(TWO, 0.5, 2.0, raw=raw), theory.sufficient(TWO, 0.5, 2.0, raw=raw, classes=C)),
            (theory.finite_round(TWO, 0.9, 1, 3, raw=raw), theory.finite_round(TWO, 0.9, 1, 3, raw=raw, classes=C)),
            (
                theory.social_learning(TWO, 0.5, 1, 9, raw=raw),
                theory.social_learning(TWO, 0.5, 1, 9, raw=raw, classes=C),
            ),
        ):
            np.testing.assert_array_equal(several.value, (C - 1) * two.value)
            assert any("every pair" in one for one in several.assumptions) == (C > 2)


@pytest.mark.parametrize("C", [2, 3, 4, 10])
def test_rounding_errors_are_those_of_the_completed_statistic(C):
    # What an error of 1 in each number becomes; of two classes the one number is left as it is.
    entries = np.array([[1.0, -1.0]]) if C == 2 else completed(np.eye(C - 1))
    for y in range(C):
        for i in range(1, C):
            difference = entries[:, y] - entries[:, (y + i) % C]
            assert rounding_errors(C)[y, i - 1] == (difference**2).sum()


def test_finite_precision_by_hand():
    # C = 3, b = 2: entries lie in ±2β·2/3, the step is (8/3)/3 = 8/9; five errors: V = 5·(64/81)/4 · (5/8, 1/2).
    bound = theory.finite_precision(TWO, 0.9, 1.0, 1, bits=2, classes=3)
    V = 5 * (64 / 81) / 4 * np.array([10 / 16, 1 / 2])
    np.testing.assert_allclose(bound.parts["V"][1], V, rtol=1e-13)
    r = np.array([0.9 - 2 / 6, 0.9 - 2 / 3])
    np.testing.assert_allclose(bound.value[1], 2 * np.exp(-(r**2) / (2 * (np.array([10 / 16, 1 / 2]) + V))), rtol=1e-13)
    assert bound.parts["B_total"].tolist() == [0, 8]  # two numbers of two bits over two links
    raw = theory.finite_precision(TWO, 0.9, 1.0, 1, bits=2, classes=3, raw=True)
    np.testing.assert_allclose(raw.parts["V"], bound.parts["V"] / 4, rtol=1e-13)


def test_bits_are_those_that_a_run_counts():
    scores, _ = Ballots(np.full(12, 0.8), 5).draw(3, np.random.default_rng(0))
    run = collaborate(scores, GRID, 7, Quantised(DeGroot(), bits=3, bound=2.0), rng=0)
    assert (run.bits == theory.finite_precision(GRID, 0.5, 1.0, 7, 3, classes=5).parts["B_total"][-1]).all()


@pytest.mark.parametrize("pair", [(0, 1), (0, 3), (3, 0)])
def test_rounding_spreads_a_difference_no_more_than_the_bound_says(pair):
    """The variance of the rounding of c_y - c_j after t rounds, of many runs over one item, is at most V^q."""
    a, b = pair
    rng = np.random.default_rng(1)
    one = rng.normal(size=(1, 12, 4))
    one -= one.mean(axis=2, keepdims=True)
    one /= np.abs(one).max()
    bits, bound, n = 2, 1.5, 20_000
    rule = Quantised(DeGroot(), bits=bits, bound=bound)
    x = collaborate(np.repeat(one, n, axis=0), GRID, 4, rule, rng=2).statistics[-1]
    measured = (x[..., a] - x[..., b]).var(axis=0)
    beta = float(theory.coarseness(bound, classes=4))
    worst = theory.finite_precision(GRID, 0.5, beta, 4, bits, classes=4).parts["V"][-1]
    i = (b - a) % 4 - 1
    V = worst * rounding_errors(4)[a, i] / 6
    assert (measured < V).all()
    # Half a step away from two levels the variance is the proxy itself; here it is not much smaller.
    assert (measured > 0.3 * V).all()


def test_pac_by_hand():
    # N = 100, η = 0.5, β = 1, ρ = 0.01, log(1/ε) = 2, C = 8: seven rivals, √(C/2) = 2.
    e = np.exp(-2)
    assert theory.pac(0.2, 0.01, 1, 0.5, e, 100, classes=8).value == pytest.approx(0.2 + 7 * 0.08 + 0.8 * 16, rel=1e-13)
    refined = theory.pac(0.2, 0.01, 1, 0.5, e, 100, refined=True, classes=8).value
    assert refined == pytest.approx(0.2 + 7 * 0.04 + 14 * 0.4 + 0.1, rel=1e-13)
    raw = theory.pac(0.2, 0.01, 1, 0.5, e, 100, raw=True, classes=8).value
    assert raw == pytest.approx(0.2 + 7 * 0.04 + 0.1, rel=1e-13)


def test_margin_loss_lies_between_error_and_margin_counting():
    rng = np.random.default_rng(0)
    f, y = rng.normal(size=(200, 4, 3)), rng.integers(3, size=200)
    loss = theory.margin_loss(f, y, 0.7, classes=3)
    lead = [[f[n, k, y[n]] - max(np.delete(f[n, k], y[n])) for k in range(4)] for n in range(200)]
    np.testing.assert_allclose(loss, np.clip(1 - np.array(lead) / 0.7, 0, 1).mean(axis=0), rtol=1e-13)
    assert ((f.argmax(axis=2) != y[:, None]).mean(axis=0) <= loss).all()
    np.testing.assert_allclose(theory.margin_loss(f[:, 2], y, 0.7, classes=3), loss[2], rtol=1e-13)


@BOTH
def test_training_has_as_many_chances_to_fail_as_there_are_pairs(raw):
    settings = (TWO, 0.1, 1.0, 2000, 0.0, 0.3 if raw else 0.5)
    two, four = (theory.margin_training(*settings, raw=raw, classes=C) for C in (2, 4))
    np.testing.assert_allclose(four.parts["failure"], 6 * two.parts["failure"])
    if not raw:
        away = theory.margin_training(*settings, classes=4, offset=0.05)
        further = theory.margin_training(TWO, 0.15, *settings[2:], classes=4)
        assert away.value == pytest.approx(float(further.value), rel=1e-13)


# Two classes as vectors


def test_two_classes_as_vectors_have_the_same_margins():
    c, y = World(np.linspace(0.4, 0.9, 12), center=0.1).draw(400, np.random.default_rng(3))
    vectors, places = np.stack([c / 2, -c / 2], axis=2), np.where(y > 0, 0, 1)
    np.testing.assert_allclose(margins.rivals(vectors, places, 2)[..., 0], c * y[:, None], rtol=1e-14)
    np.testing.assert_allclose(
        theory.margin_loss(vectors, places, 0.8, classes=2), theory.margin_loss(c, y, 0.8), rtol=1e-14
    )
    for raw in (False, True):
        found = margins.score_range(vectors, raw)
        assert found == pytest.approx(margins.score_range(c[:, :, None], raw), rel=1e-14)
    means = np.stack([vectors[places == y].mean(axis=0) for y in (0, 1)])
    pairs = theory.pairwise_centering(GRID, means, vectors.mean(axis=0))
    one = theory.centering_effect(GRID, c[y > 0].mean(axis=0), c[y < 0].mean(axis=0), c.mean(axis=0))
    assert (pairs.raw_margin, pairs.centred_margin) == pytest.approx((one.raw_margin, one.centred_margin), rel=1e-12)
    assert pairs.half_difference[0, 1] == pytest.approx(one.half_difference, rel=1e-12)
    assert (pairs.midpoint[0, 1], pairs.center[0, 1]) == pytest.approx((one.midpoint, one.center), rel=1e-12)


@BOTH
@pytest.mark.parametrize("bits", [None, 3])
@pytest.mark.parametrize("exact", [False, True])
def test_two_classes_as_vectors_have_the_same_certificate(monkeypatch, raw, bits, exact):
    rng = np.random.default_rng(4)
    y = np.where(rng.random(3000) < 0.5, 1, -1)
    c = np.tanh(y[:, None] + rng.normal(size=(3000, 12)))
    errors = None if bits is None else np.full((21, 12), 0.1)
    settings = {"beta": 1.0, "raw": raw, "bits": bits, "errors": errors, "exact": exact}
    one = theory.certify(c, y, GRID, 20, **settings)
    vectors = np.stack([c / 2, -c / 2], axis=2)
    monkeypatch.setattr(certificate, "labelled", lambda *given: (vectors, np.where(y > 0, 0, 1)))
    two = theory.certify(c, y, GRID, 20, **settings)
    np.testing.assert_allclose(two.bound, one.bound, rtol=1e-12)
    assert not np.isnan(one.bound[-1]).any()
    for name in ("delta", "beta", "limit", "measured_limit", "inflation", "items", "plus", "minus"):
        assert getattr(two, name) == pytest.approx(getattr(one, name), rel=1e-12, nan_ok=True)
    np.testing.assert_allclose(two.correlations, one.correlations, atol=1e-12)
    np.testing.assert_array_equal(two.errors, one.errors)


# Estimates and certificates

WORLD = Ballots(np.linspace(0.65, 0.97, 12), 3, center=np.array([0.05, 0.0, -0.05]))


def test_the_parts_by_hand():
    rng = np.random.default_rng(5)
    c, y = WORLD.draw(600, rng)
    noise = 0.1 * rng.normal(size=c.shape)  # so that there are no ties, which rounding breaks either way
    c += noise - noise.mean(axis=2, keepdims=True)
    found = theory.certify(c, y, GRID, 10)
    f = np.einsum("nkc,k->nc", c, GRID.perron)
    for a in range(3):
        for b in range(3):
            if a != b:
                x = f[y == a, a] - f[y == a, b]
                low, high = stats.t.interval(1 - 0.05 / 3, len(x) - 1, x.mean(), stats.sem(x))
                assert found.margins.means[a, b] == pytest.approx((low + high) / 2)
                assert found.margins.lower[a, b] == pytest.approx(low)
    assert found.items == tuple(np.bincount(y))
    assert found.delta == pytest.approx(np.nanmin(found.margins.lower))
    by_class = [
        sum(theory.finite_round(GRID, found.margins.lower[a, b], found.beta, 10).value for b in range(3) if b != a)
        for a in range(3)
    ]
    np.testing.assert_allclose(found.bound, np.max(by_class, axis=0))
    assert found.limit <= theory.sufficient(GRID, found.delta, found.beta, classes=3).value
    np.testing.assert_allclose(found.errors, collaborate(c, GRID, 10).errors(y))
    assert found.measured_limit == pytest.approx((f.argmax(axis=1) != y).mean())
    pairs = [c[:, k, a] - c[:, k, b] for k in range(12) for a in range(3) for b in range(3)]
    assert found.beta == pytest.approx(max(max(np.ptp(x), abs(x).max()) for x in pairs) / 2)
    assert theory.certify(c, y, GRID, 1, raw=True).beta == pytest.approx(max(abs(x).max() for x in pairs))
    np.testing.assert_allclose(margins.estimate(c, y, GRID).means, found.margins.means)
    content = json.loads(found.to_json())
    assert content["margins"][0][0] is None
    assert content["margins"][0][1] == found.margins.means[0, 1]


def test_few_bits_have_each_rival_with_its_own_rounding():
    c, y = WORLD.draw(4000, np.random.default_rng(6))
    some = np.zeros((21, 12))
    found = theory.certify(c, y, GRID, 20, bits=4, errors=some, coarseness=1.2)
    coarse = theory.finite_precision(GRID, found.delta, 1.2, 20, 4, classes=3).value[-1]
    fine = theory.finite_round(GRID, np.nanmax(found.margins.lower), 1.2, 20).value[-1]
    assert (found.bound[-1] < coarse).all()
    assert (found.bound[-1] > fine).all()


def test_the_margin_holds_as_often_as_it_says():
    rng = np.random.default_rng(7)
    true = WORLD.leads(GRID)
    held = sum((margins.estimate(*WORLD.draw(240, rng), GRID).lower <= true)[true < np.inf].all() for _ in range(600))
    assert held >= stats.binom.ppf(0.001, 600, 0.95)
    assert held < 600


def test_the_guarantee_is_above_the_error_on_fresh_items():
    rng = np.random.default_rng(8)
    found = theory.certify(*WORLD.draw(4000, rng), GRID, 20, beta=1.0)
    c, y = WORLD.draw(20_000, rng)
    assert (collaborate(c, GRID, 20).errors(y)[-1] < found.bound[20]).all()
    assert found.bound[20].max() < 1
    assert not found.vacuous


def test_the_offset_of_centers():
    p = policy.uniform(topology.complete(2))
    y = np.repeat([0, 1, 2], [50, 30, 20])
    scores = np.zeros((100, 2, 3))
    scores[y == 2] = [0.8, -0.4, -0.4]  # items of the third class look like the first
    # f_0 - f_1 is 1.2 on a fifth of all items and 0 on those of classes 0 and 1; f_0 - f_2 is 1.2 on 2/7 of its own.
    assert margins.centering_offset(scores, y, p) == pytest.approx(0.24)
    assert margins.centering_offset(scores[:, :, 0], y < 2, p) == 0


def test_third_classes_have_their_say_in_a_center():
    """Class 2 looks like class 0: the mean over all items lies away from the midpoint of the pair (0, 1)."""
    means = np.array([[2.0, -1.0, -1.0], [-1.0, 2.0, -1.0], [0.5, -1.0, 0.5]])[:, None] + np.zeros((3, 4, 1))
    p = policy.uniform(topology.ring(4))
    effect = theory.pairwise_centering(p, means, means.mean(axis=0))
    assert effect.half_difference[0, 1] == 3
    assert effect.midpoint[0, 1] == 0
    assert effect.center[0, 1] == pytest.approx(0.5)
    assert effect.center[1, 0] == pytest.approx(-0.5)


@pytest.mark.data
@pytest.mark.parametrize("name", ["wall-robot-0", "multiple-features-0"])
def test_the_guarantee_for_real_scores_is_not_below_the_error(name):
    record = Path(os.environ.get("COLLEGIUM_DATA", "")) / "records" / f"{name}.npz"
    if not record.exists():
        pytest.skip(f"{record.name} is not there")
    with np.load(record) as file:
        f, y = file["test"].astype(float), file["y_test"]
    f = np.exp(f - f.max(axis=2, keepdims=True))
    c = f / f.sum(axis=2, keepdims=True) - 1 / f.shape[2]  # bounded: differences of probabilities
    p = policy.metropolis(topology.ring(c.shape[1]))
    found = theory.certify(c, y, p, 60, beta=1.0, raw=True)
    assert found.beta_is_given
    known = ~np.isnan(found.bound)
    assert (found.errors[known] <= found.bound[known]).all()
    assert found.limit >= found.measured_limit
    assert (found.delta > 0) == (name == "multiple-features-0")


REFUSED = {
    "one class": (lambda: theory.sufficient(TWO, 0.1, 1.0, classes=1), AssumptionError, "classes must be a whole"),
    "classes": (lambda: theory.pac(0.1, 0.1, 1, 1, 0.1, 9, classes=2.5), AssumptionError, "classes must be a whole"),
    "entries": (lambda: margins.rivals([[1.0, 2.0]], [0], 3), AssumptionError, "3 entries each"),
    "loss": (lambda: theory.margin_loss([[1.0, 2.0]], [0], 0.5, classes=3), AssumptionError, r"\(n, 3\) or \(n, K, 3"),
    "raw offset": (
        lambda: theory.margin_training(TWO, 0.1, 1.0, 9, 0.0, 0.1, raw=True, classes=3, offset=0.1),
        AssumptionError,
        "raw scores have no centers",
    ),
    "means": (lambda: theory.pairwise_centering(TWO, np.zeros((3, 3, 3)), np.zeros((2, 3))), AssumptionError, "shape"),
    "too few": (lambda: theory.certify(np.zeros((5, 2, 3)), [0, 0, 1, 1, 2], TWO, 1), AssumptionError, "1 of class 2"),
    "label": (lambda: theory.certify(np.zeros((2, 2, 3)), [0, 3], TWO, 1), LabelError, "label 3 of item 1"),
    "two as vectors": (lambda: theory.certify(np.zeros((2, 2, 2)), [0, 1], TWO, 1), ScoreError, "one number"),
    "range": (
        lambda: theory.certify(*WORLD.draw(90, np.random.default_rng(0)), GRID, 1, beta=0.5),
        AssumptionError,
        "leave the range",
    ),
    "plus": (
        lambda: theory.certify(*WORLD.draw(90, np.random.default_rng(0)), GRID, 1).plus,
        AssumptionError,
        "here are 3",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_violated_assumptions_are_named(name):
    call, kind, sentence = REFUSED[name]
    with pytest.raises(kind, match=sentence):
        call()
