"""Worker processes."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from functools import cache


@cache
def follow_parent() -> None:
    """End this worker, started by multiprocessing or joblib, within seconds of its parent's end, however that came.

    The worker of a parent that was killed would otherwise go on computing, or wait for ever with its data in memory.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        while os.getppid() == parent.pid:  # joblib's workers have no sentinel to wait for
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
