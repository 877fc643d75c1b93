"""The methods of the paper's comparison and some more, in one list."""

from __future__ import annotations

from typing import Any

from collegium.fusion.adaboost import AdaBoost
from collegium.fusion.average import AvgStat
from collegium.fusion.base import Method
from collegium.fusion.learned import LearnedFusion
from collegium.fusion.log_odds import LogOddsSum
from collegium.fusion.non_cooperative import NonCooperative
from collegium.fusion.ours import Ours
from collegium.fusion.simplex import SimplexFusion
from collegium.fusion.stacking import Stacking
from collegium.fusion.vfl_jt import VFLJT
from collegium.fusion.vote import Vote
from collegium.policy import Policy
from collegium.protocol import SocialLearning


def all_methods(
    policy: Policy,
    rounds: int = 20,
    *,
    calibrate: bool = False,
    model: Any = None,
    branch: Any = None,
    oracle: Method | None = None,
    workers: int | None = None,
    random_state: int | None = 0,
) -> list[Method]:
    """Every method, in the paper's order, then those beyond it.

    model: the agents' recipe (or K of them), with which AdaBoost fits them anew; without it they stay as they are.
    branch: the recipe of VFL-JT's branches, a PyTorch model; without it VFL-JT is left out.
    oracle: a `CentralOracle` or `MultiViewOracle`, if there is to be one.
    """
    methods: list[Method] = [
        NonCooperative(calibrate=calibrate),
        AvgStat(calibrate=calibrate),
        Vote(calibrate=calibrate),
        LearnedFusion(calibrate=calibrate),
        SimplexFusion(calibrate=calibrate),
        AdaBoost(model, random_state),
        Ours(policy, rounds, calibrate=calibrate),
        Ours(policy, rounds, center=False, calibrate=calibrate),
        Ours(policy, rounds, SocialLearning(), calibrate=calibrate),
    ]
    if branch is not None:
        methods.append(VFLJT(branch, workers=workers, random_state=random_state))
    if oracle is not None:
        methods.append(oracle)
    return [*methods, LogOddsSum(), Stacking(calibrate=calibrate)]
