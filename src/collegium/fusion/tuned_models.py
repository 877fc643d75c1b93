"""The agents' models trained jointly by conversation: VFL-JT without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collegium._util.margins import centred
from collegium.agents.base import View
from collegium.agents.optimisation import Training
from collegium.agents.scores import Scores
from collegium.agents.torch_model import TorchModel
from collegium.errors import ModelError
from collegium.fusion.base import Aligned, Coordination, Decision, answers, check_size, complete_views
from collegium.fusion.vfl_jt import VFLJT
from collegium.network import collaborate
from collegium.protocol import Rule
from collegium.schedule.base import Schedule
from collegium.tuning.conversation import Conversation
from collegium.tuning.models import train_jointly

if TYPE_CHECKING:
    pass


class TunedModels(VFLJT):
    r"""VFL-JT's joint training where the network forms the sum and no server is needed.

    $$ u = b + \sum_k w_k s_k, \qquad \frac{\partial \ell}{\partial s_k} = w_k \frac{\partial \ell}{\partial u} $$

    Agent k has its model and w_k, every agent the labels and a copy of b. For every batch the agents average w_k s_k
    over the network; the sum is all that the derivative needs. With exact averages the steps are VFL-JT's.

    `model`, `training`, `workers` and `random_state` are VFL-JT's; `schedule`, `rounds` and `rule` say how averages are
    made. `start="fitted"` begins with the agents' own models, where the score record still has them, "new" anew.
    """

    name = "Tuned models"
    coordination = Coordination(
        training="Averages of aligned labeled samples, peer to peer",
        inference="Iterative peer-to-peer scalar exchange",
    )

    def __init__(
        self,
        model: Any,
        schedule: Schedule,
        rounds: int | None = None,
        rule: Rule | None = None,
        training: Training | None = None,
        start: str = "fitted",
        workers: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        super().__init__(model, training, workers, random_state)
        self.schedule = schedule
        self.rounds = rounds
        self.rule = rule
        self.start = start

    def _check(self, scores: Scores) -> None:
        if self.start not in ("fitted", "new"):
            raise ModelError(f'start must be "fitted" or "new"; got {self.start!r}')
        check_size(self.schedule, scores)

    def _train(
        self, scores: Scores, items: Aligned, models: list[TorchModel], settings: Training, seed: int, told: Any
    ) -> None:
        fitted = list(scores.models) if self.start == "fitted" else []
        averages = Conversation(self.schedule, self.rounds, self.rule)
        self.weights_, self.bias_, self.history_ = train_jointly(
            models, items.data.views, items.data.y, items.inside, items.outside, self.classes_, averages, settings,
            seed, fitted=fitted, workers=self.workers, told=told,
        )  # fmt: skip
        self.models_, self.training_transmissions_ = models, averages.transmissions

    def decide(self, X: list[View]) -> Decision:
        """Run the agents with their weights and thresholds; the messages are counted in the run."""
        self._fitted()
        K, C = len(self.models_), self.classes_
        views = complete_views(X, K, self.name)
        s = np.stack([answers(model, view, C) for model, view in zip(self.models_, views, strict=True)], axis=1)
        weights = self.weights_ if C == 2 else self.weights_[:, None]
        c = K * weights * s + self.bias_
        c = c if C == 2 else centred(c)
        run = collaborate(c, self.schedule, self.rounds, self.rule, record="final")
        return Decision(run.statistics[-1], run.transmissions, run.bits)
