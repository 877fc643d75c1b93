"""Rounds to 1 % of the disagreement, against powers of A and known numbers."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from collegium import collaborate, policy, schedule, topology
from collegium.cli.app import app
from collegium.errors import PolicyError
from collegium.planner.reach import rounds_to


def test_a_ring():
    ring = policy.uniform(topology.ring(12))
    found = {one.method: one for one in rounds_to(ring)}
    left = [np.abs(np.linalg.matrix_power(ring.A, t) - 1 / 12).sum(axis=0).max() for t in range(80)]
    degroot = next(t for t in range(80) if left[t] <= 0.01 * left[0])
    assert (found["degroot"].rounds, found["degroot"].transmissions) == (degroot, 24 * degroot)
    assert found["eigenvalue-steps"][1:3] == (6, 144)
    assert found["flood"][1:4] == (6, 144, 13)
    assert found["exact (links between any two)"][1:3] == (4, 48)
    assert found["chebyshev"].rounds < degroot / 3
    assert found["one-peer (links between any two)"][1:3] == (12, 144)
    gossip, run = found["pairwise (a pair a round)"], collaborate(np.eye(12), schedule.pairwise(ring.graph), 450)
    left = np.abs(run.statistics - 1 / 12).sum(axis=1).max(axis=1)
    assert gossip[1:3] == (int((left > 0.01 * left[0]).sum()), 2 * gossip.rounds)


def test_a_directed_network_has_no_chebyshev():
    names = [one.method for one in rounds_to(policy.uniform(topology.erdos_renyi(8, links=20, seed=1)))]
    assert "chebyshev" not in names
    assert {"degroot", "push-sum, running-sums", "flood"} <= set(names)
    with pytest.raises(PolicyError, match="for at most 100 agents"):
        rounds_to(policy.uniform(topology.ring(101)))


def test_the_command_shows_it():
    facts = json.loads(CliRunner().invoke(app, ["network", "ring:12", "--json"]).stdout)
    assert {"exact (links between any two)", "flood"} <= {one["method"] for one in facts["rounds_to_1_percent"]}
    assert "until 1 % of the disagreement is left" in CliRunner().invoke(app, ["network", "ring:12"]).stdout
    assert json.loads(CliRunner().invoke(app, ["network", "ring:101", "--json"]).stdout)["rounds_to_1_percent"] is None
