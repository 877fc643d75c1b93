"""The live network of a check: it equals the simulator, and whatever goes wrong in it is told in time."""

import pytest

from collegium import policy, topology
from collegium.checks import live
from collegium.errors import CheckError
from collegium.protocol import DeGroot
from helpers import POLICIES, RULES

RING = policy.uniform(topology.ring(4))


@pytest.mark.parametrize("name", POLICIES)
def test_every_network(name):
    for rule in (RULES[0], RULES[-1]):
        live.equals_simulator(rule, POLICIES[name])


def test_a_number_off_by_one_bit_is_seen(monkeypatch):
    original = live.run_job

    def off(job, rule):
        recorded = original(job, rule)
        recorded.statistics[3, 2, 1] *= 1 + 2**-52
        return recorded

    monkeypatch.setattr(live, "run_job", off)
    with pytest.raises(CheckError, match=r"simulator and live network differ on .*: round 3, item 2, agent 1 has"):
        live.equals_simulator(DeGroot(), RING)


def test_frames_that_are_lost_do_not_hang_it(monkeypatch):
    monkeypatch.setattr(live, "_SECONDS", 0.5)
    monkeypatch.setattr(live._Watched, "take", lambda self, sender, frame: None)
    with pytest.raises(CheckError, match=r"items were not decided within 0\.5 s"):
        live.equals_simulator(DeGroot(), RING)


def test_agents_that_never_meet_do_not_hang_it(monkeypatch):
    monkeypatch.setattr(live, "_SECONDS", 0.5)
    monkeypatch.setattr(live.Hub, "join", lambda self, member: None)
    with pytest.raises(CheckError, match="agents did not meet"):
        live.equals_simulator(DeGroot(), RING)


def test_nothing_is_left_running():
    import threading

    before = threading.active_count()
    live.equals_simulator(DeGroot(), RING)
    assert threading.active_count() == before
