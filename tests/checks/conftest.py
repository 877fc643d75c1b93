"""What every suite of checks is tried with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from unittest import SkipTest

import pytest

from collegium.checks import Check
from collegium.errors import CheckError


@pytest.fixture
def broken() -> Callable[[Iterable[Check]], dict[str, str]]:
    """What the checks that fail say, by name."""

    def run(checks: Iterable[Check]) -> dict[str, str]:
        said = {}
        for check in checks:
            try:
                check()
            except CheckError as problem:
                said[str(check)] = str(problem)
            except SkipTest:
                continue
        return said

    return run
