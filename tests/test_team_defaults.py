"""Safe by default: mixed models, any class balance, no agent's scale dominates, and round 0 is what agents do alone.

Fewer repetitions of what benchmarks/defaults.py measures.
"""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from collegium import Team, policy, topology
from collegium._util.measures import mean_interval
from tiny_data import real_data

SIX = policy.metropolis(topology.complete(6))
COLUMNS = [list(range(5 * k, 5 * k + 5)) for k in range(6)]
X, Y = load_breast_cancer(return_X_y=True)


def scaled(model):
    return make_pipeline(StandardScaler(), model)


MODELS = [
    scaled(LogisticRegression()),
    scaled(SVC()),
    RandomForestClassifier(21, random_state=0),  # an odd number: a tie would be wrong for both classes
    scaled(KNeighborsClassifier()),
    GaussianNB(),
    DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
]


def team_of(models=MODELS, columns=COLUMNS, **settings):
    network = policy.metropolis(topology.complete(len(models)))
    members = [(f"m{k}", clone(model)) for k, model in enumerate(models)]
    return Team(members, network, rounds=1, columns=columns, random_state=0, workers=1, **settings)


def columns_of(table, columns):
    return table[:, columns]


def alone(team, table, columns=COLUMNS):
    """What the fitted models decide by themselves, shape (n, K)."""
    said = [model.estimator_.predict(table[:, own]) for model, own in zip(team.models_, columns, strict=True)]
    return np.column_stack([(one > 0).astype(int) if len(team.classes_) == 2 else one for one in said])


def rare(seed=0):
    """5 % positives: all benign items, and 19 malignant ones."""
    some = np.random.default_rng(seed).permutation(np.flatnonzero(Y == 0))[:19]
    chosen = np.concatenate([np.flatnonzero(Y == 1), some])
    return X[chosen], 1 - Y[chosen]


@pytest.fixture(scope="module")
def folds():
    """One five-fold cross-validation of both tables: the team, its statistics and what its members do alone."""
    found = {}
    for name, (table, y) in {"as it is": (X, Y), "5 % positives": rare()}.items():
        found[name] = []
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(table, y):
            team = team_of().fit(table[train], y[train])
            found[name].append((team, table[test], y[test]))
    return found


@pytest.mark.parametrize("balance", ["as it is", "5 % positives"])
def test_round_0_is_what_agents_do_alone(folds, balance):
    for team, table, y in folds[balance]:
        inside = team.run(table).decisions(0)
        by_itself = alone(team, table)
        kept = team.center_ == 0
        ties = team.statistics(table) == 0
        assert ((inside > 0) == by_itself)[:, kept][~ties[:, kept]].all()
        errors = team.run(table).errors(y)[0]
        np.testing.assert_allclose(errors, (by_itself != y[:, None]).mean(axis=0), atol=0.03)


@pytest.mark.parametrize("balance", ["as it is", "5 % positives"])
def test_the_team_is_not_worse_than_its_best_member(folds, balance):
    wrong = np.concatenate([team.predict(table) != y for team, table, y in folds[balance]])
    each = np.concatenate([alone(team, table) != y[:, None] for team, table, y in folds[balance]])
    best = each[:, each.mean(axis=0).argmin()]
    gap = mean_interval(wrong.astype(float) - best)
    assert gap.mean <= gap.half


def test_the_papers_centering_is_not_for_unequal_classes(folds):
    """What the default is there for: the mean of training scores is no threshold where classes are rare."""
    team, table, y = folds["5 % positives"][0]
    train = next(StratifiedKFold(5, shuffle=True, random_state=0).split(*rare()))[0]
    paper = team_of(center="mean").fit(rare()[0][train], rare()[1][train])
    assert (paper.predict(table) != y).mean() > 5 * (team.predict(table) != y).mean() + 0.1


def test_probabilities_are_calibrated_by_held_out_items(folds):
    team_loss = np.mean([log_loss(y, team.predict_proba(table)) for team, table, y in folds["as it is"]])
    raw = [1 / (1 + np.exp(-team.decision_function(table))) for team, table, _ in folds["as it is"]]
    pooled = np.mean([log_loss(y, p) for p, (_, _, y) in zip(raw, folds["as it is"], strict=True)])
    assert team_loss < pooled
    assert all(0.1 < team.pool_temperature_ < 1 for team, _, _ in folds["as it is"])


def test_the_prior_is_said(folds):
    team, _, _ = folds["5 % positives"][0]
    train = next(StratifiedKFold(5, shuffle=True, random_state=0).split(*rare()))[0]
    y = rare()[1][train]
    assert team.prior_ == pytest.approx(np.log((y == 1).sum() / (y == 0).sum()))


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_no_agents_scale_dominates(scale):
    class Loud(LogisticRegression):
        def decision_function(self, X):
            return scale * super().decision_function(X)

    usual = team_of([LogisticRegression(max_iter=5000)] * 3, COLUMNS[:3]).fit(X[::2], Y[::2])
    loud = team_of(
        [LogisticRegression(max_iter=5000), Loud(max_iter=5000), LogisticRegression(max_iter=5000)], COLUMNS[:3]
    )
    loud.fit(X[::2], Y[::2])
    np.testing.assert_allclose(loud.statistics(X), usual.statistics(X), rtol=1e-6)


