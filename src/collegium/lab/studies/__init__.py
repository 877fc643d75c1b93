"""The studies, by name, in the order of the paper."""

from collegium.errors import DataError
from collegium.lab.studies.cmi import CifarCmi
from collegium.lab.studies.communication_cost import CommunicationCost
from collegium.lab.studies.correlation import Correlation
from collegium.lab.studies.hetero_gain import HeteroGain
from collegium.lab.studies.main import CifarHeteroMain, CifarMain, ModelNetMain
from collegium.lab.studies.robustness import Robustness
from collegium.lab.studies.setup import CifarSetup, ModelNetSetup
from collegium.lab.studies.stopping import Stopping
from collegium.lab.studies.temperature import CifarTemperature, ModelNetTemperature
from collegium.lab.studies.topology import Topology
from collegium.lab.study import Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        CifarSetup(),
        CifarMain(),
        CifarCmi(),
        HeteroGain(),
        CifarHeteroMain(),
        CifarTemperature(),
        ModelNetSetup(),
        ModelNetMain(),
        ModelNetTemperature(),
        Correlation(),
        Topology(),
        Stopping(),
        Robustness(),
        CommunicationCost(),
    )
}


def find(names: list[str]) -> list[Study]:
    """Studies by name; all if none is named."""
    for name in names:
        if name not in STUDIES:
            raise DataError(f"there is no study {name!r}: choose among {', '.join(STUDIES)}")
    return [study for name, study in STUDIES.items() if not names or name in names]
