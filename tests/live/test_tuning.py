"""Live agents tune themselves, and are left with the gains of the simulation."""

import threading

import numpy as np
import pytest

from collegium import policy, topology, tuning
from collegium.errors import LiveError
from collegium.live.tuning import tune
from collegium.tuning.gains import learner_of
from helpers import labelled
from live_networks import in_memory

RING = policy.metropolis(topology.ring(4))


def all_at_once(agents, x, learner, **settings):
    found = [None] * len(agents)

    def one(k):
        try:
            found[k] = tune(agents[k], x[:, k], learner, "first", **settings)
        except LiveError as problem:
            found[k] = problem

    threads = [threading.Thread(target=one, args=(k,)) for k in range(len(agents))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_live_gains_are_those_of_the_simulation():
    x, y = labelled()
    with in_memory(RING, rounds=12) as agents:
        live = all_at_once(agents, x, learner_of(y, len(y), 2, 4))
    simulated = tuning.tune(x, y, RING, 12)
    assert simulated.kept == "tuned"
    assert all(one.agreed for one in live)
    assert np.array_equal([one.gain for one in live], simulated.gains)
    assert np.array_equal([one.shift for one in live], simulated.shifts)


def test_an_agent_that_leaves_tunes_nobody():
    x, y = labelled()
    with in_memory(RING, rounds=12) as agents:
        agents[3].stop()
        found = all_at_once(agents, x, learner_of(y, len(y), 2, 4), timeout=5.0)
    assert all(isinstance(one, LiveError) for one in found)


def test_a_network_that_does_not_answer_is_named():
    x, y = labelled()
    with in_memory(RING, rounds=12) as agents, pytest.raises(LiveError, match="an agent is not there or has no view"):
        tune(agents[0], x[:, 0], learner_of(y, len(y), 2, 4), "alone", timeout=0.5)
