"""The one loop: `collaborate` runs a rule over a schedule, `sweep` many rules; `Run` and `Sweep` hold the results."""

from collegium.network._collaborate import collaborate, run_job, validated
from collegium.network._loop import reference_run
from collegium.network._run import Items, Run
from collegium.network._sweep import Sweep, sweep

__all__ = ["Items", "Run", "Sweep", "collaborate", "reference_run", "run_job", "sweep", "validated"]
