"""Every method of the comparison: fit it on scores or views, let it decide, and see what it asks of the agents.

Names are loaded when they are first used, so that PyTorch is loaded only by what trains networks.
"""

from typing import TYPE_CHECKING

from collegium._util.lazy import lazy

if TYPE_CHECKING:
    from collegium.fusion.adaboost import AdaBoost
    from collegium.fusion.average import AvgStat
    from collegium.fusion.base import Coordination, Decision, Method, ScoreMethod
    from collegium.fusion.compare import ComparisonRow, Result, coordination_table, evaluate, summarise
    from collegium.fusion.everybody import Everybody
    from collegium.fusion.learned import LearnedFusion
    from collegium.fusion.log_odds import LogOddsSum
    from collegium.fusion.methods import all_methods
    from collegium.fusion.multi_view_oracle import MultiViewOracle
    from collegium.fusion.non_cooperative import NonCooperative
    from collegium.fusion.oracle import CentralOracle
    from collegium.fusion.ours import Ours
    from collegium.fusion.simplex import SimplexFusion
    from collegium.fusion.stacking import Stacking
    from collegium.fusion.tuned import Tuned
    from collegium.fusion.tuned_models import TunedModels
    from collegium.fusion.vfl_jt import VFLJT
    from collegium.fusion.vote import Vote

_HOMES = {
    "AdaBoost": "adaboost",
    "AvgStat": "average",
    "CentralOracle": "oracle",
    "ComparisonRow": "compare",
    "Coordination": "base",
    "Decision": "base",
    "Everybody": "everybody",
    "LearnedFusion": "learned",
    "LogOddsSum": "log_odds",
    "Method": "base",
    "MultiViewOracle": "multi_view_oracle",
    "NonCooperative": "non_cooperative",
    "Ours": "ours",
    "Result": "compare",
    "ScoreMethod": "base",
    "SimplexFusion": "simplex",
    "Stacking": "stacking",
    "Tuned": "tuned",
    "TunedModels": "tuned_models",
    "VFLJT": "vfl_jt",
    "Vote": "vote",
    "all_methods": "methods",
    "coordination_table": "compare",
    "evaluate": "compare",
    "summarise": "compare",
}

__all__ = [
    "VFLJT",
    "AdaBoost",
    "AvgStat",
    "CentralOracle",
    "ComparisonRow",
    "Coordination",
    "Decision",
    "Everybody",
    "LearnedFusion",
    "LogOddsSum",
    "Method",
    "MultiViewOracle",
    "NonCooperative",
    "Ours",
    "Result",
    "ScoreMethod",
    "SimplexFusion",
    "Stacking",
    "Tuned",
    "TunedModels",
    "Vote",
    "all_methods",
    "coordination_table",
    "evaluate",
    "summarise",
]

__getattr__, __dir__ = lazy(__name__, _HOMES)
