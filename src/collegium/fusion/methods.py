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
from collegium.fusion.tuned import Tuned
from collegium.fusion.tuned_models import TunedModels
from collegium.fusion.vfl_jt import VFLJT
from collegium.fusion.vote import Vote
from collegium.protocol import SocialLearning
from collegium.schedule import Schedule


def all_methods(
    policy: Schedule,
    rounds: int | None = None,
    *,
    calibrate: bool = False,
    model: Any = None,
    branch: Any = None,
    oracle: Method | None = None,
    workers: int | None = None,
    random_state: int | None = 0,
) -> list[Method]:
    """Every method, in the paper's order, then those beyond it.

    policy, rounds: who hears whom and how often, for those over a network; social learning is left out where a schedule
        has a rule of its own.
    model: the agents' recipe (or K of them), with which AdaBoost fits them anew; without it they stay as they are.
    branch: the recipe of VFL-JT's branches, a PyTorch model; without it VFL-JT and Tuned models are left out.
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
    ]
    if policy.rule is None:
        methods.append(Ours(policy, rounds, SocialLearning(), calibrate=calibrate))
    methods.append(Tuned(policy, rounds, calibrate=calibrate))
    if branch is not None:
        methods.append(VFLJT(branch, workers=workers, random_state=random_state))
        methods.append(TunedModels(branch, policy, rounds, workers=workers, random_state=random_state))
    if oracle is not None:
        methods.append(oracle)
    return [*methods, LogOddsSum(), Stacking(calibrate=calibrate)]
