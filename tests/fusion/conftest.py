"""A score record for the methods to work on."""

import pytest

from collegium.agents import Scores
from helpers import score_record


@pytest.fixture
def record() -> Scores:
    return score_record()
