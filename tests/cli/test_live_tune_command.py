"""`collegium live tune` with real processes: the simulation's gains, in the agents' own files."""

import json
import os
import signal

import numpy as np
import pytest

from collegium import policy, topology, tuning
from collegium.errors import LiveError
from collegium.live import launcher
from collegium.live.tune_network import tune_network
from helpers import labelled
from live_processes import ask_all, running, status, wait_for

RING = policy.metropolis(topology.ring(4))
AGENTS = [f"agent-{k}" for k in range(4)]


@pytest.mark.live
@pytest.mark.timeout(240)
def test_a_network_of_processes_tunes_itself_and_keeps_its_gains(cli, tmp_path):
    x, y = labelled()
    net, labels = tmp_path / "net", tmp_path / "labels.csv"
    rows = [f"{i},{label}" for i, label in enumerate(y.tolist())]
    labels.write_text("\n".join(["item,label", *rows]))
    with running(net, RING, rounds=12) as network:

        def refused(*lines, more=()):
            labels_ = tmp_path / "bad.csv"
            labels_.write_text("\n".join(["item,label", *lines]))
            said = cli("live", "tune", net, "--labels", labels_, *more, code=2).err
            assert said.count("\n") == 1
            return said

        assert "agent-0: " in (said := refused(*rows))
        assert "has not decided, or has forgotten, the item 0" in said
        ask_all(network, x)
        assert "the item 'nobody'" in refused(*rows, "nobody,1")
        assert "at least two classes; all 30 are of one" in refused(*rows[::2])
        assert "at least 10 labelled items" in refused(*rows[:8])
        assert "the label 7 is none of the classes of this network: -1, 1" in refused(*rows, "60,7").replace("7.0", "7")
        assert not list(net.glob("*.gain.json*"))

        shown = cli("live", "tune", net, "--labels", labels).out
        assert "tuned gains are used" in shown
        assert all(name in shown for name in AGENTS)
        simulated = tuning.tune(x, y, RING, 12)
        kept = [json.loads((net / f"{name}.gain.json").read_text()) for name in AGENTS]
        assert simulated.kept == "tuned"
        assert np.array_equal([one["gain"] for one in kept], simulated.gains)
        assert np.array_equal([one["shift"] for one in kept], simulated.shifts)
        assert not list(net.glob("*.pending"))

        new, _ = labelled(seed=1)
        answers = ask_all(network, new, names=range(100, 160))
        entered = np.array([[one.score for one in column] for column in answers]).T
        assert np.array_equal(entered, simulated(new))

        launcher.down(net)
        network = launcher.up(net, wait=60)
        assert [status(member).gain for member in network] == simulated.gains.tolist()
        # Without a journal an agent forgets its items when it ends; items given since teach, from its gain on.
        with pytest.raises(LiveError, match="agent-0 has not decided, or has forgotten, the item 0"):
            tune_network(network, range(60), y.tolist())
        ask_all(network, new, names=range(200, 260))
        again = tune_network(network, range(200, 260), y.tolist())
        expected = tuning.tune(new - simulated.shifts, y, RING, 12, start=simulated.gains)
        assert again[0].learned.kept == expected.kept
        assert [one.gain for one in again] == expected.gains.tolist()
        os.kill(network[2].pid, signal.SIGKILL)
        wait_for(lambda: network[2].pid is None)
        kept = (net / "agent-2.gain.json").read_text()
        later = tmp_path / "later.csv"
        later.write_text("\n".join(["item,label", *(f"{200 + i},{label}" for i, label in enumerate(y.tolist()))]))
        assert "agent-2 was away: it keeps the gain it has" in cli("live", "tune", net, "--labels", later).out
        assert (net / "agent-2.gain.json").read_text() == kept
        os.kill(network[0].pid, signal.SIGKILL)
        wait_for(lambda: network[0].pid is None)
        assert "the others are not connected" in cli("live", "tune", net, "--labels", later, code=1).err
