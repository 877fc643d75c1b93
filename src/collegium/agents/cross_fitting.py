"""Fit the agents of a team, and have scores of items that nobody learned from.

A model's scores of its own training items say little: a forest is certain of all of them. What is to be learned about
scores, their scale and their threshold, is learned from held-out items.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium.agents._seeding import descend, seeded
from collegium.agents._splitting import folds, split
from collegium.agents.base import Doubles, Model, View
from collegium.agents.independent import Fit, Task, fit_side_by_side
from collegium.errors import ModelError

HeldOut = Literal["none", "part", "in turn"]


class Fitted(NamedTuple):
    """K fitted models, and their scores of shape (items, K) or (items, K, C)."""

    models: list[Model]
    train: Doubles
    """Of the items they were fitted on; of no item where these are not wanted and others are held out."""
    held_out: Doubles
    """Of items that the model that scored them was not fitted on."""
    y_held_out: NDArray[Any]


def fit_agents(
    names: Sequence[str],
    models: Sequence[Model],
    views: Sequence[View],
    y: NDArray[Any],
    root: np.random.SeedSequence,
    *,
    classes: int,
    held_out: HeldOut,
    validation: float,
    wants_training: bool,
    workers: int | None,
    is_seeded: bool = True,
    weights: Doubles | None = None,
) -> Fitted:
    """Fit every agent's model on its own view.

    y: +1 and -1, or places of more than two classes.
    held_out: "part" leaves the part `validation` of the items out of everybody's training. "in turn" fits on all items,
        and once more for each of 1 / `validation` parts without that part, to score it. Not where a class has one item.
    is_seeded: whether the caller chose the seed `root`; if not, the part left out is the same in every fit.
    weights: how much each item counts in fitting the models, shape (n,).
    """
    for name, model in zip(names, models, strict=True) if weights is not None else ():
        if not getattr(model, "weighs_items", False):
            raise ModelError(f"agent {name!r}: its model cannot weigh items: leave out sample_weight")
    if held_out == "in turn" and min(np.unique(y, return_counts=True)[1]) < 2:
        held_out = "none"
        warnings.warn(
            "a class has a single item, so none can be held out: scores are used as they are, without temperatures and "
            "thresholds, and nothing tells whether the team is better than its members. Give it another item.",
            stacklevel=3,
        )
    wants_training |= held_out == "none"  # of some items there must be scores, to know how large they are
    inside, outside = np.arange(len(y)), np.empty(0, np.int64)
    if held_out == "part":
        # The same part in every fit unless a seed says otherwise, as the parts below.
        inside, outside = split(y, validation, np.random.default_rng(descend(root, 0) if is_seeded else 0))
    tasks = [
        Task(name, seeded(model, descend(root, 1, k)), view, y, inside, outside, None, classes, wants_training, weights)
        for k, (name, model, view) in enumerate(zip(names, models, views, strict=True))
    ]
    parts = []
    if held_out == "in turn":
        count = min(max(round(1 / validation), 2), int(np.unique(y, return_counts=True)[1].max()))
        # The same parts in every fit: a team of models without randomness is the same each time.
        parts = list(folds(y, count, np.random.default_rng(0)))
    again = [
        task._replace(
            model=seeded(model, descend(root, 2, part, k)), fitted_on=learned, held_out=held, scores_training=False
        )
        for part, (learned, held) in enumerate(parts)
        for k, (task, model) in enumerate(zip(tasks, models, strict=True))
    ]
    K = len(tasks)
    fits = fit_side_by_side([*tasks, *again], workers)
    rows = np.concatenate([held for _, held in parts]) if parts else outside
    scored = [fits[start : start + K] for start in range(K if parts else 0, len(fits), K)]
    return Fitted(
        [fit.model for fit in fits[:K]],
        _side_by_side(fits[:K], "train"),
        np.concatenate([_side_by_side(some, "val") for some in scored]),
        y[rows],
    )


def _side_by_side(fits: Sequence[Fit], part: str) -> Doubles:
    return np.stack([getattr(fit, part) for fit in fits], axis=1)
