"""Who hears whom in round t: networks that change. A `Policy` is the schedule that never does."""

from collegium.schedule.alternating import Alternating, alternating
from collegium.schedule.base import Schedule
from collegium.schedule.pairwise import Pairwise, pairwise
from collegium.schedule.weights import Weights

__all__ = ["Alternating", "Pairwise", "Schedule", "Weights", "alternating", "pairwise"]
