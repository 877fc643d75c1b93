"""`check_policy` must find what it is for: each broken policy fails with a sentence that names the fault."""

import numpy as np
import pytest

from collegium import check_policy
from collegium.errors import CheckError
from helpers import POLICIES


@pytest.mark.parametrize("name", POLICIES)
def test_sound_policies_pass(name):
    assert check_policy(POLICIES[name]) == [
        "columns sum to one",
        "perron is fixed",
        "rounds converge to the perron average",
        "equals itself after pickling",
        "saved and loaded",
    ]


def test_each_fault_is_named():
    with pytest.raises(CheckError, match=r"wrap your matrix as Policy\(A\)"):
        check_policy(np.eye(2))

    broken = POLICIES["ring"].__class__(POLICIES["ring"].A)
    broken.__dict__["perron"] = np.full(12, 1 / 12) * np.linspace(0.9, 1.1, 12)
    with pytest.raises(CheckError, match="does not keep its Perron vector fixed"):
        check_policy(broken)


def test_rounds_that_do_not_converge_are_seen():
    slow = POLICIES["ring"].__class__(POLICIES["ring"].A)
    slow.__dict__["slem"] = 0.01  # a policy that mixes far more slowly than it says
    with pytest.raises(CheckError, match="do not lead to the Perron-weighted average"):
        check_policy(slow)
