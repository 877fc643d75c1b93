"""The studies, by name: those of the paper in its order, those beyond it; and those of users."""

import re
from collections.abc import Sequence
from inspect import isabstract
from typing import Any

from collegium._util import plugins
from collegium.errors import DataError
from collegium.lab.studies.averages import AveragesStudy
from collegium.lab.studies.bounds import Bounds
from collegium.lab.studies.cmi import CifarCmi
from collegium.lab.studies.communication_cost import CommunicationCost
from collegium.lab.studies.correlation import Correlation
from collegium.lab.studies.graphs import CifarGraphs, Graphs
from collegium.lab.studies.hetero_gain import HeteroGain
from collegium.lab.studies.main import CifarHeteroMain, CifarMain, ModelNetMain
from collegium.lab.studies.robustness import Robustness
from collegium.lab.studies.sensors import SensorsMain
from collegium.lab.studies.setup import CifarSetup, ModelNetSetup
from collegium.lab.studies.stopping import Stopping
from collegium.lab.studies.temperature import CifarTemperature, ModelNetTemperature
from collegium.lab.studies.topology import Topology
from collegium.lab.studies.trust import LiarsStudy, PrivacyStudy
from collegium.lab.study import Origin, Study
from collegium.lab.table import check_factors

PAPER: dict[str, Study] = {
    study.name: study
    for study in (
        Bounds(),
        CifarSetup(),
        CifarMain(),
        CifarGraphs(),
        CifarCmi(),
        HeteroGain(),
        CifarHeteroMain(),
        CifarTemperature(),
        ModelNetSetup(),
        ModelNetMain(),
        ModelNetTemperature(),
        Correlation(),
        Topology(),
        Graphs(),
        Stopping(),
        Robustness(),
        CommunicationCost(),
    )
}
BEYOND: dict[str, Study] = {
    study.name: study for study in (SensorsMain(), LiarsStudy(), PrivacyStudy(), AveragesStudy())
}
"""On other data than the paper's; run only when named."""
STUDIES = PAPER | BEYOND


def find(names: Sequence[str], data: str | None = None, models: str | None = None) -> list[Study]:
    """Studies by name, those of users by entry point or as FILE.py:NAME; all of the paper's if none is named.

    With a user's data or models they are studies of these; all of the paper's that can be, if none is named.
    """
    own = [load(name) for name in dict.fromkeys(names) if name not in STUDIES]
    if data is None and models is None:
        return [*(study for name, study in STUDIES.items() if (name in names if names else name in PAPER)), *own]
    movable = (study for name, study in STUDIES.items() if (name in names if names else type(study).on is not Study.on))
    found: dict[str, Study] = {}
    for study in (*movable, *own):
        moved = study.on(data, models)
        moved.origin = Origin(study.origin.study if study.origin else study.name, data, models)
        found.setdefault(moved.name, moved)
    return list(found.values())


def load(written: str) -> Study:
    """A user's study: a class derived from `Study`, or an object of one."""
    short, made = plugins.short(written), plugins.load(written, plugins.STUDIES, STUDIES)
    if isinstance(made, type) and issubclass(made, Study):
        if isabstract(made):
            raise DataError(f"{short} lacks {', '.join(sorted(made.__abstractmethods__))}: a study defines them all")
        made = plugins.call(written, plugins.STUDIES)
    if not isinstance(made, Study):
        raise DataError(f"{short} must be a collegium.lab.study.Study; got {_described(made)}")
    for name in ("name", "title"):
        if not isinstance(getattr(made, name, None), str):
            raise DataError(f'{short} has no {name}: write {name} = "…" in the class')
    if made.name in STUDIES or not re.fullmatch(r"[\w.-]+", made.name):
        raise DataError(
            f"{short} cannot be called {made.name!r}: take letters, digits, - and _, and none of our studies' names"
        )
    check_factors(made.factors)
    made.origin = Origin(plugins.absolute(written))
    return made


def _described(made: Any) -> str:
    return f"the class {made.__name__}" if isinstance(made, type) else type(made).__name__
