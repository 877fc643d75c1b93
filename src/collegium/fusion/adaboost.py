"""Boosting with the agents' own predictors, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from collegium._util.margins import centred, named, rival_margins
from collegium._util.progress import track
from collegium._util.views import rows
from collegium.agents._seeding import descend, seed_sequence, seeded
from collegium.agents.base import Model
from collegium.agents.independent import recipes
from collegium.agents.scores import Scores
from collegium.errors import CollegiumError
from collegium.fusion.base import (
    Aligned,
    Coordination,
    Decision,
    Doubles,
    Method,
    aligned,
    answers,
    at_a_centre,
    check_record,
    checked,
    complete_views,
    label_bits,
)

if TYPE_CHECKING:
    from collegium.data import Dataset


class AdaBoost(Method):
    r"""The sign of Σ α_k h_k, where h_k = sign f_k is agent k's own label [freund1997; hu2026, App. H.1].

    Agent by agent, with weights D over the training items that begin equal:

    $$ ε_k = \sum_{n: h_k(n) \ne γ_n} D_n, \qquad α_k = \tfrac12 \log\frac{1-ε_k}{ε_k}, \qquad
       D_n \leftarrow D_n e^{-α_k γ_n h_k(n)} / Z_k $$

    With a `model` (one recipe, or one per agent) each predictor is fitted anew under the weights that the agents before
    it left: by weighted loss if the model can, on items drawn with these probabilities if it cannot. This is the
    cooperation during training that the paper speaks of. Without a model the predictors are taken as they are.

    An error of 0 counts as half an item, or α would be infinite; an agent that is wrong more often than right gets a
    negative α, which is where the exponential loss is smallest.

    Of C classes it is SAMME [zhu2009]: the class with the largest Σ α_k over the agents that name it, where
    α_k = ½ (log((1 - ε_k)/ε_k) + log(C - 1)), positive for an agent that is right more often than by chance. (Half of
    what SAMME says, which changes no decision and no weight, and is the α above for C = 2.)
    """

    name = "AdaBoost"
    coordination = Coordination(
        training="Centralized",
        fitting="Boosting-based fitting of local predictors",
        inference="One-shot weighted fusion",
    )
    alpha_: Doubles
    errors_: Doubles
    """The weighted error of each predictor when its turn came, shape (K,)."""

    def __init__(self, model: Any = None, random_state: int | None = 0) -> None:
        self.model = model
        self.random_state = random_state

    @property
    def needs_views(self) -> bool:
        """Only where the predictors are fitted anew."""
        return self.model is not None

    def fit(self, scores: Scores, train: Dataset | None = None) -> Self:
        """Go through the agents once, carrying the weights from one to the next."""
        self._forget()
        check_record(scores)
        items = aligned(scores, train, self.name) if self.needs_views else None
        root = seed_sequence(self.random_state, "random_state")
        self.classes_ = C = scores.classes
        D = np.full(len(scores.train), 1 / len(scores.train))
        alpha, errors, sent = [], [], 0
        models: list[Model] = []
        for k in track(range(scores.size), "boosting agents"):
            f = scores.train[:, k] if items is None else self._fit_anew(k, D, items, descend(root, k), models)
            margins = scores.y_train * f if C == 2 else rival_margins(f, scores.y_train.astype(np.intp)).min(axis=1)
            error, one, D = boost(D, margins, C)
            alpha.append(one)
            errors.append(error)
            sent += 1 + (len(D) if k + 1 < scores.size else 0)  # α to the centre, the weights to the next agent
        self.models_, self.alpha_, self.errors_ = models, np.array(alpha), np.array(errors)
        self.training_transmissions_ = sent
        return self

    def _fit_anew(
        self, k: int, D: Doubles, items: Aligned, seeds: np.random.SeedSequence, models: list[Model]
    ) -> Doubles:
        """Fit agent k's model under these weights and add it to `models`; gives its scores of the training items."""
        model = seeded(recipes(self.model, items.data.size)[k], descend(seeds, 0))
        view, y = rows(items.data.views[k], items.inside), items.data.y[items.inside]
        fit: Any = model.fit
        settings: dict[str, Any] = {}
        if model.uses_validation:
            settings["validation"] = rows(items.data.views[k], items.outside), items.data.y[items.outside]
        try:
            if model.weighs_items:
                fit(view, y, sample_weight=D, **settings)
            else:
                drawn = np.random.default_rng(descend(seeds, 1)).choice(len(D), len(D), p=D)
                fit(rows(view, drawn), y[drawn], **settings)
            models.append(model)
            return answers(model, view, self.classes_)
        except CollegiumError as mistake:
            raise type(mistake)(f"AdaBoost, agent {items.data.agent_names[k]!r}: {mistake}") from None

    def decide(self, X: Any) -> Decision:
        """Every agent sends its label to the centre, which weighs them."""
        self._fitted()
        K, C = len(self.alpha_), self.classes_
        if self.needs_views:
            views = complete_views(X, K, self.name)
            f = np.stack([answers(model, view, C) for model, view in zip(self.models_, views, strict=True)], axis=1)
        else:
            f = checked(X, K, C)
        fused = np.sign(f) @ self.alpha_ if C == 2 else centred(np.tensordot(named(f), self.alpha_, axes=(1, 0)))
        return at_a_centre(fused, K, K * label_bits(C))


def boost(D: Doubles, margins: Doubles, classes: int = 2) -> tuple[float, float, Doubles]:
    """One round: the weighted error, α, and the weights that the next predictor is to mind.

    margins: positive where the predictor is right, negative where it is wrong, 0 where it does not know: wrong too.
    classes: C; an error of 1 - 1/C is that of chance, and has α = 0.

    >>> boost(np.full(4, 0.25), np.array([1.0, 1.0, 1.0, -1.0]))[2].round(3)  # right and wrong now weigh the same
    array([0.167, 0.167, 0.167, 0.5  ])
    """
    right = margins > 0
    error = float(D[~right].sum())
    half = 0.5 / len(D)
    bounded = min(max(error, half), 1 - half)
    alpha = 0.5 * float(np.log((1 - bounded) / bounded) + np.log(classes - 1))
    heavier = D * np.exp(np.where(right, -alpha, alpha))
    return error, alpha, heavier / heavier.sum()
