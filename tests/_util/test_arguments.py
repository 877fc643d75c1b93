import numpy as np
import pytest

from collegium._util.arguments import real_number, whole_number
from collegium.errors import RuleError


@pytest.mark.parametrize("value", [0, 7, np.int8(3), np.uint64(5)])
def test_whole_numbers_pass_as_ints(value):
    assert type(whole_number(value, "it", RuleError)) is int


@pytest.mark.parametrize("value", [True, np.True_, 2.0, "2", None, -1, 11, np.nan])
def test_others_are_refused(value):
    with pytest.raises(RuleError, match="it must be a whole number between 0 and 10; got"):
        whole_number(value, "it", RuleError, at_most=10)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.5), np.int64(1)])
def test_real_numbers_pass_as_floats(value):
    assert type(real_number(value, "it", RuleError, above=0, at_most=1)) is float


@pytest.mark.parametrize("value", [0, -1.0, 1.5, np.nan, np.inf, "1", None, True])
def test_strange_numbers_are_refused(value):
    with pytest.raises(RuleError, match="it must be a finite number, above 0 and at most 1; got"):
        real_number(value, "it", RuleError, above=0, at_most=1)
