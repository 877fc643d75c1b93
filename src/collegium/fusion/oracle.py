"""Central oracle: what one model could do that saw everything, in training and in deciding."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from collegium.agents._seeding import seed_sequence, seeded
from collegium.agents.independent import Task, fit_side_by_side
from collegium.agents.scores import Scores
from collegium.agents.sklearn_model import to_features
from collegium.agents.torch_model import TorchModel
from collegium.data import patches
from collegium.fusion.base import (
    Aligned,
    Coordination,
    Decision,
    Method,
    aligned,
    answers,
    at_a_centre,
    complete_views,
)

if TYPE_CHECKING:
    from collegium.data import Dataset


class Oracle(Method):
    """What both oracles share: all views go to one place, before training and before deciding."""

    name = "Central oracle"
    coordination = Coordination(
        training="Centralized full-information training", inference="Centralized full-information prediction"
    )

    @property
    def needs_views(self) -> bool:
        """Yes: all of them."""
        return True

    def fit(self, scores: Scores, train: Dataset | None = None) -> Self:
        """Train one model on all views of the items that the agents of the record were trained on."""
        self._forget()
        items = aligned(scores, train, self.name)
        self.classes_ = scores.classes
        self._learn(items, scores)
        self.size_ = items.data.size
        self.training_transmissions_ = items.data.size * (len(items.inside) + len(items.outside))
        return self

    def decide(self, X: list[Any]) -> Decision:
        """Every agent sends its whole view to the centre, which decides."""
        self._fitted()
        views = complete_views(X, self.size_, self.name)
        bits = 8 * sum(np.asarray(view[:1]).nbytes for view in views)
        return at_a_centre(self._statistic(views), self.size_, bits)

    def _learn(self, items: Aligned, scores: Scores) -> None:
        raise NotImplementedError

    def _statistic(self, views: list[NDArray[Any]]) -> NDArray[np.float64]:
        raise NotImplementedError


class CentralOracle(Oracle):
    """One model of the agents' own family on everything they see [hu2026, App. H.1].

    With a `grid` the views are patches and are put together to the whole image, as the paper does for CIFAR-10;
    without one, all numbers of all views make one table. `model` is anything `as_model` takes; a PyTorch model uses
    `threads` threads, since nothing else runs beside it.
    """

    def __init__(
        self, model: Any, grid: tuple[int, int] | None = None, threads: int = 2, random_state: int | None = 0
    ) -> None:
        self.model = model
        self.grid = grid
        self.threads = threads
        self.random_state = random_state

    def _learn(self, items: Aligned, scores: Scores) -> None:
        model = seeded(self.model, seed_sequence(self.random_state, "random_state"))
        if isinstance(model, TorchModel):
            model.set_params(training=replace(model.training, threads=self.threads))
        data = items.data
        task = Task(
            self.name, model, self._joined(data.views), data.y, items.inside, items.outside, classes=self.classes_
        )
        self.model_ = fit_side_by_side([task], workers=1)[0].model

    def _statistic(self, views: list[NDArray[Any]]) -> NDArray[np.float64]:
        return answers(self.model_, self._joined(views), self.classes_)

    def _joined(self, views: list[NDArray[Any]]) -> NDArray[Any]:
        if self.grid is not None:
            height, width = (sum(view.shape[axis] for view in views) for axis in (1, 2))
            return patches.join(views, patches.check_grid(self.grid, height, width))
        return np.hstack([to_features(view, 255.0 if view.dtype == np.uint8 else 1.0) for view in views])
