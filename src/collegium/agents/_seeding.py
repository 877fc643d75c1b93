"""Where random numbers come from: one sequence per purpose, whoever asks first and however many do."""

from __future__ import annotations

from typing import Any

import numpy as np

from collegium._util.arguments import whole_number
from collegium.agents.adapt import as_model
from collegium.agents.base import Model
from collegium.errors import ModelError


def seed_sequence(seed: Any, what: str) -> np.random.SeedSequence:
    """A seed sequence from a whole number, a generator (which moves on by one draw), or fresh if None."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if seed is None:
        return np.random.SeedSequence()
    if isinstance(seed, np.random.Generator):
        return np.random.SeedSequence(int(seed.integers(2**63)))
    if isinstance(seed, np.random.RandomState):
        return np.random.SeedSequence(int(seed.randint(2**31)))
    return np.random.SeedSequence(whole_number(seed, what, ModelError))


def descend(root: np.random.SeedSequence, *path: int) -> np.random.SeedSequence:
    """A child of `root`, the same however many were asked for before."""
    return np.random.SeedSequence(entropy=root.entropy, spawn_key=(*root.spawn_key, *path))


def seeded(model: Any, sequence: np.random.SeedSequence) -> Model:
    """A fresh copy of the model with every `random_state` that was left open drawn from the sequence."""
    from sklearn.base import clone

    copy: Model = clone(as_model(model), safe=False)
    if not hasattr(copy, "get_params"):
        return copy
    open_states = sorted(
        name
        for name, value in copy.get_params(deep=True).items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    )
    states = sequence.generate_state(len(open_states), np.uint32) if open_states else ()
    copy.set_params(**{name: int(state) for name, state in zip(open_states, states, strict=True)})
    return copy
