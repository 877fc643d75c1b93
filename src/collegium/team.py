"""`Team`: K classifiers with a private view each, fitted alone, deciding together; with scikit-learn's habits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import validate_data

from collegium._util.arguments import real_number
from collegium._util.labels import to_signs
from collegium._util.randomness import Seed
from collegium._util.views import Views, gather, rows, table
from collegium.agents._seeding import descend, seed_sequence, seeded
from collegium.agents._splitting import split
from collegium.agents.adapt import as_model
from collegium.agents.base import Doubles, Model
from collegium.agents.independent import Task, checked_scores, fit_side_by_side
from collegium.agents.pipeline import ScorePipeline
from collegium.errors import AssumptionError, CollegiumError, DataError, LabelError, ModelError, PolicyError
from collegium.network import Items, Run, collaborate
from collegium.policy import Policy
from collegium.protocol import DeGroot, Quantised, Rule
from collegium.protocol.averaging import is_degroot
from collegium.theory.certificate import Certificate, certify

Agents = Sequence[tuple[str, Any]]


class Team(ClassifierMixin, _BaseComposition):  # type: ignore[misc]
    """Classifiers that each see their own view, are fitted alone, and decide together over a network.

    `agents` are (name, model) pairs, one per agent of `policy`: scikit-learn classifiers, `collegium.agents` models,
    torch modules, .onnx files or functions. Views are a list of K arrays aligned by item; or one table, of which each
    agent sees the columns that `columns`, one selector per agent, picks.

    If any agent needs held-out items (a model that stops early, or temperatures with `calibrate`), all agents leave the
    part `validation` of the items out of their training. Scores are divided by the temperature, squeezed by tanh(f/2)
    if `bounded`, and lose the mean of the training scores if `center`.

    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from collegium import policy, topology
    >>> X, y = make_classification(200, 6, n_informative=4, random_state=0)
    >>> ring = policy.uniform(topology.ring(3))
    >>> team = Team([(name, LogisticRegression()) for name in "abc"], ring, columns=[[0, 1], [2, 3], [4, 5]])
    >>> team.fit(X[:100], y[:100]).score(X[100:], y[100:])
    0.73
    """

    def __init__(
        self,
        agents: Agents,
        policy: Policy,
        rounds: int = 20,
        rule: Rule = DeGroot(),
        center: bool = True,
        calibrate: bool = False,
        bounded: bool = False,
        columns: Sequence[Any] | None = None,
        validation: float = 0.2,
        workers: int | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> None:
        self.agents = agents
        self.policy = policy
        self.rounds = rounds
        self.rule = rule
        self.center = center
        self.calibrate = calibrate
        self.bounded = bounded
        self.columns = columns
        self.validation = validation
        self.workers = workers
        self.random_state = random_state

    # Learning

    def fit(self, X: Views, y: ArrayLike) -> Self:
        """Fit every agent's model on its own view, independently; then the temperatures and centers."""
        if y is None:
            raise LabelError("a Team requires y to be passed, but the target y is None")
        models = self._models()
        views = self._complete(X, reset=True)
        y = np.asarray(y)
        y = column_or_1d(y, warn=True) if y.ndim == 2 else y
        classes = np.unique(y)
        if len(classes) != 2 and len(views[0]) == np.size(y):
            raise LabelError(
                "Only binary classification is supported. A team decides between two classes; "
                f"y holds {_count(len(classes), 'class', 'classes')}: {', '.join(map(repr, classes[:5].tolist()))}"
            )
        signs = to_signs(y, len(views[0]))
        real_number(self.validation, "validation", DataError, above=0, at_most=0.9)
        root = seed_sequence(self.random_state, "random_state")
        inside, outside = np.arange(len(signs)), np.empty(0, np.int64)
        if self.calibrate or any(getattr(model, "uses_validation", False) for model in models):
            inside, outside = split(signs, self.validation, np.random.default_rng(descend(root, 0)))
        fits = fit_side_by_side(
            [
                Task(name, seeded(model, descend(root, 1, k)), view, signs, inside, outside)
                for k, ((name, _), model, view) in enumerate(zip(self.agents, models, views, strict=True))
            ],
            self.workers,
        )
        self.classes_ = classes
        self._settle(
            [fit.model for fit in fits],
            np.column_stack([fit.train for fit in fits]),
            np.column_stack([fit.val for fit in fits]),
            signs[outside],
        )
        return self

    @classmethod
    def from_fitted(
        cls,
        agents: Agents,
        policy: Policy,
        *,
        train_views: Views | None = None,
        validation_views: Views | None = None,
        validation_y: ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
        **settings: Any,
    ) -> Team:
        """A team of models that were fitted elsewhere, by any framework: only centers are learned.

        `train_views` are items of the kind the models were trained on, for the centers, and need no labels;
        `validation_views` and `validation_y` are for the temperatures of `calibrate=True`. `classes` are the labels of
        -1 and +1, in this order; models that know theirs must agree with it, or with each other. If none knows, they
        are -1 and 1.
        """
        team = cls(agents, policy, **settings)
        models = team._models()
        team.classes_ = team._agreed(models, classes)
        if team.center and train_views is None:
            raise DataError("centers are means over training items: give train_views=, or center=False to do without")
        if team.calibrate and (validation_views is None or validation_y is None):
            raise DataError("temperatures need validation_views= and validation_y=, or calibrate=False")
        train = np.zeros((1, len(models)))
        if train_views is not None:
            train = team._score(models, team._complete(train_views, reset=True))
        val, signs = np.empty((0, len(models))), np.empty(0, np.int8)
        if validation_views is not None and validation_y is not None:
            val = team._score(models, team._complete(validation_views))
            signs = to_signs(validation_y, len(val), classes=tuple(team.classes_[::-1]))
        team._settle(models, train, val, signs)
        return team

    def _agreed(self, models: list[Model], classes: Sequence[Any] | None) -> NDArray[Any]:
        """The labels of -1 and +1: those given, or those the models know."""
        if classes is not None and (len(classes) != 2 or classes[0] == classes[1]):
            raise ModelError(f"classes must be two different labels, of -1 and of +1; got {classes!r}")
        agreed = None if classes is None else np.asarray(classes)
        who = "classes= says"
        for (name, _), model in zip(self.agents, models, strict=True):
            holders = (model, getattr(model, "estimator_", None), getattr(model, "estimator", None))
            known = next((one.classes_ for one in holders if one is not None and hasattr(one, "classes_")), None)
            if known is None or list(known) == [-1, 1]:  # signs, which may stand for any two labels
                continue
            if agreed is None:
                agreed, who = np.asarray(known), f"agent {name!r} knows"
            elif list(known) != list(agreed):
                raise ModelError(
                    f"agent {name!r} knows the classes {np.asarray(known).tolist()}, while {who} {agreed.tolist()}: "
                    "the second is +1, so their scores would mean different things. Fit them on the same two labels."
                )
        return np.array([-1, 1]) if agreed is None else agreed

    def _settle(self, models: list[Model], train: Doubles, val: Doubles, y_val: NDArray[np.int8]) -> None:
        self.models_ = models
        self.pipeline_ = ScorePipeline.fit(
            train, val, y_val, center=self.center, calibrate=self.calibrate, bounded=self.bounded
        )
        self.prepared_ = self.center, self.calibrate, self.bounded

    @property
    def temperature_(self) -> Doubles:
        """What each agent's scores are divided by, shape (K,); ones without `calibrate`."""
        return self.pipeline_.temperature

    @property
    def center_(self) -> Doubles:
        """What each agent's scores lose after that, shape (K,); zeros without `center`."""
        return self.pipeline_.center

    @property
    def gains_(self) -> Doubles:
        """What they are multiplied by at last, shape (K,); ones unless tuned."""
        return self.pipeline_.gain

    # Deciding

    def scores(self, X: Views) -> Doubles:
        """Raw scores of every agent, shape (n, K), positive for `classes_[1]`; NaN where an agent's view is missing."""
        return self._score(self._fitted(), *self._gather(X))

    def statistics(self, X: Views) -> Doubles:
        """What enters the protocol, shape (n, K): scaled, bounded and centred as set; 0 where a view is missing."""
        return self._start(X)[0]

    def run(
        self, X: Views, *, items: Items | None = None, rng: Seed = 0, record: Literal["all", "final"] = "all"
    ) -> Run:
        """Run the agents on these items; `run.missing` has the views that were not there."""
        statistics, missing = self._start(X)
        run = collaborate(statistics, self.policy, self.rounds, self.rule, rng=rng, items=items, record=record)
        return replace(run, missing=missing) if missing.any() else run

    def decision_function(self, X: Views, agent: str | None = None) -> Doubles:
        """The final statistic, shape (n,): the mean over the agents, or that of the agent named."""
        final = self.run(X, record="final").statistics[-1]
        if agent is None:
            return np.asarray(final.mean(axis=1))
        names = [name for name, _ in self.agents]
        if agent not in names:
            raise ModelError(f"there is no agent {agent!r}; the agents are {', '.join(map(repr, names))}")
        return np.asarray(final[:, names.index(agent)])

    def predict(self, X: Views, agent: str | None = None) -> NDArray[Any]:
        """The joint decision, or that of one agent; a statistic of exactly 0 means the first of `classes_`."""
        positive = self.decision_function(X, agent) > 0
        chosen: NDArray[Any] = self.classes_[positive.astype(int)]
        return chosen

    def predict_proba(self, X: Views, agent: str | None = None) -> Doubles:
        """Probabilities of `classes_`, shape (n, 2), reading the final statistic as a log-odds.

        A weighted mean of log-odds is the logarithmic opinion pool of the agents' posteriors; with `bounded`, a mean of
        tanh(f/2) is the linear pool. Centering takes the training sample's own tilt away. `SocialLearning` adds the
        evidence up round by round instead, so that its probabilities are near 0 and 1.
        """
        final = self.decision_function(X, agent)
        second = np.clip((1 + final) / 2, 0, 1) if self.bounded else expit(final)
        return np.column_stack([1 - second, second])

    def certify(
        self,
        X: Views,
        y: ArrayLike,
        *,
        confidence: float = 0.95,
        beta: float | None = None,
        tau: float = 1.0,
        sigma: float | None = None,
        exact: bool = False,
    ) -> Certificate:
        """The guarantee that items nobody was trained on support, beside the error they show; see `theory.certify`.

        For DeGroot, at full precision or quantised. The range of bounded scores is known; of others it is the largest
        seen unless `beta` says better.
        """
        rule = self.rule
        bits = rule.bits if type(rule) is Quantised and is_degroot(rule.rule) else None
        if (bits is None and not is_degroot(rule)) or type(self.policy) is not Policy:
            raise AssumptionError(f"there is a guarantee for DeGroot, quantised or not, but none for {rule}")
        self._fitted()
        run = self.run(self._complete(X) if self.columns is None else X)
        c = run.statistics[0]
        if beta is None and self.bounded:
            beta = float(np.abs(self.gains_).max())
        # Rounding is as coarse as the quantiser's bound, whatever the scores.
        coarseness = rule.bound / (2 if self.center else 1) if isinstance(rule, Quantised) else 0.0
        classes = tuple(self.classes_[::-1])
        return certify(
            c, y, self.policy, self.rounds, confidence=confidence, beta=beta, tau=tau, sigma=sigma, bits=bits,
            raw=not self.center, exact=exact, classes=classes, errors=run.errors(y, classes), coarseness=coarseness,
        )  # fmt: skip

    # Keeping

    def save(self, folder: str | Path) -> None:
        """Write the fitted team to a new folder, without pickle; see `Team.load`."""
        from collegium._team_files import save

        self._fitted()
        save(self, Path(folder))

    @classmethod
    def load(
        cls, folder: str | Path, *, modules: Mapping[str, Any] | None = None, trusted: Collection[str | type] = ()
    ) -> Team:
        """Read a team back; a file that was changed since it was written is refused.

        `modules` gives, by agent's name, the PyTorch modules that are the user's own: a saved team holds no code.
        `trusted` names types in scikit-learn models that skops does not vouch for.
        """
        from collegium._team_files import load

        return load(Path(folder), modules, trusted)

    # Inside

    def _models(self) -> list[Model]:
        if not isinstance(self.policy, Policy):
            raise PolicyError(
                f"policy must be a collegium Policy, such as policy.uniform(topology.ring(9)); got {self.policy!r}"
            )
        try:
            names = [name for name, _ in self.agents]
        except (TypeError, ValueError):
            raise ModelError("agents must be a list of (name, model) pairs") from None
        if len(names) != self.policy.size:
            raise PolicyError(f"there are {len(names)} agents, but the network has {self.policy.size}")
        if any(not isinstance(name, str) or "__" in name for name in names) or len(set(names)) < len(names):
            raise ModelError(f"agents need different names without '__'; got {names}")
        taken = sorted(set(names) & set(self._get_param_names()))
        if taken:
            raise ModelError(f"{taken[0]!r} is a setting of Team: call this agent otherwise")
        models = []
        for name, thing in self.agents:
            try:
                models.append(as_model(thing))
            except CollegiumError as mistake:
                raise type(mistake)(f"agent {name!r}: {mistake}") from None
        return models

    def _fitted(self) -> list[Model]:
        models: list[Model] | None = getattr(self, "models_", None)
        if models is None:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this Team is not fitted yet: call fit, or make it with Team.from_fitted")
        return models

    def _start(self, X: Views) -> tuple[Doubles, NDArray[np.bool_]]:
        """What enters the protocol, and which views are missing: those agents start from 0."""
        models = self._fitted()
        self._unchanged()
        views, missing = self._gather(X)
        return self.pipeline_(self._score(models, views, missing)), missing

    def _gather(self, X: Views, reset: bool = False) -> tuple[list[Any], NDArray[np.bool_]]:
        """The views and what is missing; of a table, also whether it has the columns that `fit` saw."""
        if self.columns is not None:
            X = table(X)
            try:
                validate_data(self, X, reset=reset, skip_check_array=True)
            except ValueError as refusal:
                raise DataError(str(refusal)) from None
        return gather(X, len(self.agents), self.columns)

    def _unchanged(self) -> None:
        if self.prepared_ != (self.center, self.calibrate, self.bounded):
            raise ModelError("center, calibrate or bounded was changed since the team was fitted: fit it again")

    def _complete(self, X: Views, reset: bool = False) -> list[Any]:
        """Views for learning, where nothing may be missing."""
        views, missing = self._gather(X, reset)
        if missing.any():
            k = int(np.flatnonzero(missing.any(axis=0))[0])
            raise DataError(
                f"the view of agent {self.agents[k][0]!r} is missing for {int(missing[:, k].sum())} items: "
                "every agent needs its view of every training item"
            )
        return views

    def _score(self, models: list[Model], views: list[Any], missing: NDArray[np.bool_] | None = None) -> Doubles:
        columns = []
        for k, (model, view) in enumerate(zip(models, views, strict=True)):
            try:
                if missing is None or not missing[:, k].any():
                    columns.append(checked_scores(model, view))
                    continue
                column = np.full(len(missing), np.nan)
                there = ~missing[:, k]
                if there.any():
                    column[there] = checked_scores(model, rows(view, there))
                columns.append(column)
            except CollegiumError as mistake:
                raise type(mistake)(f"agent {self.agents[k][0]!r}: {mistake}") from None
        return np.column_stack(columns)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Settings of the team and, as `name__setting`, of its agents' models."""
        params: dict[str, Any] = self._get_params("agents", deep=deep)
        return params

    def set_params(self, **params: Any) -> Self:
        """Change settings of the team, replace an agent's model (`name=`) or change one of its settings
        (`name__setting=`)."""
        self._set_params("agents", **params)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "models_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        return tags


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
