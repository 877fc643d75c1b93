"""Whether this machine's clock can be trusted, as far as the machine knows."""

import ctypes
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

_UNSYNCHRONISED = 0x40  # STA_UNSYNC of <sys/timex.h>
_TIME_ERROR = 5


class _Timex(ctypes.Structure):
    """The head of the kernel's struct timex on 64-bit Linux; the rest is room."""

    _fields_ = [
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 256),
    ]


def clock_error() -> float | None:
    """Seconds the clock is off at most, by its synchronisation; infinite without one, None if that is not known."""
    if sys.platform != "linux":
        return None
    state = _Timex()  # modes = 0 only asks
    try:
        answer = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(state))
    except (OSError, AttributeError):
        return None
    if answer < 0:
        return None
    if answer == _TIME_ERROR or state.status & _UNSYNCHRONISED:
        return float("inf")
    return float(state.maxerror) / 1e6


def set_back(folder: Path) -> bool:
    """Whether files of this folder were written in the future: then the clock was set back, or never set."""
    newest = 0.0
    for name in os.listdir(folder):
        with suppress(OSError):
            newest = max(newest, (folder / name).stat().st_mtime)
    return newest > time.time() + 86400