def test_an_agent_whose_threshold_is_elsewhere_gets_one():
    class Shifted(LogisticRegression):
        def decision_function(self, X):
            return super().decision_function(X) + 40

    models = [scaled(LogisticRegression()), make_pipeline(StandardScaler(), Shifted()), scaled(LogisticRegression())]
    team = team_of(models, COLUMNS[:3]).fit(X[::2], Y[::2])
    assert (team.center_ != 0).tolist() == [False, True, False]
    assert team.run(X[1::2]).errors(Y[1::2])[0][1] < 0.2
    assert (alone(team, X[1::2], COLUMNS[:3])[:, 1] != Y[1::2]).mean() > 0.3


def test_a_team_that_is_worse_than_its_best_member_says_so():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    good = y + 0.1 * rng.normal(size=400)
    noise = rng.normal(size=(400, 4))

    class Sure(GaussianNB):
        """Believes in what it has learned by heart, and whatever it says is far from 0.5."""

        def predict_proba(self, X):
            p = 1e-3 + 0.998 * (X[:, 0] > 0)
            return np.column_stack([1 - p, p])

    table = np.column_stack([good, noise])
    network = policy.Policy(np.full((5, 5), 0.2))
    team = Team(
        [("good", LogisticRegression()), *((f"noise {k}", Sure()) for k in range(4))],
        network,
        columns=[[k] for k in range(5)],
        calibrate=False,
        rounds=1,
    )
    with pytest.warns(
        UserWarning, match=r"on 400 held-out items .* wrong about \d\d\.\d %, its member 'good' alone about"
    ):
        team.fit(table, y)
    assert team.held_out_.items == 400
    assert team.held_out_.team > team.held_out_.alone[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calm = clone(team).set_params(calibrate="auto").fit(table, y)  # temperatures silence the noise
    assert calm.held_out_.team <= 0.01


def test_held_out_errors_are_those_of_new_items(folds):
    said = [team.held_out_.team for team, _, _ in folds["as it is"]]
    seen = np.mean([(team.predict(table) != y).mean() for team, table, y in folds["as it is"]])
    assert abs(np.mean(said) - seen) < 0.02
    assert folds["as it is"][0][0].held_out_.items == 455


def test_few_items_of_a_class_leave_scores_as_they_are():
    y = np.zeros(40, int)
    y[0] = 1
    with pytest.warns(UserWarning, match="a class has a single item"):
        team = team_of([GaussianNB()] * 2, COLUMNS[:2]).fit(X[:40], y)
    assert team.held_out_ is None
    np.testing.assert_array_equal(team.statistics(X), team.scores(X))


# Ten digits

PLACES = np.arange(64).reshape(8, 8)
CUTS = (slice(0, 3), slice(3, 6), slice(6, 8))
PATCHES = [PLACES[down, right].ravel().tolist() for down in CUTS for right in CUTS]


def test_ten_digits_beside_soft_voting():
    images, digits = load_digits(return_X_y=True)
    images = images / 16
    logistic = LogisticRegression(max_iter=1000)
    voters = [
        (f"m{k}", make_pipeline(FunctionTransformer(columns_of, kw_args={"columns": columns}), logistic))
        for k, columns in enumerate(PATCHES)
    ]
    gaps = []
    for train, test in StratifiedShuffleSplit(4, train_size=400, test_size=600, random_state=0).split(images, digits):
        team = team_of([logistic] * 9, PATCHES).fit(images[train], digits[train])
        voting = VotingClassifier(voters, voting="soft").fit(images[train], digits[train])
        gaps.append(voting.score(images[test], digits[test]) - team.score(images[test], digits[test]))
        assert team.score(images[test], digits[test]) > 0.85
    gap = mean_interval(gaps)
    assert gap.mean <= max(gap.half, 0.01)


@pytest.mark.data
def test_six_views_of_numerals():
    """The multiple features of handwritten numerals: at least 98 % right with six logistic regressions."""
    folder = real_data("multiple-features") / "multiple-features"
    parts = [
        np.loadtxt(folder / f"mfeat-{name}.csv", delimiter=",", skiprows=1)
        for name in ("fac", "fou", "kar", "mor", "pix", "zer")
    ]
    views, y = [part[:, :-1] for part in parts], parts[0][:, -1].astype(int)
    members = [(f"m{k}", scaled(LogisticRegression(C=0.1, max_iter=300))) for k in range(6)]
    right = []
    for train, test in list(StratifiedKFold(5, shuffle=True, random_state=0).split(views[0], y))[:2]:
        team = Team(members, SIX, rounds=1, workers=1, random_state=0)
        team.fit([view[train] for view in views], y[train])
        right.append(team.score([view[test] for view in views], y[test]))
    assert np.mean(right) >= 0.98


def test_the_validation_part_is_the_same_in_every_fit():
    X = np.random.default_rng(0).normal(size=(60, 2)) + np.array([0, 1] * 30)[:, None]
    y = np.array([0, 1] * 30)
    team = Team(
        [(name, GaussianNB()) for name in "ab"],
        policy.metropolis(topology.complete(2)),
        columns=[[0], [1]],
        center="mean",
        calibrate=True,
    )
    first, second = (team.fit(X, y).temperature_ for _ in range(2))
    np.testing.assert_array_equal(first, second)
