"""What is learned from held-out items: thresholds by Prop. 1, scales by likelihood, and who is better than the team."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.naive_bayes import GaussianNB

from collegium.agents import SklearnModel, temperature
from collegium.agents.cross_fitting import fit_agents
from collegium.agents.held_out import class_places, compare, fit_pipeline, log_prior, midpoint, wrong_items
from collegium.agents.preparation import Preparation
from collegium.errors import ModelError

RNG = np.random.default_rng(0)


def two(f):
    return np.column_stack([-f, f]) / 2


def test_the_midpoint_of_two_classes_has_the_largest_margin():
    """Prop. 1: the margin of both classes' means at threshold zero is D - |center - midpoint|."""
    y = np.where(RNG.random(500) < 0.1, 1, -1)
    f = 2 * y + 3 + RNG.normal(size=500)
    plus, minus = f[y > 0].mean(), f[y < 0].mean()
    chi = midpoint(two(f), (y > 0).astype(int))
    assert chi[1] - chi[0] == pytest.approx((plus + minus) / 2)
    grid = np.linspace(-5, 8, 1301)
    best = grid[np.argmax(np.minimum(plus - grid, grid - minus))]
    assert chi[1] - chi[0] == pytest.approx(best, abs=0.01)
    assert abs(chi[1] - chi[0] - f.mean()) > 1  # the mean is another where classes are unequal


def test_the_midpoint_of_several_classes_fits_the_midpoints_of_all_pairs():
    places = RNG.integers(0, 4, 300)
    f = RNG.normal(size=(300, 4)) + 3 * np.eye(4)[places] + [1.0, 0.0, -2.0, 1.0]
    f -= f.mean(axis=1, keepdims=True)
    pairs = [(a, b) for a in range(4) for b in range(4) if a != b]
    rows = np.array([np.eye(4)[a] - np.eye(4)[b] for a, b in pairs])
    middle = [
        np.mean([(f[places == a, a] - f[places == a, b]).mean(), (f[places == b, a] - f[places == b, b]).mean()])
        for a, b in pairs
    ]
    np.testing.assert_allclose(midpoint(f, places), np.linalg.lstsq(rows, middle, rcond=None)[0], atol=1e-12)


def test_evidence_that_is_right_already_has_its_midpoint_at_zero():
    """Three normal distributions on a line: their log-likelihoods have no common mean at zero, but each pair has."""
    places = np.repeat([0, 1, 2], 20_000)
    x = places - 1 + RNG.normal(size=60_000)
    f = -((x[:, None] - [-1, 0, 1]) ** 2) / 2
    f -= f.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(midpoint(f, places), 0, atol=0.02)
    assert np.abs(np.mean([f[places == c].mean(axis=0) for c in range(3)], axis=0)).max() > 0.3


def test_the_prior_is_what_the_labels_say():
    assert log_prior(np.array([1, 0, 0, 0]), 2).tolist() == pytest.approx([np.log(3) / 2, -np.log(3) / 2])
    logs = np.log([3, 2, 1])
    np.testing.assert_allclose(log_prior(np.array([0, 0, 1]), 3), logs - logs.mean())  # as if one more of each


@pytest.mark.parametrize("C", [2, 3])
def test_an_agent_with_a_right_threshold_keeps_it(C):
    """Calibrated log-probabilities at five to one: any center would be wrong."""
    weights = np.array([5.0, 1.0, 1.0][:C])
    places = RNG.choice(C, 3000, p=weights / weights.sum())
    x = places + RNG.normal(size=3000)
    f = -((x[:, None] - np.arange(C)) ** 2) / 2 + np.log(weights)
    scores = (f - f.mean(axis=1, keepdims=True))[:, None]
    scores, y = (scores[:, :, 1] - scores[:, :, 0], np.where(places, 1, -1)) if C == 2 else (scores, places)
    pipeline = fit_pipeline(3 * scores, y, center="auto", calibrate=True)
    assert not pipeline.center.any()
    assert pipeline.temperature[0] == pytest.approx(3, rel=0.15)


