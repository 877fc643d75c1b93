"""Workers end with their parents: tests/agents and tests/lab kill some; here, who is no worker."""

import threading

from collegium._util.processes import follow_parent


def test_a_program_of_its_own_follows_nobody():
    before = threading.active_count()
    follow_parent()
    assert threading.active_count() == before
