"""Where jobs run: one after the other, in processes of this machine, or on a Ray cluster."""

from collegium.lab.backends.base import Backend
from collegium.lab.backends.process import Process
from collegium.lab.backends.ray import Ray
from collegium.lab.backends.serial import Serial

__all__ = ["Backend", "Process", "Ray", "Serial"]