@pytest.mark.parametrize("C", [2, 3])
def test_an_agent_with_an_offset_loses_it(C):
    """The same evidence plus an offset of its own: the threshold of the posterior comes back."""
    weights = np.array([5.0, 1.0, 1.0][:C])
    places = RNG.choice(C, 6000, p=weights / weights.sum())
    x = 2 * places + RNG.normal(size=6000)
    f = -((x[:, None] - 2 * np.arange(C)) ** 2) / 2 + np.log(weights)
    f -= f.mean(axis=1, keepdims=True)
    offset = np.array([4.0, -4.0, 0.0][:C])
    moved = (f + offset - offset.mean())[:, None]
    scores, y = (moved[:, :, 1] - moved[:, :, 0], np.where(places, 1, -1)) if C == 2 else (moved, places)
    pipeline = fit_pipeline(scores, y, center="auto", calibrate=True)
    assert pipeline.center.any()
    ready = pipeline(scores)[:, 0]
    wrong = wrong_items(two(ready) if C == 2 else ready, places).mean()
    assert wrong <= wrong_items(f, places).mean() + 0.01
    assert wrong < wrong_items(moved[:, 0], places).mean() - 0.05


def test_the_scale_of_no_agent_dominates():
    y = RNG.choice([-1, 1], 400)
    f = y[:, None] * 1.0 + RNG.normal(size=(400, 3))
    scales = np.array([1e-3, 1.0, 1e3])
    ready = fit_pipeline(f * scales, y, center="auto", calibrate=True)(f * scales)
    expected = np.column_stack([f[:, k] / temperature(f[:, k], y) for k in range(3)])
    np.testing.assert_allclose(ready, expected, rtol=1e-6)


def test_vector_scaling_of_two_classes_is_a_slope_and_a_threshold():
    y = np.where(RNG.random(2000) < 0.2, 1, -1)
    f = (y + RNG.normal(size=2000)) * 2 + 5
    pipeline = fit_pipeline(f[:, None], y, center="auto", calibrate="vector")
    z = pipeline(f[:, None])[:, 0]
    loss = np.logaddexp(0, -z * y).mean()
    best = minimize(lambda w: np.logaddexp(0, -(w[0] * f + w[1]) * y).mean(), [1.0, 0.0]).fun
    assert loss == pytest.approx(best, abs=2e-3)


@pytest.mark.parametrize("C", [2, 3])
def test_bounded_scores_keep_the_threshold(C):
    places = RNG.integers(0, C, 500)
    f = np.eye(C)[places] * 2 + RNG.normal(size=(500, C)) + [3.0, 0.0, 0.0][:C]
    f -= f.mean(axis=1, keepdims=True)
    scores, y = (f[:, 1] - f[:, 0], np.where(places, 1, -1)) if C == 2 else (f, places)
    plain, squeezed = (
        fit_pipeline(scores[:, None], y, center="auto", calibrate=True, bounded=b) for b in (False, True)
    )
    if C == 2:
        assert plain.center.any()
        assert (np.sign(plain(scores[:, None])) == np.sign(squeezed(scores[:, None]))).all()
    else:
        assert not squeezed.center.any()


def test_a_team_is_compared_with_its_best_member():
    y = np.where(np.arange(400) % 2, 1, -1)
    alone = np.column_stack([y * 1.0, np.where(np.arange(400) < 40, -y, y)])  # none wrong, and 10 %
    team = np.where(np.arange(400) < 80, -y, y) * 1.0
    errors, worse = compare(team, alone, y)
    assert (errors.items, errors.team, errors.best) == (400, 0.2, 0)
    assert errors.alone.tolist() == [0.0, 0.1]
    assert worse
    assert not compare(alone[:, 0], alone, y)[1]
    few = np.where(np.arange(400) == 0, -y, y) * 1.0  # one item in 400 is chance
    assert not compare(few, alone, y)[1]


