"""How good a team is by default, and tuned: beside soft voting, stacking and its best member, same views and splits.

    python benchmarks/defaults.py [--tables cancer wine …] [--repetitions 20]

Each table is cut into views, one per member; every repetition is a new stratified five-fold cross-validation. A line
has the mean over repetitions, and the mean difference to the team with the 95 % interval of Student over repetitions.
The tuned team is the same after `tune()`, by the items its `fit` held out; stacking is a logistic regression of the
members' probabilities of items held out alike (`StackingClassifier`, five folds), as a centre could have it.
Numbers are errors, balanced errors (the mean over classes) in per cent, and log-losses.
"""

from __future__ import annotations

import argparse
import copy
import os
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    GradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from collegium import Team, policy, topology
from collegium._util.measures import mean_interval

Columns = list[list[int]]


class Table(NamedTuple):
    """Items, their classes, and what each member sees."""

    X: Any
    y: Any
    columns: Columns
    members: list[Any]


def six_models() -> list[Any]:
    """As different as scikit-learn has them."""
    return [
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        make_pipeline(StandardScaler(), SVC()),
        RandomForestClassifier(60, random_state=0),
        make_pipeline(StandardScaler(), KNeighborsClassifier()),
        GaussianNB(),
        GradientBoostingClassifier(n_estimators=50, random_state=0),
    ]


def _five_each() -> Columns:
    return [list(range(5 * k, 5 * k + 5)) for k in range(6)]


def cancer() -> Table:
    """Breast cancer, 37 % positives: six models on five columns each."""
    return Table(*datasets.load_breast_cancer(return_X_y=True), _five_each(), six_models())


def cancer5() -> Table:
    """The same with 5 % positives: all benign ones, and 19 malignant ones."""
    X, y = datasets.load_breast_cancer(return_X_y=True)
    some = np.random.default_rng(0).permutation(np.flatnonzero(y == 0))[:19]
    rows = np.concatenate([np.flatnonzero(y == 1), some])
    return Table(X[rows], 1 - y[rows], _five_each(), six_models())


def wine() -> Table:
    """Three wines: six models on two columns each, the last on three."""
    columns = [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11, 12]]
    return Table(*datasets.load_wine(return_X_y=True), columns, six_models())


def iris() -> Table:
    """Three irises: six models on the six pairs of columns."""
    return Table(*datasets.load_iris(return_X_y=True), [[0, 1], [1, 2], [2, 3], [0, 3], [0, 2], [1, 3]], six_models())


def digits() -> Table:
    """Ten digits, nine patches of the 8×8 pixels, a logistic regression each."""
    images, y = datasets.load_digits(return_X_y=True)
    cuts = (slice(0, 3), slice(3, 6), slice(6, 8))
    places = np.arange(64).reshape(8, 8)
    columns = [places[down, right].ravel().tolist() for down in cuts for right in cuts]
    return Table(images / 16, y, columns, [LogisticRegression(max_iter=1000) for _ in columns])


def numerals() -> Table:
    """The six feature sets of 2 000 numerals, a logistic regression each; needs COLLEGIUM_DATA."""
    folder = os.path.join(os.environ["COLLEGIUM_DATA"], "multiple-features")
    parts = [
        np.loadtxt(os.path.join(folder, f"mfeat-{name}.csv"), delimiter=",", skiprows=1)
        for name in ("fac", "fou", "kar", "mor", "pix", "zer")
    ]
    ends = np.cumsum([0] + [part.shape[1] - 1 for part in parts])
    columns = [list(range(a, b)) for a, b in pairwise(ends)]
    members = [make_pipeline(StandardScaler(), LogisticRegression(max_iter=200, C=0.1)) for _ in parts]
    return Table(np.hstack([part[:, :-1] for part in parts]), parts[0][:, -1].astype(int), columns, members)


def eights() -> Table:
    """Is it an eight? 5 % are: nine patches of the digits' pixels, models as different as scikit-learn has them."""
    X, y, columns, _ = digits()
    some = np.random.default_rng(0).permutation(np.flatnonzero(y == 8))[:85]
    rows = np.sort(np.concatenate([np.flatnonzero(y != 8), some]))
    return Table(X[rows], (y[rows] == 8).astype(int), columns, [*six_models(), *six_models()[:3]])


def robot() -> Table:
    """Four moves of a robot, 24 sonars, a small tree each; needs COLLEGIUM_DATA. Every third of the rows."""
    path = os.path.join(os.environ["COLLEGIUM_DATA"], "wall-robot", "sensor_readings_24.data")
    cells = np.genfromtxt(path, delimiter=",", dtype=str)[::3]
    members = [DecisionTreeClassifier(min_samples_leaf=20, random_state=0) for _ in range(24)]
    return Table(cells[:, :24].astype(float), cells[:, 24], [[k] for k in range(24)], members)


def office() -> Table:
    """Is the office occupied? Five sensors, a model each; needs COLLEGIUM_DATA. Every fourth row of the first file."""
    path = os.path.join(os.environ["COLLEGIUM_DATA"], "occupancy", "datatraining.txt")
    cells = np.genfromtxt(path, delimiter=",", skip_header=1, usecols=range(2, 8))[::4]
    return Table(cells[:, :5], cells[:, 5].astype(int), [[k] for k in range(5)], six_models()[:5])


_ALL = (cancer, cancer5, wine, iris, digits, eights, numerals, robot, office)
_ELSEWHERE = ("numerals", "robot", "office")  # their data are not part of scikit-learn
TABLES: dict[str, Callable[[], Table]] = {one.__name__: one for one in _ALL}


