"""(r, s)-robustness against its definition over all pairs of sets, and against what is known of some families."""

from itertools import product

import numpy as np
import pytest

import collegium
from collegium import policy, topology, trust
from collegium.errors import GraphError
from collegium.protocol import Robust
from collegium.protocol.combine import MeanSubsequence
from collegium.topology.robustness import largest_r, largest_s, senders_of
from collegium.trust import Liars, attacks


def by_definition(graph, r, s):
    """Whether it is (r, s)-robust, by looking at every pair of disjoint sets."""
    heard = [set(graph.neighbours(k).tolist()) - {k} for k in range(graph.size)]
    for sides in product((0, 1, 2), repeat=graph.size):
        one = {k for k, side in enumerate(sides) if side == 1}
        two = {k for k, side in enumerate(sides) if side == 2}
        if not one or not two:
            continue
        reached = [sum(len(heard[k] - part) >= r for k in part) for part in (one, two)]
        if reached[0] < len(one) and reached[1] < len(two) and sum(reached) < s:
            return False
    return True


GRAPHS = [
    topology.ring(5),
    topology.complete(6),
    topology.star(5),
    topology.path(4),
    topology.grid(2, 3),
    topology.erdos_renyi(6, links=17, seed=2),
    topology.erdos_renyi(6, links=22, seed=5),
]


@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_exact_values_are_those_of_the_definition(graph):
    senders = senders_of([graph.neighbours(k) for k in range(graph.size)])
    r = largest_r(senders)
    assert by_definition(graph, r, 1)
    assert not by_definition(graph, r + 1, 1)
    for one in range(1, r + 1):
        s = largest_s(senders, one)
        assert by_definition(graph, one, s)
        assert s == graph.size or not by_definition(graph, one, s + 1)
    assert largest_s(senders, r + 1) == 0


def test_known_families():
    for K in (3, 5, 8, 12):
        found = trust.robustness(topology.complete(K))
        assert found.r == ((K + 1) // 2,) * 2  # the most there is
        assert trust.robustness(topology.ring(K)).liars == ((0, 0) if K > 3 else (1, 1))
    assert trust.robustness(topology.star(9)).liars == (0, 0)


@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_the_exact_value(seed, monkeypatch):
    graphs = [
        topology.small_world(12, neighbours=6, rewire=0.3, seed=seed),
        topology.erdos_renyi(11, links=60, seed=seed),
    ]
    for graph in (*graphs, topology.complete(9), topology.grid(3, 4)):
        exact = trust.robustness(graph)
        monkeypatch.setattr("collegium.trust._robustness.EXACT", 0)
        bounds = trust.robustness(graph)
        monkeypatch.undo()
        assert not bounds.exact
        assert bounds.r[0] <= exact.r[0] <= bounds.r[1]
        assert bounds.liars[0] <= exact.liars[0] <= bounds.liars[1]
        assert bounds.local_liars[0] <= exact.local_liars[0] <= bounds.local_liars[1]


def test_a_large_network_has_bounds():
    found = trust.robustness(topology.complete(40))
    assert found.r == (20, 20)
    assert trust.robustness(topology.ring(2000)).r == (1, 1)


def test_helpful_links_help():
    ring = topology.ring(8)
    links = trust.helpful_links(ring, 8)
    more = ring
    for link in links:
        more = topology.Graph.from_links(
            8, np.append(more.indices, link), np.append(more.hearers, link[::-1]), undirected=True
        )
    assert trust.robustness(ring).liars == (0, 0)
    assert trust.robustness(more).liars[0] >= 1
    assert trust.helpful_links(topology.complete(5)) == []
    assert len(trust.helpful_links(topology.ring(30), 2)) == 2


@pytest.mark.parametrize("attack", [attacks.Stubborn(5.0), attacks.TwoFaced(5.0), attacks.LittleIsEnough(2.0)], ids=str)
def test_honest_agents_agree_where_the_network_is_robust_enough(attack):
    graph = topology.complete(6)
    assert trust.robustness(graph).liars[0] >= 1
    scores = np.random.default_rng(0).normal(size=(30, 6))
    run = collegium.collaborate(scores, policy.uniform(graph), 80, Robust(MeanSubsequence(1)), liars=Liars([2], attack))
    last = run.statistics[-1][:, run.honest]
    assert np.ptp(last, axis=1).max() < 1e-6
    honest = scores[:, run.honest]
    assert (last >= honest.min(axis=1, keepdims=True) - 1e-12).all()
    assert (last <= honest.max(axis=1, keepdims=True) + 1e-12).all()


def test_what_is_not_connected_bears_no_liars():
    apart = topology.Graph.from_links(4, [0, 2], [1, 3], undirected=True)
    for graph in (apart, topology.complete(1)):
        found = trust.robustness(graph)
        assert (found.r, found.liars, found.local_liars) == ((0, 0), (0, 0), (0, 0))
    with pytest.raises(GraphError, match="robustness is that of a Graph"):
        trust.robustness("ring:12")


@pytest.mark.parametrize(("K", "apart"), [(6, 2.0), (7, 0.0)])
def test_two_faced_liars_keep_honest_agents_apart_unless_these_alone_are_robust_enough(K, apart):
    """Both are (3, 3)-robust; without two agents the first is not 3-robust."""
    assert trust.robustness(topology.complete(K)).liars[0] >= 2
    assert (trust.robustness(topology.complete(K - 2)).r[0] >= 3) == (apart == 0)
    honest = np.array([-1.0, -1.0, 1.0, 1.0, 1.0][: K - 2])
    over, rule = policy.uniform(topology.complete(K)), Robust(MeanSubsequence(2))
    scores = np.concatenate([[0.0, 0.0], honest])[None]
    for attack, left in ((attacks.Split((0, 0, *honest.astype(int).tolist()), 1.0), apart), (attacks.Stubborn(1.0), 0)):
        run = collegium.collaborate(scores, over, 200, rule, liars=Liars([0, 1], attack))
        assert np.ptp(run.statistics[-1, 0, 2:]) == pytest.approx(left, abs=1e-9)