def test_a_tie_is_wrong_for_every_class():
    assert wrong_items(np.array([[1.0, 1.0, -2.0], [2.0, 0.0, -2.0]]), np.array([0, 0])).tolist() == [True, False]
    assert wrong_items(np.zeros((1, 2, 3)), np.array([2])).tolist() == [[True, True]]
    assert class_places(np.array([-1, 1]), 2).tolist() == [0, 1]


# Cross-fitting


class Memory(GaussianNB):
    """Is certain of what it has seen, and knows nothing of the rest."""

    def fit(self, X, y):
        self.seen_ = dict(zip(X[:, 0].tolist(), y.tolist(), strict=True))
        return super().fit(X, y)

    def predict_proba(self, X):
        answers = [self.seen_.get(one) for one in X[:, 0].tolist()]
        places = [None if answer is None else self.classes_.tolist().index(answer) for answer in answers]
        C = len(self.classes_)
        return np.array([np.full(C, 1 / C) if place is None else np.eye(C)[place] for place in places])

    def predict_log_proba(self, X):
        return np.log(np.clip(self.predict_proba(X), 1e-300, 1))


@pytest.mark.parametrize("C", [2, 4])
@pytest.mark.parametrize(("how", "count"), [("none", 0), ("part", 12), ("in turn", 60)])
def test_held_out_items_were_never_seen(C, how, count):
    y = np.where(np.arange(60) % 2, 1, -1) if C == 2 else np.arange(60) % 4
    view = np.arange(60.0)[:, None]
    models = [SklearnModel(Memory()), SklearnModel(Memory())]
    settings = {"classes": C, "validation": 0.2, "wants_training": True, "workers": 1}
    fitted = fit_agents("ab", models, [view, view], y, np.random.SeedSequence(0), held_out=how, **settings)
    form = (2,) if C == 2 else (2, C)
    assert fitted.held_out.shape == (count, *form)
    assert (fitted.held_out == 0).all()
    assert len(fitted.y_held_out) == count
    assert (np.abs(fitted.train).reshape(len(fitted.train), -1).max(axis=1) > 1).all()
    assert len(fitted.models[0].estimator_.seen_) == (48 if how == "part" else 60)


def test_one_item_of_a_class_cannot_be_held_out():
    y = np.array([1, *[-1] * 9])
    settings = {"classes": 2, "validation": 0.2, "wants_training": False, "workers": 1, "held_out": "in turn"}
    with pytest.warns(UserWarning, match="a class has a single item"):
        fitted = fit_agents(
            "a", [SklearnModel(GaussianNB())], [np.arange(10.0)], y, np.random.SeedSequence(0), **settings
        )
    assert fitted.held_out.shape == (0, 1)


@pytest.mark.parametrize(
    ("given", "understood"),
    [
        (("auto", "auto", False), ("auto", True, False)),
        ((True, "auto", False), ("mean", False, False)),
        ((False, True, True), ("none", True, True)),
        (("mean", "vector", 0), ("mean", "vector", False)),
        (("midpoint", False, False), ("midpoint", False, False)),
    ],
)
def test_settings_by_name(given, understood):
    assert tuple(Preparation.of(*given)) == understood


@pytest.mark.parametrize("given", [("average", "auto"), (None, "auto"), (1, "auto"), ("auto", None), ("auto", "warm")])
def test_settings_that_are_none(given):
    with pytest.raises(ModelError, match="must be"):
        Preparation.of(*given, False)


def test_how_items_are_held_out():
    class Stopping:
        uses_validation = True

    assert Preparation.of("auto", "auto", False).held_out([GaussianNB()]) == "in turn"
    assert Preparation.of("auto", "auto", False).held_out([GaussianNB(), Stopping()]) == "part"
    assert Preparation.of("mean", True, False).held_out([GaussianNB()]) == "part"
    assert Preparation.of("mean", "auto", False).held_out([GaussianNB()]) == "none"
