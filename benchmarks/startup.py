"""What a fresh process pays: importing, and the first use of compiled kernels that another process left on disk."""

import subprocess
import sys
from typing import Any

IMPORT = "import time; t = time.perf_counter(); import collegium; print(time.perf_counter() - t)"
NAMES = (
    "import time; t = time.perf_counter(); from collegium import topology, policy, protocol, collaborate; "
    "print(time.perf_counter() - t)"
)
FIRST_USE = """
import time
from collegium import collaborate, policy, topology
import collegium.kernels.averaging
t = time.perf_counter()
collaborate([[1.0, 2.0, 3.0]], policy.uniform(topology.ring(3)))
print(time.perf_counter() - t)
"""


def seconds(code: str) -> float:
    """The quickest of five fresh processes."""
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True) for _ in range(5)]
    return min(float(run.stdout) for run in runs)


def measure() -> list[dict[str, Any]]:
    return [
        {"figure": "import collegium, seconds", "value": seconds(IMPORT), "target": "≤ 0.3"},
        {"figure": "import of the names a user types, seconds", "value": seconds(NAMES), "target": ""},
        {
            "figure": "first collaborate with cached kernels, seconds",
            "value": seconds(FIRST_USE),
            "target": "",
        },
    ]
