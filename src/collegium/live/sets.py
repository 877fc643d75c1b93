"""Prediction sets and abstention at a live agent: thresholds in its own file, compared with its own statistics.

They are learned before, by `Team.conformalize`, from held-out items about which the same agents conversed by the same
rule. An answer that lacks a view or a message is not like those: its set has all classes, and it is never sure.
"""

from __future__ import annotations

from math import inf, isnan
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
from msgspec import UNSET, Meta
from numpy.typing import NDArray

from collegium._util.measures import behind
from collegium.errors import InputFileError, LiveError
from collegium.protocol import Rule, registry

if TYPE_CHECKING:
    from collegium.schedule import Schedule
    from collegium.team import Team


class Sets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an agent's answers have beside the label."""

    alpha: Annotated[float, Meta(gt=0, lt=1)] | None = None
    """Of all items, the share whose set may lack the true class."""
    behind: list[float] = []
    """How far each class may be behind the best other one and belong to the set, in the order of the classes."""
    error: Annotated[float, Meta(gt=0, lt=1)] | None = None
    """Of the items that the agent is sure of, the share that may be wrong."""
    lead: float = inf
    """How far its label must lead the second for the agent to be sure."""

    def check(self, classes: int) -> None:
        """Refuse thresholds that are not of these classes."""
        if len(self.behind) != (0 if self.alpha is None else classes) or any(map(isnan, (*self.behind, self.lead))):
            raise InputFileError(f"sets.behind must have a number for each of {classes} classes, and alpha with them")

    def answer(
        self, statistics: NDArray[np.float64], complete: NDArray[np.bool_], classes: tuple[Any, ...]
    ) -> tuple[list[Any], list[Any]]:
        """`set` and `sure` of items: from statistics (n, d), and whether all that can be is in each."""
        lag = behind(np.hstack([-statistics / 2, statistics / 2]) if len(classes) == 2 else statistics)
        among: list[Any] = [UNSET] * len(lag)
        sure: list[Any] = [UNSET] * len(lag)
        if self.alpha is not None:
            members = (lag <= np.array(self.behind)) | ~complete[:, None]
            among = [[c for c, is_in in zip(classes, row, strict=True) if is_in] for row in members.tolist()]
        if self.error is not None:
            sure = ((-lag.min(axis=1) > self.lead) & complete).tolist()
        return among, sure


def of_team(
    team: Team | None, policy: Schedule, rounds: int, rule: Rule, alpha: float | None, error: float | None
) -> list[Sets] | None:
    """The thresholds of each agent of a team, if any are wanted."""
    if alpha is None and error is None:
        return None
    if team is None or not getattr(team, "conformal_", {}):
        raise LiveError(
            "prediction sets need a team that has learned from held-out items: team.conformalize(views, y), then "
            "team.save(folder)"
        )
    from collegium.schedule import own_rounds, own_rule
    from collegium.theory.conformal import abstention

    known = own_rule(team.policy) if team.rule is None else team.rule
    same = policy == team.policy and rounds == (team.rounds or own_rounds(team.policy))
    if not same or registry.to_text(known) != registry.to_text(rule):
        raise LiveError(
            "the team's prediction sets are of its own network, rounds and rule: leave out what changes them, or "
            "call conformalize with these"
        )
    found = []
    for name, _ in team.agents:
        one = team._conformal(str(name))
        thresholds: list[float] = []
        if alpha is not None:
            thresholds = np.broadcast_to(one.threshold(alpha), (one.classes,)).tolist()
            thresholds = thresholds[::-1] if one.classes == 2 else thresholds
        lead = inf
        if error is not None:
            lead = float(abstention(-one.behind.min(axis=-1), ~(one.scores < 0), error).threshold)
        found.append(Sets(alpha, thresholds, error, lead))
    return found
