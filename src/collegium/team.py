"""`Team`: K classifiers with a private view each, fitted alone, deciding together; with scikit-learn's habits."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import validate_data

from collegium._util.arguments import real_number
from collegium._util.randomness import Seed
from collegium._util.views import Views, gather, rows, table
from collegium.agents._seeding import seed_sequence
from collegium.agents.adapt import named_models
from collegium.agents.base import Doubles, Model
from collegium.agents.calibration import pool_probabilities, temperature
from collegium.agents.classes import agreed_classes, inside, known_classes, labels_inside, places_of
from collegium.agents.cross_fitting import fit_agents
from collegium.agents.held_out import HeldOutErrors, compare, prior_of
from collegium.agents.independent import checked_scores
from collegium.agents.preparation import Preparation
from collegium.errors import AssumptionError, CollegiumError, DataError, LabelError, ModelError, PolicyError, ScoreError
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

    Any number of classes. What an agent brings to the network is the log-odds (of more than two classes, the
    log-probabilities less their mean) that it decides by alone. By itself, `center="auto"`, a team brings all agents to
    one scale by temperatures and keeps each agent's threshold, unless items that it was not fitted on say that another
    is better: every agent is fitted once more for each of 1 / `validation` parts of the items, to score the part it has
    not seen. With a model that stops early, all leave one such part out of their training instead. The frequency of
    the classes, `prior_`, is in each agent's log-odds and in their average, so it enters once.

    `center="mean"` (or True) is the paper's: scores lose the mean of the training scores; nothing is held out unless
    `calibrate`. "midpoint" is the threshold of the paper's Prop. 1, "none" (or False) takes nothing away.
    `calibrate="vector"` fits a temperature per class. `bounded` squeezes scores by tanh(f/2), see `agents.bounded`.

    `largest_scores_` has the largest |number| that each agent brought to the network in training, shape (K,): live
    agents know from it what their neighbours may say.

    `held_out_` has the errors of the team and of its members alone on held-out items, where there are any; a team that
    is worse than its best member there says so in a warning.

    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from collegium import policy, topology
    >>> X, y = make_classification(200, 6, n_informative=4, random_state=0)
    >>> ring = policy.uniform(topology.ring(3))
    >>> team = Team([(name, LogisticRegression()) for name in "abc"], ring, columns=[[0, 1], [2, 3], [4, 5]])
    >>> round(team.fit(X[:100], y[:100]).score(X[100:], y[100:]), 1)
    0.7
    """

    def __init__(
        self,
        agents: Agents,
        policy: Policy,
        rounds: int = 20,
        rule: Rule = DeGroot(),
        center: bool | str = "auto",
        calibrate: bool | str = "auto",
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
        """Fit every agent's model on its own view, independently; then what is learned from held-out items."""
        if y is None:
            raise LabelError("a Team requires y to be passed, but the target y is None")
        models, preparation = self._models(), self._preparation()
        views = self._complete(X, reset=True)
        labels, classes = labels_inside(y, len(views[0]))
        real_number(self.validation, "validation", DataError, above=0, at_most=0.9)
        fitted = fit_agents(
            [name for name, _ in self.agents],
            models,
            views,
            labels,
            seed_sequence(self.random_state, "random_state"),
            classes=len(classes),
            held_out=preparation.held_out(models),
            validation=self.validation,
            wants_training=preparation.center == "mean",
            workers=self.workers,
        )
        self.classes_ = classes
        self.prior_ = prior_of(labels, len(classes))
        self._settle(fitted.models, fitted.train, fitted.held_out, fitted.y_held_out)
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
        """A team of models that were fitted elsewhere, by any framework: only temperatures and centers are learned.

        `validation_views` and `validation_y` are items that no model was fitted on, for all that is learned by itself;
        without them the models' scores are used as they are. `train_views` are items of the kind the models were
        trained on, for the means of `center="mean"`, and need no labels. `classes` are the labels: of two, those of -1
        and +1, in this order; of more, all that occur, and a model that knows some of them has no evidence for the
        others. Models that know theirs must agree with it, or with each other. If none knows, they are -1 and 1.
        """
        team = cls(agents, policy, **settings)
        models, preparation = team._models(), team._preparation()
        team.classes_ = agreed_classes(
            [(name, model) for (name, _), model in zip(agents, models, strict=True)], classes
        )
        if preparation.center == "mean" and train_views is None:
            raise DataError("centers are means over training items: give train_views=, or center=False to do without")
        given = validation_views is not None and validation_y is not None
        if not given and (team.calibrate is True or preparation.calibrate == "vector"):
            raise DataError("temperatures need validation_views= and validation_y=, or calibrate=False")
        form = (len(models),) if len(team.classes_) == 2 else (len(models), len(team.classes_))
        train, held_out, y = np.empty((0, *form)), np.empty((0, *form)), np.empty(0, np.int8)
        if train_views is not None:
            train = team._score(models, team._complete(train_views, reset=True))
        if given:
            held_out = team._score(models, team._complete(validation_views, reset=train_views is None))
            y = inside(validation_y, len(held_out), team.classes_)  # type: ignore[arg-type]
            team.prior_ = prior_of(y, len(team.classes_))
        team._settle(models, train, held_out, y)
        return team

    def _settle(self, models: list[Model], train: Doubles, held_out: Doubles, y: NDArray[Any]) -> None:
        """What is learned from scores: the pipeline, then what the whole team makes of held-out items."""
        preparation = self._preparation()
        self.models_ = models
        self.pipeline_ = preparation.pipeline(train, held_out, y)
        self.prepared_ = self.center, self.calibrate, self.bounded
        seen = np.abs(self.pipeline_(np.concatenate([train, held_out])))
        if len(seen):
            self.largest_scores_ = np.moveaxis(seen, 1, 0).reshape(len(models), -1).max(axis=1)
        self.pool_temperature_ = 1.0
        self.held_out_: HeldOutErrors | None = None
        if not len(held_out):
            return
        statistics = self.pipeline_(held_out)
        with suppress(ScoreError):  # of a rule that takes no scores as large as these: then their plain mean
            statistics = collaborate(statistics, self.policy, self.rounds, self.rule, record="final").statistics[-1]
        pooled = statistics.mean(axis=1)
        if preparation.calibrate and not self.bounded:
            self.pool_temperature_ = temperature(pooled, y)
        self.held_out_, worse = compare(pooled, held_out, y)
        if worse:
            self._warn(self.held_out_)

    def _warn(self, errors: HeldOutErrors) -> None:
        warnings.warn(
            f"on {errors.items} held-out items this team is wrong about {100 * errors.team:.1f} %, its member "
            f"{self.agents[errors.best][0]!r} alone about {100 * errors.alone[errors.best]:.1f} %. Give the better "
            "members more weight in the network, leave the weak ones out, or use that member alone.",
            stacklevel=4,
        )

    @property
    def temperature_(self) -> Doubles:
        """What each agent's scores are divided by, shape (K,), or (K, C) with "vector"; ones without `calibrate`."""
        return self.pipeline_.temperature

    @property
    def center_(self) -> Doubles:
        """What each agent's scores lose after that, shape (K,) or (K, C); zeros without `center`."""
        return self.pipeline_.center

    @property
    def gains_(self) -> Doubles:
        """What they are multiplied by at last, shape (K,); ones unless tuned."""
        return self.pipeline_.gain

    # Deciding

    def scores(self, X: Views) -> Doubles:
        """Raw scores of every agent, NaN where its view is missing: shape (n, K), positive for `classes_[1]`; of more
        than two classes, shape (n, K, C)."""
        return self._score(self._fitted(), *self._gather(X))

    def statistics(self, X: Views) -> Doubles:
        """What enters the protocol, shaped alike: scaled, bounded and centred as set; 0 where a view is missing."""
        return self._start(X)[0]

    def run(
        self, X: Views, *, items: Items | None = None, rng: Seed = 0, record: Literal["all", "final"] = "all"
    ) -> Run:
        """Run the agents on these items; `run.missing` has the views that were not there."""
        statistics, missing = self._start(X)
        run = collaborate(statistics, self.policy, self.rounds, self.rule, rng=rng, items=items, record=record)
        return replace(run, missing=missing) if missing.any() else run

    def decision_function(self, X: Views, agent: str | None = None) -> Doubles:
        """The final statistic, shape (n,), or (n, C) of more than two classes: the mean over the agents, or that of the
        agent named."""
        final = self.run(X, record="final").statistics[-1]
        if agent is None:
            return np.asarray(final.mean(axis=1))
        names = [name for name, _ in self.agents]
        if agent not in names:
            raise ModelError(f"there is no agent {agent!r}; the agents are {', '.join(map(repr, names))}")
        return np.asarray(final[:, names.index(agent)])

    def predict(self, X: Views, agent: str | None = None) -> NDArray[Any]:
        """The joint decision, or that of one agent: the largest entry, the first of `classes_` among equals."""
        final = self.decision_function(X, agent)
        chosen: NDArray[Any] = self.classes_[(final > 0).astype(int) if final.ndim == 1 else final.argmax(axis=1)]
        return chosen

    def predict_proba(self, X: Views, agent: str | None = None) -> Doubles:
        """Probabilities of `classes_`, shape (n, C), reading the final statistic as log-odds or log-probabilities.

        A weighted mean of log-odds is the logarithmic opinion pool of the agents' posteriors. It is divided by
        `pool_temperature_`, fitted to held-out items unless `calibrate` is off: agents who agree know more together
        than each alone. With `bounded` the mean is the linear pool, of the posteriors themselves.
        """
        final = self.decision_function(X, agent)
        return pool_probabilities(final, getattr(self, "pool_temperature_", 1.0), bounded=self.bounded)

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
        raw = not self.center_.any()
        coarseness = rule.bound / (1 if raw else 2) if isinstance(rule, Quantised) else 0.0
        classes = tuple(self.classes_[::-1] if len(self.classes_) == 2 else self.classes_)
        return certify(
            c, y, self.policy, self.rounds, confidence=confidence, beta=beta, tau=tau, sigma=sigma, bits=bits,
            raw=raw, exact=exact, classes=classes, errors=run.errors(y, classes), coarseness=coarseness,
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
        return named_models(self.agents, self.policy.size, self._get_param_names())

    def _preparation(self) -> Preparation:
        return Preparation.of(self.center, self.calibrate, self.bounded)

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
        columns, C = [], len(self.classes_)
        for k, (model, view) in enumerate(zip(models, views, strict=True)):
            try:
                places = None if C == 2 else places_of(known_classes(model), self.classes_)
                if missing is None or not missing[:, k].any():
                    columns.append(checked_scores(model, view, places, C))
                    continue
                column = np.full(len(missing) if C == 2 else (len(missing), C), np.nan)
                there = ~missing[:, k]
                if there.any():
                    column[there] = checked_scores(model, rows(view, there), places, C)
                columns.append(column)
            except CollegiumError as mistake:
                raise type(mistake)(f"agent {self.agents[k][0]!r}: {mistake}") from None
        return np.stack(columns, axis=1)

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
        tags.input_tags.allow_nan = True
        return tags
