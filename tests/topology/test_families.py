"""The named families against networkx, closed forms and naive loops."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from collegium.errors import CollegiumError, GraphError
from collegium.topology import complete, geometric, grid, path, ring, small_world, star, torus

SIZES = [1, 2, 3, 4, 7, 12]
SHAPES = [(1, 1), (1, 2), (2, 1), (1, 5), (2, 2), (2, 3), (3, 2), (3, 4), (5, 5), (2, 7)]


def links_of(g):
    return {(int(l), int(k)) for l, k in zip(g.indices, g.hearers, strict=True) if l != k}


def undirected_links(g):
    return sorted((l, k) for l, k in links_of(g) if l < k)


def both_ways(peer):
    """The links of an undirected networkx graph, nodes numbered in their order, self-loops left out."""
    number = {node: i for i, node in enumerate(peer.nodes)}
    pairs = {(number[u], number[v]) for u, v in peer.edges if u != v}
    return pairs | {(v, u) for u, v in pairs}


@pytest.mark.parametrize("K", SIZES)
@pytest.mark.parametrize(
    ("family", "peer"),
    [
        (ring, nx.cycle_graph),
        (path, nx.path_graph),
        (star, lambda K: nx.star_graph(K - 1)),
        (complete, nx.complete_graph),
    ],
    ids=["ring", "path", "star", "complete"],
)
def test_one_number_families_are_those_of_networkx(family, peer, K):
    g = family(K)
    assert links_of(g) == both_ways(peer(K))
    assert g.adjacency.diagonal().all()
    assert g.is_undirected
    assert g.is_strongly_connected
    assert g.positions.shape == (K, 2)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("family", [grid, torus])
def test_lattices_are_those_of_networkx(family, shape):
    g = family(*shape)
    assert links_of(g) == both_ways(nx.grid_2d_graph(*shape, periodic=family is torus))
    assert g.adjacency.diagonal().all()
    assert g.is_undirected
    assert g.is_strongly_connected


@pytest.mark.parametrize("K", SIZES)
def test_link_counts_in_closed_form(K):
    assert ring(K).links == {1: 0, 2: 2}.get(K, 2 * K)
    assert path(K).links == star(K).links == 2 * (K - 1)
    assert complete(K).links == K * (K - 1)


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_lattice_link_counts_in_closed_form(rows, columns):
    assert grid(rows, columns).links == 2 * (rows * (columns - 1) + columns * (rows - 1))
    around = {1: 0, 2: 1}  # a wrapped line of two agents is one link, of three or more as many as agents
    expected = 2 * (rows * around.get(columns, columns) + columns * around.get(rows, rows))
    assert torus(rows, columns).links == expected


def test_neighbourhoods_count_the_agent_itself():
    assert set(ring(12).neighbourhood_sizes) == {3}
    assert path(5).neighbourhood_sizes.tolist() == [2, 3, 3, 3, 2]
    assert star(5).neighbourhood_sizes.tolist() == [5, 2, 2, 2, 2]
    assert set(complete(6).neighbourhood_sizes) == {6}
    assert grid(3, 4).neighbourhood_sizes.reshape(3, 4).tolist() == [[3, 4, 4, 3], [4, 5, 5, 4], [3, 4, 4, 3]]
    assert set(torus(3, 4).neighbourhood_sizes) == {5}
    assert set(torus(2, 4).neighbourhood_sizes) == {4}


def test_pictures_put_neighbours_side_by_side():
    for g in (path(6), grid(3, 4)):
        steps = g.positions[g.indices] - g.positions[g.hearers]
        assert set(np.abs(steps).sum(axis=1)) == {0.0, 1.0}
    for g in (ring(9), complete(9)):
        assert np.hypot(*g.positions.T) == pytest.approx(np.ones(9))
    assert star(6).positions[0].tolist() == [0, 0]


def test_numpy_numbers_are_whole_numbers():
    assert ring(np.int64(5)) == ring(5)
    assert grid(np.uint8(2), np.int32(3)) == grid(2, 3)


@pytest.mark.parametrize("family", [ring, path, star, complete, geometric])
@pytest.mark.parametrize("K", [0, -3, 2.5, 3.0, True, "3", None])
def test_sizes_that_are_none_are_refused(family, K):
    with pytest.raises(GraphError, match=rf"the number of agents of a.*{family.__name__}.*at least 1; got {K!r}"):
        family(K)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: grid(0, 3), "number of rows must be .* at least 1; got 0"),
        (lambda: grid(3, 1.5), r"number of columns must be .* got 1\.5"),
        (lambda: torus(2, -1), "number of columns must be .* got -1"),
        (lambda: complete(20_001), r"400020000 links, too many to hold: use erdos_renyi"),
        (lambda: small_world(2, 2), "small world must be .* at least 3; got 2"),
        (lambda: small_world(10, 3), "neighbours must be even.* got 3"),
        (lambda: small_world(10, 0), "neighbours must be .* between 2 and 9; got 0"),
        (lambda: small_world(4, 4), "neighbours must be .* between 2 and 3; got 4"),
        (lambda: small_world(10, 4, 1.5), r"rewire, .* at least 0 and at most 1; got 1\.5"),
        (lambda: small_world(10, 4, float("nan")), "rewire, .* at least 0 and at most 1; got nan"),
        (lambda: geometric(5, 0.0), r"radius must be a finite number, above 0; got 0\.0"),
        (lambda: geometric(5, -1), "radius must be a finite number, above 0; got -1"),
        (lambda: geometric(5, float("nan")), "radius must be a finite number, above 0; got nan"),
        (lambda: geometric(5, math.inf), "radius must be a finite number, above 0; got inf"),
        (lambda: geometric(8, 1e-3), r"8 agents within radius 0\.001 were never all connected: take a larger radius"),
    ],
)
def test_impossible_requests_are_refused(make, message):
    with pytest.raises(GraphError, match=message):
        make()


@pytest.mark.parametrize("family", [small_world, geometric])
@pytest.mark.parametrize("seed", [-1, "seven", 1.5])
def test_seeds_that_are_none_are_refused(family, seed):
    with pytest.raises(CollegiumError, match=r"seed|rng"):
        family(10, seed=seed)


# --- small worlds ---


def lattice(K, neighbours):
    here = range(K)
    return {(i, (i + sign * step) % K) for i in here for step in range(1, neighbours // 2 + 1) for sign in (1, -1)}


@pytest.mark.parametrize(("K", "neighbours"), [(3, 2), (5, 4), (8, 4), (9, 8), (20, 6)])
def test_small_world_without_rewiring_is_the_ring_lattice(K, neighbours):
    assert links_of(small_world(K, neighbours, 0.0)) == lattice(K, neighbours)


@given(st.integers(7, 30), st.sampled_from([4, 6]), st.floats(0, 1), st.integers(0, 2**64 - 1))
@settings(deadline=None, max_examples=60)
def test_small_world_keeps_its_links_and_stays_connected(K, neighbours, rewire, seed):
    g = small_world(K, neighbours, rewire, seed=seed)
    assert g.links == K * neighbours
    assert g.is_undirected
    assert nx.is_strongly_connected(g.to_networkx())
    assert g == small_world(K, neighbours, rewire, seed=seed)


@pytest.mark.parametrize("rewire", [0.1, 0.5, 0.9])
def test_small_world_moves_each_link_with_its_chance(rewire):
    K, neighbours = 400, 6
    kept = len(links_of(small_world(K, neighbours, rewire, seed=5)) & lattice(K, neighbours)) // 2
    low, high = stats.binom.interval(0.999, K * neighbours // 2, 1 - rewire)
    # a moved link lands on a vacated place of the lattice with chance < 1200 / 79800: at most 40 of 1200 (99.9 %)
    assert low <= kept <= high + stats.binom.ppf(0.999, K * neighbours // 2, 1200 / 79800)


def test_small_world_golden():
    assert undirected_links(small_world(8, 4, 0.5, seed=2)) == [
        *[(0, 2), (0, 3), (1, 2), (1, 5), (1, 6), (1, 7), (2, 4), (2, 6)],
        *[(2, 7), (3, 4), (3, 5), (3, 7), (4, 5), (4, 6), (5, 6), (6, 7)],
    ]


# --- geometric ---


@given(st.integers(1, 40), st.floats(0.4, 1.5), st.integers(0, 2**64 - 1))
@settings(deadline=None, max_examples=60)
def test_geometric_links_whoever_is_near(K, radius, seed):
    g = geometric(K, radius, seed=seed)
    at = g.positions
    assert ((at >= 0) & (at < 1)).all()
    near = {
        (l, k) for l, k in itertools.permutations(range(K), 2) if math.dist(at[l].tolist(), at[k].tolist()) <= radius
    }
    assert links_of(g) == near
    assert nx.is_strongly_connected(g.to_networkx())
    again = geometric(K, radius, seed=seed)
    assert again == g
    assert np.array_equal(again.positions, at)


@pytest.mark.parametrize("K", [1, 2, 30])
def test_geometric_default_radius(K):
    assert geometric(K, seed=4) == geometric(K, math.sqrt(2 * math.log(max(K, 2)) / K), seed=4)


def test_geometric_places_are_uniform():
    at = geometric(500, 1.5, seed=1).positions  # everybody is near: the first draw is taken, nothing is selected
    cells, _, _ = np.histogram2d(at[:, 0], at[:, 1], bins=5, range=[[0, 1], [0, 1]])
    assert stats.chisquare(cells.ravel()).pvalue > 1e-4


@pytest.mark.parametrize("family", [geometric, lambda K, seed: small_world(K, 4, 0.5, seed=seed)])
def test_different_seeds_give_different_networks(family):
    assert len({family(20, seed=seed) for seed in range(20)}) == 20


def test_geometric_golden():
    g = geometric(6, 0.5, seed=3)
    assert undirected_links(g) == [(0, 1), (0, 3), (1, 3), (2, 3), (2, 4), (2, 5), (3, 4), (4, 5)]
    assert g.positions[0].tolist() == [0.9944293285116786, 0.3939108558871066]  # whole multiples of 2**-53: exact
