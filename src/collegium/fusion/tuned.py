"""Ours with gains that the agents learned by conversation."""

from __future__ import annotations

from numpy.typing import ArrayLike

from collegium._util.randomness import Seed
from collegium.agents.scores import Scores
from collegium.errors import LabelError
from collegium.fusion.base import Coordination, Decision, ScoreMethod, check_size
from collegium.network import collaborate
from collegium.protocol import Rule
from collegium.schedule.base import Schedule
from collegium.tuning.gains import Tuning, tune


class Tuned(ScoreMethod):
    """Test-time collaboration with gains learned from averages of the validation items; see `collegium.tuning`.

    It is learned over the same network, by the same rule, that decides afterwards; with `schedule.exact(K)` that takes
    the fewest messages. Scores are not centred unless told: the common threshold is learned.
    """

    name = "Tuned"
    coordination = Coordination(
        fitting="Averages of labeled validation items, peer to peer",
        inference="Iterative peer-to-peer scalar exchange",
    )
    tuning_: Tuning | None
    """None where the validation items are too few to learn from: then gains are equal."""

    def __init__(
        self,
        schedule: Schedule,
        rounds: int | None = None,
        rule: Rule | None = None,
        loss: str = "logistic",
        per_class: bool = False,
        conversations: int | None = None,
        center: bool = False,
        calibrate: bool = False,
        bounded: bool = False,
        rng: Seed = 0,
    ) -> None:
        super().__init__(center, calibrate, bounded)
        self.schedule = schedule
        self.rounds = rounds
        self.rule = rule
        self.loss = loss
        self.per_class = per_class
        self.conversations = conversations
        self.rng = rng

    def _learn(self, scores: Scores) -> int:
        check_size(self.schedule, scores)
        self.tuning_ = None
        try:
            rounds = None if self.rule is None else self.rounds  # the limit of averages is known in fewer rounds
            self.tuning_ = tune(
                self.pipeline_(scores.val), scores.y_val, self.schedule, rounds, self.rule,
                loss=self.loss, per_class=self.per_class, conversations=self.conversations,
            )  # fmt: skip
        except LabelError:  # too few validation items, or of one class: gains stay equal
            return 0
        self.pipeline_ = self.tuning_.apply(self.pipeline_)
        return self.tuning_.transmissions

    def decide(self, X: ArrayLike) -> Decision:
        """Run the agents; the messages are counted in the run."""
        run = collaborate(self.statistics(X), self.schedule, self.rounds, self.rule, self.rng, record="final")
        return Decision(run.statistics[-1], run.transmissions, run.bits)
