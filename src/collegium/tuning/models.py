"""Models trained jointly by conversation, without a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium.agents.optimisation import History, Training, batches, stop_early
from collegium.agents.torch_model import TorchModel
from collegium.tuning.conversation import Conversation
from collegium.tuning.losses import Doubles


class Jointly(NamedTuple):
    """What is left beside the models, which were trained where they are."""

    weights: Doubles
    """w_k, shape (K,): the sum that decides is b + Σ w_k s_k."""
    bias: Doubles
    """Each agent's copy of b, shape (K,) or (K, C)."""
    history: History


def train_jointly(
    models: list[TorchModel], views: Sequence[Any], y: NDArray[Any], inside: Any, outside: Any, classes: int,
    talk: Conversation, settings: Training, seed: int, *, fitted: Sequence[Any] = (), workers: int | None = None,
    told: Any = None,
) -> Jointly:  # fmt: skip
    """Train K models on the items `inside`, until the loss of those `outside` falls no more.

    views: of K agents, n items each. y: +1 / -1 or places. talk: how the agents average, and what it has cost.
    fitted: models whose weights they begin with; new ones, where there are none.
    """
    import torch

    from collegium.tuning._border import Branch, Server
    from collegium.tuning._in_threads import in_threads
    from collegium.tuning._peers import Peer, network_average

    C, K = classes, len(models)
    branches = [
        Branch(model, view[inside], view[outside], settings, C) for model, view in zip(models, views, strict=True)
    ]
    for branch, model in zip(branches, fitted, strict=False):
        if isinstance(model, TorchModel):
            branch.network.load_state_dict(model.module_.state_dict())
    labels = Server(y[inside], y[outside], K, settings, C)
    peers = [Peer(branch, labels._target, labels._target_held_out, K, C) for branch in branches]
    networks = [branch.network for branch in branches]
    torch.manual_seed(seed)
    with in_threads(workers, networks) as run:

        def epoch() -> float:
            total = 0.0
            for rows in batches(len(inside), settings.batch_size):
                heard = network_average(talk, run(Peer.say, peers, [rows] * K))
                total += float(np.mean(run(Peer.learn, peers, heard, [rows] * K))) * len(rows)
            return total / len(inside)

        def check() -> float:
            heard = network_average(talk, run(Peer.say_of_held_out, peers))
            return float(np.mean(run(Peer.check, peers, heard)))

        history = stop_early([*networks, *peers], epoch, check, settings, told)
    for branch, view in zip(branches, views, strict=True):
        branch.model.module_, branch.model.input_shape_ = branch.network, view.shape[1:]
        branch.model.classes_ = np.array([-1, 1]) if C == 2 else np.arange(C)
    weights = np.array([float(peer.w.detach()) for peer in peers])
    return Jointly(weights, np.array([peer.b.detach().double().numpy() for peer in peers]), history)
