import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # for helpers.py, from any folder

# At a desk every run tries new examples; what must pass before a change lands is the same each time. How long an
# example takes says more about the machine than about the code.
settings.register_profile("desk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("desk"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In CI a test of processes, sockets or a browser that fails is run once more, and the summary names it (RERUN):
    it runs beside other work there. At a desk it fails at once, so that its race is found."""
    if os.environ.get("CI"):
        for item in items:
            if any(item.get_closest_marker(name) for name in ("live", "ray", "browser")):
                item.add_marker(pytest.mark.flaky(reruns=1))
