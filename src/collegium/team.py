"""`Team`: K classifiers with a private view each, fitted alone, deciding together; with scikit-learn's habits."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import validate_data

from collegium._util.arguments import real_number
from collegium._util.margins import centred
from collegium._util.measures import worse_than_guessing
from collegium._util.randomness import Seed
from collegium._util.views import AnyViews, check_indexes, gather, in_order, rows, table
from collegium.agents._seeding import seed_sequence
from collegium.agents.adapt import named_models
from collegium.agents.base import Doubles, Model, check_weights
from collegium.agents.calibration import pool_probabilities, temperature
from collegium.agents.classes import agreed_classes, inside, known_classes, labels_inside, places_of
from collegium.agents.cross_fitting import fit_agents
from collegium.agents.held_out import HeldOutErrors, compare, prior_of
from collegium.agents.independent import checked_scores
from collegium.agents.pipeline import ScorePipeline
from collegium.agents.preparation import Preparation
from collegium.errors import CollegiumError, DataError, LabelError, ModelError, PolicyError, ScoreError, brief
from collegium.links import Links, Perfect
from collegium.network import Items, Run, collaborate
from collegium.protocol import DeGroot, Quantised, Rule
from collegium.schedule.base import Schedule, own_rule
from collegium.theory.certificate import Certificate, certify
from collegium.theory.conformal import Conformal, abstention, conformal
from collegium.theory.mixing import is_linear
from collegium.tuning.conversation import Conversation, averaging
from collegium.tuning.gains import Tuning, learner_of
from collegium.tuning.gains import tune as tune_gains

Agents = Sequence[tuple[str, Any]]


class Team(ClassifierMixin, _BaseComposition):  # type: ignore[misc]
    """Classifiers that each see their own view, are fitted alone, and decide together over a network.

    `agents` are (name, model) pairs, one per agent of `policy`: scikit-learn classifiers, `collegium.agents` models,
    torch modules, .onnx files or functions. Views are a list of K arrays aligned by item, or a dictionary of them by
    agents' names (`collegium.Views` of either for scikit-learn's cross-validation); or one table, of which each agent
    sees the columns that `columns`, one selector per agent, picks.

    `policy` says who hears whom: a `Policy`, or any other schedule, such as `schedule.exact(9)`. `rounds` and `rule`
    are the schedule's own where it has them, or 20 of `DeGroot`.

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

    `conformalize` learns from further held-out items what `predict_set` and `predict_or_abstain` need.

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
        policy: Schedule,
        rounds: int | None = None,
        rule: Rule | None = None,
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

    def fit(self, X: AnyViews, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit every agent's model on its own view, independently; then what is learned from held-out items.

        sample_weight: how much each item counts in fitting the models, shape (n,); on held-out items all count alike.
        """
        if y is None:
            raise LabelError("a Team requires y to be passed, but the target y is None")
        models, preparation = self._models(), self._preparation()
        views = self._complete(X, reset=True)
        check_indexes(views[:1], y)
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
            is_seeded=self.random_state is not None,
            weights=None if sample_weight is None else check_weights(sample_weight, len(labels)),
        )
        self.classes_ = classes
        self.prior_ = prior_of(labels, len(classes))
        self._settle(fitted.models, fitted.train, fitted.held_out, fitted.y_held_out)
        return self

    @classmethod
    def from_fitted(
        cls,
        agents: Agents,
        policy: Schedule,
        *,
        train_views: AnyViews | None = None,
        validation_views: AnyViews | None = None,
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
            try:
                y = inside(validation_y, len(held_out), team.classes_)  # type: ignore[arg-type]
            except LabelError as mistake:
                if classes is not None:
                    raise
                raise LabelError(f"{mistake}. Say which classes the models' scores are of: classes=[…]") from None
            team.prior_ = prior_of(y, len(team.classes_))
        team._settle(models, train, held_out, y)
        return team

    def _settle(self, models: list[Model], train: Doubles, held_out: Doubles, y: NDArray[Any]) -> None:
        """What is learned from scores: the pipeline, then what the whole team makes of held-out items."""
        self.models_ = models
        self.pipeline_ = self._preparation().pipeline(train, held_out, y)
        self.prepared_ = self.center, self.calibrate, self.bounded
        seen = np.abs(self.pipeline_(np.concatenate([train, held_out])))
        if len(seen):
            self.largest_scores_ = np.moveaxis(seen, 1, 0).reshape(len(models), -1).max(axis=1)
        self.pool_temperature_ = 1.0
        self.held_out_: HeldOutErrors | None = None
        self.conformal_: dict[str, Conformal] = {}
        self.held_out_scores_, self.held_out_labels_ = held_out, y
        if not len(held_out):
            return
        self.held_out_, worse = compare(self._fit_pool(held_out, y), held_out, y)
        alone, C = float(self.held_out_.alone.mean()), len(self.classes_)
        if worse_than_guessing(alone, self.held_out_.items, C):
            order = "those of -1 and +1" if C == 2 else "all of them, in the order of the scores"
            warnings.warn(
                f"on {self.held_out_.items} held-out items the agents alone are wrong about {100 * alone:.1f} %, more "
                f"often than by guessing: are the classes the right way round? classes= lists {order}",
                stacklevel=3,
            )
        elif worse:
            self._warn(self.held_out_)

    def _fit_pool(self, raw: Doubles, y: NDArray[Any]) -> Doubles:
        """What the whole team makes of held-out items, their mean statistic; its temperature is kept."""
        statistics = self.pipeline_(raw)
        with suppress(ScoreError):  # of a rule that takes no scores as large as these: then their plain mean
            statistics = collaborate(statistics, self.policy, self.rounds, self.rule, record="final").statistics[-1]
        pooled = np.asarray(statistics.mean(axis=1))
        if self._preparation().calibrate and not self.bounded:
            self.pool_temperature_ = temperature(pooled, y)
        return pooled

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
        """What they are multiplied by at last, shape (K,), or (K, C) with a gain per class; ones unless tuned."""
        return self.pipeline_.gain

    def tune(
        self,
        X: AnyViews | None = None,
        y: ArrayLike | None = None,
        level: str = "gains",
        *,
        schedule: Schedule | None = None,
        rounds: int | None = None,
        rule: Rule | None = None,
        items: ArrayLike | None = None,
        loss: str = "logistic",
        per_class: bool = False,
        conversations: int | None = None,
        links: Links = Perfect(),
    ) -> Self:
        """Let the agents learn how much each should count, from averages of labelled items alone; see `tuning.tune`.

        X, y: items nobody was fitted on, and their labels; without them, the items that `fit` held out.
        items: which rows of X the labels are of; all, in order.
        level: "gains"; or "models": PyTorch models go on learning, jointly and without a server, from the derivative of
            the network's sum (see `fusion.TunedModels`). A fifth of the items says when to stop, and another one
            whether the team errs less than before and than each agent alone. It needs X and y.
        schedule, rounds, rule, links: the averaging, the limit of the team's own unless told; its average must be the
            one the team decides by. It begins at `gains_` as they are; `tuning_` says what held-out items said and what
            it cost. If they were not better, nothing changes.
        """
        if level == "models":
            if X is None or y is None:
                raise LabelError("models are trained jointly on labelled items: give tune X and y")
            over = averaging(self.policy if schedule is None else schedule, rounds, rule, links)
            return self._tune_models(X, y, items, Conversation(over, rounds, rule, links))
        if level != "gains":
            raise ModelError(f'level must be "gains" or "models"; got {level!r}')
        raw, labels = self._labelled(X, y, items)
        plain = replace(self.pipeline_, gain=np.ones(len(self.agents)))
        over = self.policy if schedule is None else schedule
        if rule is None and schedule is None and type(self.rule) is not DeGroot:  # DeGroot's limit is known without it
            rule = self.rule
        self.tuning_: Tuning = tune_gains(
            plain(raw), labels, over, self.rounds if rounds is None and rule is not None else rounds, rule,
            loss=loss, per_class=per_class, conversations=conversations, start=self.gains_, links=links,
        )  # fmt: skip
        before, self.pipeline_ = self.pipeline_, self.tuning_.apply(self.pipeline_)
        if self.tuning_.kept != "as it was" and hasattr(self, "largest_scores_"):
            K = len(self.agents)
            grown = np.abs(self.gains_).reshape(K, -1).max(axis=1)
            base = np.abs(before.gain).reshape(K, -1).max(axis=1)
            plainly = np.divide(self.largest_scores_, base, out=np.zeros(K), where=base > 0)
            seen = np.abs(plain(raw)).reshape(len(raw), K, -1).max(axis=(0, 2))
            shift = np.abs(self.tuning_.shifts).reshape(K, -1).max(axis=1)
            self.largest_scores_ = (np.maximum(plainly, seen) + shift) * grown
        if self.tuning_.kept != "as it was":
            self._fit_pool(raw, labels)
        return self

    def _labelled(
        self, X: AnyViews | None, y: ArrayLike | None, items: ArrayLike | None
    ) -> tuple[Doubles, NDArray[Any]]:
        """Scores and labels to tune by: of these items, or of those that `fit` held out."""
        self._fitted()
        if (X is None) != (y is None):
            raise LabelError("tune needs both X and y, or neither: then it takes the items that fit held out")
        if X is None:
            if not len(getattr(self, "held_out_scores_", ())):
                raise DataError("this team has no held-out items to tune by: give tune labelled items, X and y")
            return self.held_out_scores_, self.held_out_labels_
        views, missing = self._gather(X)
        raw = self._score(self.models_, views, missing)
        raw = raw if items is None else raw[_labelled_rows(items, len(raw))]
        return raw, inside(y, len(raw), self.classes_)  # type: ignore[arg-type]

    def _tune_models(self, X: AnyViews, y: ArrayLike, items: ArrayLike | None, talk: Conversation) -> Self:
        """Train the models on jointly; kept if items that took no part in it say that the team errs less."""
        from collegium.agents.optimisation import check_training, threads
        from collegium.agents.torch_model import ONE_AT_A_TIME, TorchModel, load_torch
        from collegium.tuning.models import train_jointly

        fitted, K, C = self._fitted(), len(self.agents), len(self.classes_)
        for (name, _), model in zip(self.agents, fitted, strict=True):
            if not isinstance(model, TorchModel):
                raise ModelError(f"joint training needs PyTorch models, for their derivatives; agent {name!r} has none")
            if C > 2 and len(known_classes(model) or ()) < C:
                raise ModelError(f"joint training needs agents that know all {C} classes; {name!r} does not")
        if self.bounded:
            raise ModelError("models are trained jointly on plain scores: set bounded=False")
        views, missing = self._gather(X)
        if missing is not None and missing.any():
            raise DataError(f"models are trained jointly on whole items; {missing.any(axis=1).sum()} lack a view")
        if items is not None:
            chosen = _labelled_rows(items, len(views[0]))
            views = [rows(view, chosen) for view in views]
        labels = inside(y, len(views[0]), self.classes_)
        folds = learner_of(labels, len(labels), C, K).folds
        judged, stopping, learning = (np.flatnonzero(part) for part in (folds == 0, folds == 1, folds > 1))
        models = [deepcopy(model) for model in fitted]
        settings = check_training(models[0].training)
        with ONE_AT_A_TIME, load_torch().random.fork_rng(devices=[]), threads(settings.threads):
            learned = train_jointly(
                models, views, labels, learning, stopping, C, talk, settings, 0, fitted=fitted, workers=self.workers
            )
        for model, own in zip(models, fitted, strict=True):
            model.classes_ = own.classes_
        weights = K * np.where(learned.weights == 0, np.finfo(np.float64).tiny, learned.weights)
        shifts = -learned.bias / weights if C == 2 else -centred(learned.bias) / weights[:, None]
        pipeline = ScorePipeline(np.ones(K), shifts, weights, classes=C)
        apart, truth = [rows(view, judged) for view in views], labels[judged]
        raw = self._score(models, apart, None)
        entered = self.pipeline_(self._score(fitted, apart, None))
        before, after = (
            collaborate(x, self.policy, self.rounds, self.rule).errors(truth) for x in (entered, pipeline(raw))
        )
        alone, error_before, error_tuned = before[0], float(before[-1].mean()), float(after[-1].mean())
        is_better = error_tuned < min(error_before, alone.min())
        self.tuning_ = Tuning(
            weights if is_better else self.gains_, shifts if is_better else np.zeros_like(shifts),
            "tuned" if is_better else "as it was", int(np.argmin(alone)), len(labels), len(judged), error_before,
            error_before, float(alone.min()), error_tuned, talk.conversations, talk.rows, talk.transmissions, talk.bits,
            talk.largest_deviation, C,
        )  # fmt: skip
        if is_better:
            self.models_, self.pipeline_ = models, pipeline
            self.held_out_scores_ = raw[:0]  # those were of the models before
            self._fit_pool(raw, truth)
            found = np.abs(pipeline(self._score(models, views, None)))
            self.largest_scores_ = np.moveaxis(found, 1, 0).reshape(K, -1).max(axis=1)
        return self

    # Deciding

    def scores(self, X: AnyViews) -> Doubles:
        """Raw scores of every agent, NaN where its view is missing: shape (n, K), positive for `classes_[1]`; of more
        than two classes, shape (n, K, C)."""
        return self._score(self._fitted(), *self._gather(X))

    def statistics(self, X: AnyViews) -> Doubles:
        """What enters the protocol, shaped alike: scaled, bounded and centred as set; 0 where a view is missing."""
        return self._start(X)[0]

    def run(
        self, X: AnyViews, *, items: Items | None = None, rng: Seed = 0, record: Literal["all", "final"] = "all"
    ) -> Run:
        """Run the agents on these items; the run knows their names and the classes, and which views were not there."""
        statistics, missing = self._start(X)
        run = collaborate(statistics, self.policy, self.rounds, self.rule, rng=rng, items=items, record=record)
        names, classes = tuple(name for name, _ in self.agents), tuple(self.classes_.tolist())
        return replace(run, agents=names, classes=classes, missing=missing if missing.any() else None)

    def decision_function(self, X: AnyViews, agent: str | None = None) -> Doubles:
        """The final statistic, shape (n,), or (n, C) of more than two classes: the mean over the agents, or that of the
        agent named."""
        final = self.run(X, record="final").statistics[-1]
        if not self._named(agent):
            return np.asarray(final.mean(axis=1))
        return np.asarray(final[:, self._names().index(str(agent))])

    def predict(self, X: AnyViews, agent: str | None = None) -> NDArray[Any]:
        """The joint decision, or that of one agent: the largest entry, the first of `classes_` among equals."""
        final = self.decision_function(X, agent)
        chosen: NDArray[Any] = self.classes_[(final > 0).astype(int) if final.ndim == 1 else final.argmax(axis=1)]
        return chosen

    def predict_proba(self, X: AnyViews, agent: str | None = None) -> Doubles:
        """Probabilities of `classes_`, shape (n, C), reading the final statistic as log-odds or log-probabilities.

        A weighted mean of log-odds is the logarithmic opinion pool of the agents' posteriors. It is divided by
        `pool_temperature_`, fitted to held-out items unless `calibrate` is off: agents who agree know more together
        than each alone. With `bounded` the mean is the linear pool, of the posteriors themselves.
        """
        final = self.decision_function(X, agent)
        return pool_probabilities(final, getattr(self, "pool_temperature_", 1.0), bounded=self.bounded)

    def score(self, X: AnyViews, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The share of joint decisions that are right."""
        self._fitted()
        labels = np.asarray(y).ravel().tolist()
        known = set(self.classes_.tolist())
        unknown = [label for label in labels if label not in known]
        if labels and len(unknown) == len(labels):
            raise LabelError(f"labels such as {labels[0]!r}, but the classes of this team are {self.classes_.tolist()}")
        if unknown:
            warnings.warn(
                f"{len(unknown)} of {len(labels)} labels, such as {unknown[0]!r}, are none of this team's classes, "
                f"{self.classes_.tolist()}: they count as wrong decisions. Was the team fitted on labels like these?",
                stacklevel=2,
            )
        return float(super().score(X, y, sample_weight))

    def certify(
        self,
        X: AnyViews,
        y: ArrayLike,
        *,
        confidence: float = 0.95,
        beta: float | None = None,
        tau: float = 1.0,
        sigma: float | None = None,
        exact: bool = False,
    ) -> Certificate:
        """The guarantee that items nobody was trained on support, beside the error they show; see `theory.certify`.

        What held-out items say, `evidence`, is there for any rule; the paper's bounds are for DeGroot and other linear
        rules and their schedules, at full precision or quantised. The range of bounded scores is known; of others it is
        the largest seen unless `beta` says better.
        """
        rule = own_rule(self.policy) if self.rule is None else self.rule
        bits, averaging = (rule.bits, rule.rule) if type(rule) is Quantised else (None, rule)
        if not is_linear(averaging):
            averaging = rule
        self._fitted()
        run = self.run(self._complete(X) if self.columns is None else X)
        c = run.statistics[0]
        if beta is None and self.bounded:
            beta = float(np.abs(self.gains_).max())
        # Rounding is as coarse as the quantiser's bound, whatever the scores.
        raw = not self.center_.any()
        coarseness = rule.bound / (1 if raw else 2) if isinstance(rule, Quantised) and averaging is not rule else 0.0
        classes = tuple(self.classes_[::-1] if len(self.classes_) == 2 else self.classes_)
        return certify(
            c, y, self.policy, run.rounds, confidence=confidence, beta=beta, tau=tau, sigma=sigma, bits=bits,
            raw=raw, exact=exact, classes=classes, statistics=run.statistics, coarseness=coarseness,
            rule=averaging,
        )  # fmt: skip

    # Prediction sets

    def conformalize(self, X: AnyViews, y: ArrayLike, *, per_class: bool = False) -> Self:
        """Learn what `predict_set` and `predict_or_abstain` need, from labelled items that nothing was fitted by.

        The agents converse about these items as they will about others, and each keeps how far every class was behind
        for it: no agent learns more than in any other conversation. See `theory.conformal`.
        """
        statistics = self.run(X, record="final").statistics[-1]
        places = inside(y, len(statistics), self.classes_)
        classes = (1, -1) if len(self.classes_) == 2 else range(len(self.classes_))
        by_agent = dict(zip(self._names(), np.moveaxis(statistics, 1, 0), strict=True))
        self.conformal_ = {
            agent: conformal(one, places, classes=classes, per_class=per_class)
            for agent, one in ({"": statistics.mean(axis=1)} | by_agent).items()
        }
        self.conformal_of_ = self._conversation()
        return self

    def predict_set(self, X: AnyViews, alpha: float = 0.1, agent: str | None = None) -> NDArray[np.bool_]:
        """Which of `classes_` may be the true one, shape (n, C): all but a share α of the sets have it.

        On items exchangeable with those of `conformalize`, whatever the models, the rule and the dependence of views.
        A set with one class is a decision; one with several says "one of these"; an empty one "unlike what I know",
        which happens where α exceeds the error. agent: the sets of one agent, by what it knows itself.
        """
        found = self._conformal(agent).sets(self.decision_function(X, agent), alpha)
        return found[:, ::-1] if len(self.classes_) == 2 else found

    def predict_or_abstain(
        self, X: AnyViews, error: float = 0.05, confidence: float = 0.95, agent: str | None = None
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The decisions, shape (n,), and which of them to rely on: of those at most a share `error` is wrong.

        With this confidence, on items like those of `conformalize`; of the others, say "I do not know". See
        `theory.abstention`.
        """
        known = self._conformal(agent)
        rule = abstention(-known.behind.min(axis=-1), ~(known.scores < 0), error, confidence)
        final = self.decision_function(X, agent)
        lead = np.abs(final) if final.ndim == 1 else np.diff(np.sort(final, axis=1)[:, -2:], axis=1)[:, 0]
        return self.predict(X, agent), rule.decides(lead)

    def _conformal(self, agent: str | None) -> Conformal:
        known: dict[str, Conformal] = getattr(self, "conformal_", {})
        if not known:
            raise ModelError("prediction sets need labelled items that nothing was fitted by: call conformalize first")
        if self.conformal_of_ != self._conversation():
            raise ModelError("the network, the rule or a gain is not that of conformalize: call it again")
        return known[self._named(agent)]

    def _conversation(self) -> tuple[Any, ...]:
        """What makes the same scores lead to the same statistics."""
        return self.policy, self.rounds, self.rule, self.gains_.tolist()

    def _named(self, agent: str | None) -> str:
        names = self._names()
        if agent is not None and agent not in names:
            raise ModelError(f"there is no agent {agent!r}; the agents are {', '.join(map(repr, names))}")
        return agent or ""

    def _names(self) -> list[str]:
        return [name for name, _ in self.agents]

    # Keeping

    def save(self, folder: str | Path, *, onnx: bool = False) -> None:
        """Write the fitted team to a new folder, without pickle; see `Team.load`.

        onnx: write torch modules of one's own as ONNX files, which come back, and go live, without their code.
        """
        from collegium._team_files import save

        self._fitted()
        if getattr(self, "conformal_", {}):
            self._conformal(None)  # which refuses those of another network
        save(self, Path(folder), onnx)

    @classmethod
    def load(
        cls, folder: str | Path, *, modules: Mapping[str, Any] | None = None, trusted: Collection[str | type] = ()
    ) -> Team:
        """Read a team back; a file that was changed since it was written is refused.

        `modules` gives, by agent's name, the PyTorch modules that are the user's own: a saved team holds no code.
        `trusted` names types in scikit-learn models that skops does not vouch for; what the same user saved on the same
        machine needs none.
        """
        from collegium._team_files import load

        return load(Path(folder), modules, trusted)

    # Inside

    def _models(self) -> list[Model]:
        if not isinstance(self.policy, Schedule):
            raise PolicyError(
                "policy must be a collegium Policy, such as policy.uniform(topology.ring(9)), or another Schedule; got "
                f"{self.policy!r}"
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

    def _start(self, X: AnyViews) -> tuple[Doubles, NDArray[np.bool_]]:
        """What enters the protocol, and which views are missing: those agents start from 0."""
        models = self._fitted()
        self._unchanged()
        views, missing = self._gather(X)
        return self.pipeline_(self._score(models, views, missing)), missing

    def _gather(self, X: AnyViews, reset: bool = False) -> tuple[list[Any], NDArray[np.bool_]]:
        """The views and what is missing; of a table, also whether it has the columns that `fit` saw."""
        X = in_order(X, self._names())
        if self.columns is not None:
            X = table(X)
            try:
                validate_data(self, X, reset=reset, skip_check_array=True)
            except ValueError as refusal:
                raise DataError(brief(refusal)) from None
        return gather(X, len(self.agents), self.columns)

    def _unchanged(self) -> None:
        if self.prepared_ != (self.center, self.calibrate, self.bounded):
            raise ModelError("center, calibrate or bounded was changed since the team was fitted: fit it again")

    def _complete(self, X: AnyViews, reset: bool = False) -> list[Any]:
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


def _labelled_rows(items: ArrayLike, n: int) -> NDArray[np.intp]:
    rows = np.asarray(items)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(np.unique(rows)) < len(rows):
        raise DataError("items must be row numbers of the labelled items, each once")
    unknown = rows[(rows < 0) | (rows >= n)]
    if len(unknown):
        raise DataError(f"there is a label for item {unknown[0]}, but the views have items 0 to {n - 1}")
    return rows.astype(np.intp)
