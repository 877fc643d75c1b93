"""Boosting with the agents' own predictors, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from collegium._util.progress import track
from collegium._util.scores import check_scores
from collegium._util.views import rows
from collegium.agents._seeding import descend, seed_sequence, seeded
from collegium.agents.base import Model
from collegium.agents.independent import checked_scores, recipes
from collegium.agents.scores import Scores
from collegium.errors import CollegiumError
from collegium.fusion.base import (
    Aligned,
    Coordination,
    Decision,
    Doubles,
    Method,
    aligned,
    at_a_centre,
    check_record,
    complete_views,
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
        D = np.full(len(scores.train), 1 / len(scores.train))
        alpha, errors, sent = [], [], 0
        models: list[Model] = []
        for k in track(range(scores.size), "boosting agents"):
            f = scores.train[:, k] if items is None else self._fit_anew(k, D, items, descend(root, k), models)
            error, one, D = boost(D, scores.y_train * f)
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
            return checked_scores(model, view)
        except CollegiumError as mistake:
            raise type(mistake)(f"AdaBoost, agent {items.data.agent_names[k]!r}: {mistake}") from None

    def decide(self, X: Any) -> Decision:
        """Every agent sends its label to the centre, which weighs them."""
        self._fitted()
        K = len(self.alpha_)
        if self.needs_views:
            views = complete_views(X, K, self.name)
            f = np.column_stack([checked_scores(*pair) for pair in zip(self.models_, views, strict=True)])
        else:
            f = check_scores(X, K)
        return at_a_centre(np.sign(f) @ self.alpha_, K, K)


def boost(D: Doubles, margins: Doubles) -> tuple[float, float, Doubles]:
    """One round: the weighted error, α, and the weights that the next predictor is to mind.

    margins: positive where the predictor is right, negative where it is wrong, 0 where it does not know: wrong too.

    >>> boost(np.full(4, 0.25), np.array([1.0, 1.0, 1.0, -1.0]))[2].round(3)  # right and wrong now weigh the same
    array([0.167, 0.167, 0.167, 0.5  ])
    """
    right = margins > 0
    error = float(D[~right].sum())
    half = 0.5 / len(D)
    bounded = min(max(error, half), 1 - half)
    alpha = 0.5 * float(np.log((1 - bounded) / bounded))
    heavier = D * np.exp(np.where(right, -alpha, alpha))
    return error, alpha, heavier / heavier.sum()
