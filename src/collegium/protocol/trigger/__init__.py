"""When an agent sends its value."""

from collegium.protocol.trigger.always import Always
from collegium.protocol.trigger.base import Trigger
from collegium.protocol.trigger.delta import Delta
from collegium.protocol.trigger.label_stable import LabelStable

__all__ = ["Always", "Delta", "LabelStable", "Trigger"]
