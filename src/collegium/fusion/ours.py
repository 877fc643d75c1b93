"""The paper's method: statistics exchanged with neighbours for some rounds."""

from __future__ import annotations

from numpy.typing import ArrayLike

from collegium._util.randomness import Seed
from collegium.agents.scores import Scores
from collegium.errors import PolicyError
from collegium.fusion.base import Coordination, Decision, ScoreMethod, check_size
from collegium.network import collaborate
from collegium.protocol import Quantised, Rule, SocialLearning
from collegium.schedule import Schedule


class Ours(ScoreMethod):
    """Test-time collaboration: every agent decides after `rounds` of messages to its neighbours [hu2026, Sec. II].

    With `center=False` it is the paper's *Ours (no centering)*; with `rule=protocol.SocialLearning()`, social learning
    with static observations. The paper compares methods where communication suffices: take enough rounds for A^t to
    be near its limit, which `policy.slem` ** rounds tells, or `schedule.exact`, which needs few. Rounds and rule are
    the schedule's own where it has them, or 20 of DeGroot.
    """

    coordination = Coordination(inference="Iterative peer-to-peer scalar exchange")

    def __init__(
        self,
        policy: Schedule,
        rounds: int | None = None,
        rule: Rule | None = None,
        center: bool = True,
        calibrate: bool = False,
        bounded: bool = False,
        rng: Seed = 0,
    ) -> None:
        super().__init__(center, calibrate, bounded)
        self.policy = policy
        self.rounds = rounds
        self.rule = rule
        self.rng = rng

    @property
    def name(self) -> str:  # type: ignore[override]
        """What the paper calls it."""
        rule = self.rule.rule if isinstance(self.rule, Quantised) else self.rule
        name = "Social learning" if isinstance(rule, SocialLearning) else "Ours"
        return name if self.center else f"{name} (no centering)"

    def _learn(self, scores: Scores) -> int:
        if not isinstance(self.policy, Schedule):
            raise PolicyError(f"policy must be a collegium Policy or Schedule, got {type(self.policy).__name__}")
        check_size(self.policy, scores)
        return 0

    def decide(self, X: ArrayLike) -> Decision:
        """Run the agents; the messages are counted in the run."""
        run = collaborate(self.statistics(X), self.policy, self.rounds, self.rule, self.rng, record="final")
        return Decision(run.statistics[-1], run.transmissions, run.bits)
