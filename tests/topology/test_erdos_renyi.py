"""Random directed networks: exactly as many links as asked for, strongly connected, uniform, the same everywhere."""

import importlib
import itertools
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from collegium.errors import CollegiumError, GraphError
from collegium.topology import complete, erdos_renyi

SIGNIFICANCE = 1e-4  # of each chi-square test; the seeds are fixed, so a test that passes goes on passing


def links_of(g):
    return frozenset((int(l), int(k)) for l, k in zip(g.indices, g.hearers, strict=True) if l != k)


EVERY_SMALL = [(K, links) for K in range(1, 6) for links in range(K if K > 1 else 0, K * (K - 1) + 1)]
LARGER = [(12, 12), (12, 13), (12, 24), (12, 60), (12, 131), (12, 132), (60, 60), (60, 61), (60, 200), (60, 400)]


@pytest.mark.parametrize(("K", "links"), EVERY_SMALL + LARGER)
def test_has_exactly_the_links_and_is_strongly_connected(K, links):
    for seed in (0, 1):
        g = erdos_renyi(K, links, seed=seed)
        assert g.size == K
        assert g.links == len(links_of(g)) == links
        assert nx.is_strongly_connected(g.to_networkx())
        assert g.adjacency.diagonal().all()


@pytest.mark.parametrize(("K", "p"), [(1, 0.0), (2, 1.0), (5, 0.4), (30, 0.3), (60, 0.1)])
def test_with_a_chance_is_strongly_connected(K, p):
    for seed in range(5):
        assert nx.is_strongly_connected(erdos_renyi(K, p=p, seed=seed).to_networkx())


def test_all_links_make_the_complete_network():
    assert erdos_renyi(7, links=42) == erdos_renyi(7, p=1.0) == complete(7)


def test_golden_by_drawing_until_connected():
    assert links_of(erdos_renyi(12, links=24, seed=7)) == {
        *[(0, 5), (0, 11), (1, 8), (1, 10), (1, 11), (2, 1), (2, 5), (2, 6), (2, 8), (3, 1), (3, 6), (4, 11)],
        *[(5, 8), (6, 1), (6, 2), (7, 3), (7, 10), (8, 9), (9, 4), (9, 7), (9, 10), (10, 5), (11, 0), (11, 5)],
    }


def test_golden_by_laying_a_cycle_first():
    assert links_of(erdos_renyi(12, links=13, seed=3)) == {
        *[(0, 3), (1, 5), (2, 9), (3, 4), (4, 7), (5, 2), (6, 10), (7, 6), (8, 1), (9, 0), (10, 1), (10, 11), (11, 8)],
    }


def test_golden_with_a_chance():
    assert links_of(erdos_renyi(5, p=0.5, seed=1)) == {
        *[(0, 1), (0, 3), (1, 0), (1, 4), (2, 0), (2, 1), (2, 4), (3, 0), (3, 1), (4, 2), (4, 3)],
    }


@pytest.mark.parametrize("options", [{"links": 24}, {"links": 12}, {"p": 0.4}])
def test_different_seeds_differ_and_the_same_agrees(options):
    graphs = [erdos_renyi(12, **options, seed=seed) for seed in range(20)]
    assert len(set(graphs)) == 20
    assert graphs[3] == erdos_renyi(12, **options, seed=np.int64(3))


def test_a_generator_moves_on_between_networks():
    rng = np.random.default_rng(5)
    first, second = erdos_renyi(12, links=24, seed=rng), erdos_renyi(12, links=24, seed=rng)
    assert first != second
    assert first == erdos_renyi(12, links=24, seed=np.random.default_rng(5))