def _pick(X: Any, columns: list[int]) -> Any:
    return X[:, columns]


def voting(table: Table) -> VotingClassifier:
    """Soft voting of the same members on the same views; those without probabilities get them by cross-validation."""
    return VotingClassifier(_members(table), voting="soft")


def stacking(table: Table) -> StackingClassifier:
    """A logistic regression of what the same members say of items they were not fitted on."""
    return StackingClassifier(_members(table), LogisticRegression(max_iter=1000), cv=5, stack_method="predict_proba")


def _members(table: Table) -> list[tuple[str, Any]]:
    return [
        (f"m{k}", make_pipeline(FunctionTransformer(_pick, kw_args={"columns": columns}), _with_probabilities(member)))
        for k, (columns, member) in enumerate(zip(table.columns, table.members, strict=True))
    ]


def _with_probabilities(member: Any) -> Any:
    return clone(member) if hasattr(member, "predict_proba") else CalibratedClassifierCV(member, ensemble=False)


def team(table: Table, **settings: Any) -> Team:
    """All members in a complete network: after one round each has the average."""
    K = len(table.members)
    members = [(f"m{k}", clone(member)) for k, member in enumerate(table.members)]
    network = policy.metropolis(topology.complete(K))
    return Team(members, network, rounds=1, columns=table.columns, random_state=0, workers=1, **settings)


def measured(p: Any, y: Any, classes: Any) -> tuple[float, float, float]:
    """Error and balanced error in per cent, and log-loss, of probabilities."""
    decided = classes[np.asarray(p).argmax(axis=1)]
    p = np.clip(p, 1e-6, 1)
    p = p / p.sum(axis=1, keepdims=True)
    balanced = 100 * (1 - balanced_accuracy_score(y, decided))
    return 100 * float((decided != y).mean()), balanced, float(log_loss(y, p, labels=classes))


def repetition(table: Table, seed: int) -> dict[str, Any]:
    """Measures of team, voting and members over one five-fold cross-validation, and how far round 0 is from alone."""
    n, classes = len(table.y), np.unique(table.y)
    chances: dict[str, Any] = {}
    apart = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(table.X, table.y):
        X, y = table.X[train], table.y[train]
        deciders = {"team": team(table).fit(X, y), "soft voting": voting(table).fit(X, y)}
        deciders["tuned team"] = copy.deepcopy(deciders["team"]).tune()
        deciders["stacking"] = stacking(table).fit(X, y)
        members = deciders["soft voting"].estimators_
        deciders |= {f"member {k}": member for k, member in enumerate(members)}
        for name, decider in deciders.items():
            chances.setdefault(name, np.empty((n, len(classes))))[test] = decider.predict_proba(table.X[test])
        alone = [(decider.predict(table.X[test]) != table.y[test]).mean() for decider in _own(deciders["team"], table)]
        run = deciders["team"].run(table.X[test])
        inside = run.errors(table.y[test], classes[::-1] if len(classes) == 2 else classes)[0]
        apart.append(np.abs(inside - alone).max())
    results = {name: measured(p, table.y, classes) for name, p in chances.items()}
    return {**results, "round 0": (100 * float(np.mean(apart)),)}


def _own(fitted: Team, table: Table) -> list[Any]:
    """The team's models as people would use them, each on its own columns."""

    class Alone:
        def __init__(self, model: Any, columns: list[int]) -> None:
            self.model, self.columns = model, columns

        def predict(self, X: Any) -> Any:
            said = self.model.estimator_.predict(X[:, self.columns])
            places = (said > 0).astype(int) if len(fitted.classes_) == 2 else said
            return fitted.classes_[places]

    return [Alone(model, columns) for model, columns in zip(fitted.models_, table.columns, strict=True)]


def report(name: str, repetitions: int) -> None:
    """One table of figures."""
    table = TABLES[name]()
    print(f"\n{name}: {TABLES[name].__doc__}")
    runs = [repetition(table, seed) for seed in range(repetitions)]
    apart = np.mean([run.pop("round 0") for run in runs])
    best = min((who for who in runs[0] if who.startswith("member")), key=lambda who: np.mean([r[who][0] for r in runs]))
    print(f"{repetitions} repetitions of five folds, {len(table.y)} items, {len(table.members)} members")
    print(f"{'':14}{'error %':>9}{'balanced %':>12}{'log-loss':>10}   team less this one: error, balanced, log-loss")
    for who in ("team", "soft voting", best, "tuned team", "stacking"):
        values = np.array([run[who] for run in runs])
        line = f"{who:14}{values[:, 0].mean():9.2f}{values[:, 1].mean():12.2f}{values[:, 2].mean():10.4f}"
        if who != "team":
            gaps = [mean_interval(column) for column in (np.array([run["team"] for run in runs]) - values).T]
            line += "   " + ", ".join(f"{gap.mean:+.3f} ± {gap.half:.3f}" for gap in gaps)
        print(line)
    tuned = np.array([run["tuned team"] for run in runs]) - np.array([run["stacking"] for run in runs])
    gaps = [mean_interval(column) for column in tuned.T]
    print("tuned team less stacking: " + ", ".join(f"{gap.mean:+.3f} ± {gap.half:.3f}" for gap in gaps))
    print(f"round 0 inside the team is {apart:.2f} percentage points from what the worst differing member does alone")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tables", nargs="+", choices=sorted(TABLES), default=[n for n in TABLES if n not in _ELSEWHERE]
    )
    parser.add_argument("--repetitions", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", message="on .* held-out items this team is wrong")
    for name in options.tables:
        report(name, options.repetitions)


if __name__ == "__main__":
    main()
