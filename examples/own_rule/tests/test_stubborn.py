"""Every promise of a rule as a test of its own."""

import pytest
from collegium_stubborn import Stubborn

from collegium.checks import rule_checks


@pytest.mark.parametrize("check", rule_checks(Stubborn(0.3)), ids=str)
def test_stubborn(check):
    check()