@pytest.mark.parametrize("links", [3, 4, 5])
def test_uniform_over_all_strongly_connected_networks(links):
    pairs = list(itertools.permutations(range(3), 2))
    strong = [frozenset(some) for some in itertools.combinations(pairs, links) if nx.is_strongly_connected(_peer(some))]
    found = Counter(links_of(erdos_renyi(3, links=links, seed=seed)) for seed in range(150 * len(strong)))
    assert set(found) == set(strong)
    assert stats.chisquare([found[some] for some in strong]).pvalue > SIGNIFICANCE


def _peer(links):
    graph = nx.DiGraph(links)
    graph.add_nodes_from(range(3))
    return graph


def test_the_cycle_laid_first_and_its_chord_are_uniform():
    K, heard_next, chords = 12, Counter(), Counter()
    for seed in range(1000):
        peer = erdos_renyi(K, links=K + 1, seed=seed).to_networkx()
        # One chord: the only link whose speaker has another hearer and whose hearer has another speaker.
        (chord,) = [(l, k) for l, k in peer.edges if peer.out_degree(l) == 2 and peer.in_degree(k) == 2]
        peer.remove_edge(*chord)
        cycle = [l for l, _ in nx.find_cycle(peer, 0)]
        assert len(cycle) == K
        heard_next[cycle[1]] += 1
        chords[(cycle.index(chord[1]) - cycle.index(chord[0])) % K] += 1
    assert stats.chisquare([heard_next[k] for k in range(1, K)]).pvalue > SIGNIFICANCE
    assert set(chords) == set(range(2, K))  # one step on would repeat the cycle
    assert stats.chisquare([chords[step] for step in range(2, K)]).pvalue > SIGNIFICANCE


def test_a_chance_is_the_share_of_links():
    # With 40 agents and p = 0.5 a draw fails to connect with chance 2·40·2**-39: there is no selection to speak of.
    runs = 20
    links = sum(erdos_renyi(40, p=0.5, seed=seed).links for seed in range(runs))
    low, high = stats.binom.interval(0.999, runs * 40 * 39, 0.5)
    assert low <= links <= high


@pytest.mark.parametrize(
    ("K", "options", "message"),
    [
        (12, {"links": 11}, "links=11 cannot strongly connect 12 agents: .* at least 12 are needed"),
        (2, {"links": 0}, "links=0 cannot strongly connect 2 agents"),
        (12, {"links": 133}, "12 agents have at most 132 directed links, got links=133"),
        (1, {"links": 1}, "at most 0 directed links, got links=1"),
        (12, {"links": -1}, "links must be a whole number, at least 0; got -1"),
        (12, {"links": 24.0}, r"links must be a whole number, at least 0; got 24\.0"),
        (12, {}, "either links=… .* or p=…"),
        (12, {"links": 24, "p": 0.3}, "either links=… .* or p=…"),
        (12, {"p": -0.1}, r"at least 0 and at most 1; got -0\.1"),
        (12, {"p": 1.1}, r"at least 0 and at most 1; got 1\.1"),
        (12, {"p": float("nan")}, "at least 0 and at most 1; got nan"),
        (20_001, {"p": 0.5}, "looks at all 400020000 pairs; for so many agents give links=200010000"),
        (0, {"links": 0}, "at least 1; got 0"),
        (12.0, {"links": 24}, r"at least 1; got 12\.0"),
    ],
)
def test_impossible_requests_are_refused_with_the_reason(K, options, message):
    with pytest.raises(GraphError, match=message):
        erdos_renyi(K, **options)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "seven", True])
def test_seeds_that_are_none_are_refused(seed):
    with pytest.raises(CollegiumError, match=r"a seed lies between 0|a seed must be"):
        erdos_renyi(12, links=24, seed=seed)


def test_a_hopeless_chance_is_refused_with_advice(monkeypatch):
    module = importlib.import_module("collegium.topology.erdos_renyi")
    monkeypatch.setattr(module, "_DRAWS", 20)  # the real number of draws takes seconds
    with pytest.raises(GraphError, match=r"10 agents came up with p=0\.01: take p above 0\.35 or give links=…"):
        erdos_renyi(10, p=0.01)
