"""`Graph` against networkx and against sets built by naive loops."""

import itertools
import math
import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from collegium.errors import GraphError
from collegium.topology import Graph, from_networkx, grid, ring, star, to_networkx

directed_triangle = Graph.from_links(3, sources=[0, 1, 2], targets=[1, 2, 0])


@st.composite
def digraphs(draw, most=7):
    """A number of agents and any list of links between them, repeated ones and self-loops included."""
    K = draw(st.integers(1, most))
    agent = st.integers(0, K - 1)
    return K, draw(st.lists(st.tuples(agent, agent), max_size=3 * K))


def build(K, links, **options):
    return Graph.from_links(K, [l for l, _ in links], [k for _, k in links], **options)


def as_networkx(K, links):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(K))
    graph.add_edges_from(links)
    return graph


@given(digraphs(), st.booleans())
@settings(deadline=None)
def test_links_mean_what_the_list_says(drawn, self_loops):
    K, links = drawn
    g = build(K, links, self_loops=self_loops)
    heard = {(l, k) for l, k in links} | ({(k, k) for k in range(K)} if self_loops else set())
    assert g.size == K
    assert [g.neighbours(k).tolist() for k in range(K)] == [sorted(l for l, j in heard if j == k) for k in range(K)]
    assert {(l, k) for l in range(K) for k in range(K) if g.adjacency[l, k]} == heard
    assert g.links == sum(l != k for l, k in heard)
    assert g.neighbourhood_sizes.tolist() == [sum(j == k for _, j in heard) for k in range(K)]
    assert g.audience_sizes.tolist() == [sum(i == l and i != k for i, k in heard) for l in range(K)]
    assert list(zip(g.indices.tolist(), g.hearers.tolist(), strict=True)) == sorted(heard, key=lambda lk: lk[::-1])


@given(digraphs())
@settings(deadline=None)
def test_undirected_adds_every_reverse(drawn):
    K, links = drawn
    one_way, both_ways = build(K, links), build(K, links, undirected=True)
    assert np.array_equal(both_ways.adjacency, one_way.adjacency | one_way.adjacency.T)
    assert both_ways.is_undirected
    assert one_way.is_undirected == np.array_equal(one_way.adjacency, one_way.adjacency.T)


def test_a_link_goes_from_speaker_to_hearer():
    g = Graph.from_links(3, sources=[0], targets=[2])
    assert g.neighbours(2).tolist() == [0, 2]
    assert g.neighbours(0).tolist() == [0]
    assert g.adjacency[0, 2]
    assert not g.adjacency[2, 0]
    assert g.audience_sizes.tolist() == [1, 0, 0]
    assert not g.is_undirected


@pytest.mark.parametrize("K", [1024, 1025])
def test_adjacency_is_sparse_above_1024_agents(K):
    here = np.arange(K)
    g = Graph.from_links(K, here, (here + 1) % K)
    assert sparse.issparse(g.adjacency) == (K > 1024)
    assert g.adjacency.dtype == np.bool_
    dense = g.adjacency.toarray() if K > 1024 else g.adjacency
    assert np.array_equal(dense, np.eye(K, dtype=bool) | np.roll(np.eye(K, dtype=bool), 1, axis=1))


def test_columns_puts_each_value_on_its_link():
    g = build(3, [(0, 1), (2, 1)])
    matrix = g.columns(np.arange(1.0, 6.0)).toarray()  # 0 hears 0; 1 hears 0, 1, 2; 2 hears 2
    assert matrix.tolist() == [[1, 2, 0], [0, 3, 0], [0, 4, 5]]


@given(digraphs())
@settings(deadline=None, max_examples=300)
def test_strong_connection_as_networkx_sees_it(drawn):
    g, peer = build(*drawn), as_networkx(*drawn)
    assert g.is_strongly_connected == nx.is_strongly_connected(peer)
    pair = g.unreachable_pair()
    assert (pair is None) == g.is_strongly_connected
    if pair is not None:
        assert not nx.has_path(peer, *pair)


@pytest.mark.parametrize(("links", "pair"), [([(0, 1), (1, 2)], (1, 0)), ([(2, 1), (1, 0)], (0, 1)), ([], (0, 1))])
def test_unreachable_pair_of_one_way_rows(links, pair):
    assert build(3, links).unreachable_pair() == pair


def cycle_gcd(K, links):
    return math.gcd(*(len(cycle) for cycle in nx.simple_cycles(as_networkx(K, links))))


@pytest.mark.parametrize(
    ("K", "links", "period"),
    [
        (2, [(0, 1), (1, 0)], 2),
        (5, [(k, (k + 1) % 5) for k in range(5)], 5),
        (9, [(k, (k + 1) % 4) for k in range(4)] + list(zip([0, 4, 5, 6, 7, 8], [4, 5, 6, 7, 8, 0], strict=True)), 2),
        (6, [(k, (k + 1) % 3) for k in range(3)] + [(0, 3), (3, 4), (4, 5), (5, 0)], 1),
        (5, [(i, j) for i in (0, 1) for j in (2, 3, 4)] + [(j, i) for i in (0, 1) for j in (2, 3, 4)], 2),
    ],
    ids=["pair", "5-cycle", "4- and 6-cycle", "3- and 4-cycle", "bipartite"],
)
def test_period_of_known_graphs(K, links, period):
    assert cycle_gcd(K, links) == period
    assert build(K, links, self_loops=False).period == period


@st.composite
def strongly_connected_links(draw):
    """A cycle and then ears, new ways from somebody to somebody: every strongly connected graph grows like this."""
    K = draw(st.integers(2, 6))
    links = {(k, (k + 1) % K) for k in range(K)}
    for _ in range(draw(st.integers(0, 3))):
        start, end, new = draw(st.integers(0, K - 1)), draw(st.integers(0, K - 1)), draw(st.integers(0, 3))
        way = [start, *range(K, K + new), end]
        links |= {(l, k) for l, k in itertools.pairwise(way) if l != k}
        K += new
    return K, sorted(links)


@given(strongly_connected_links())
@settings(deadline=None, max_examples=200)
def test_period_is_the_gcd_of_all_cycles(drawn):
    g = build(*drawn, self_loops=False)
    assert g.is_strongly_connected
    assert g.period == cycle_gcd(*drawn)
    assert (g.period == 1) == nx.is_aperiodic(as_networkx(*drawn))


def test_a_single_self_loop_ends_periodicity():
    links = [(k, (k + 1) % 4) for k in range(4)]
    assert build(4, links, self_loops=False).period == 4
    assert build(4, [*links, (2, 2)], self_loops=False).period == 1
    assert build(4, links).period == 1


@pytest.mark.parametrize("name", ["indptr", "indices", "hearers", "neighbourhood_sizes", "audience_sizes", "positions"])
def test_arrays_are_read_only(name):
    array = getattr(grid(2, 3), name)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_neighbours_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        ring(4).neighbours(0)[0] = 1


def test_equal_graphs_are_equal_however_they_were_built():
    g = build(3, [(2, 0), (0, 1), (1, 2), (0, 1), (1, 1)])
    assert g == directed_triangle
    assert hash(g) == hash(directed_triangle)
    assert len({g, directed_triangle, ring(3)}) == 2


@pytest.mark.parametrize(
    "other",
    [
        build(3, [(1, 0), (2, 1), (0, 2)]),
        build(3, [(0, 1), (1, 2)]),
        build(4, [(0, 1), (1, 2), (2, 0)]),
        build(3, [(0, 1), (1, 2), (2, 0)], self_loops=False),
        "a graph",
        None,
    ],
    ids=["reversed", "a link less", "an agent more", "no self-loops", "string", "None"],
)
def test_different_graphs_differ(other):
    assert directed_triangle != other


@pytest.mark.parametrize("g", [directed_triangle, star(5), ring(1)])
def test_pickle_keeps_graph_and_picture(g):
    repr(g)  # so that cached answers travel too
    copy = pickle.loads(pickle.dumps(g))
    assert copy == g
    assert hash(copy) == hash(g)
    assert copy.links == g.links
    assert np.array_equal(copy.positions, g.positions) if g.positions is not None else copy.positions is None


@given(digraphs())
@settings(deadline=None)
def test_networkx_round_trip(drawn):
    g = build(*drawn)
    peer = to_networkx(g)
    assert list(peer.nodes) == list(range(g.size))
    assert set(peer.edges) == {(l, k) for l, k in drawn[1] if l != k}
    assert from_networkx(peer) == g
    assert nx.utils.graphs_equal(g.to_networkx(), peer)


def test_from_networkx_takes_nodes_in_their_order_and_edges_in_their_direction():
    peer = nx.DiGraph()
    peer.add_nodes_from(["zoe", "ann", "bob"])
    peer.add_edge("zoe", "bob", weight=0.3)
    g = from_networkx(peer)
    assert g.neighbours(2).tolist() == [0, 2]
    assert g.neighbours(0).tolist() == [0]


def test_from_networkx_undirected_and_multigraph():
    assert from_networkx(nx.path_graph(3)) == build(3, [(0, 1), (1, 0), (1, 2), (2, 1)])
    assert from_networkx(nx.MultiDiGraph([(0, 1), (0, 1), (1, 0)])) == build(2, [(0, 1), (1, 0)])


def test_from_networkx_without_self_loops_keeps_those_drawn():
    g = from_networkx(nx.DiGraph([(0, 1), (1, 0), (1, 1)]), self_loops=False)
    assert g.adjacency.tolist() == [[False, True], [True, True]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Graph([0], []), "at least one agent"),
        (lambda: Graph.from_links(0, [], []), "at least 1; got 0"),
        (lambda: Graph.from_links(2.0, [], []), r"whole number, at least 1; got 2\.0"),
        (lambda: Graph.from_links(3, [0, 1], [1]), "same length, got 2 and 1"),
        (lambda: Graph.from_links(3, [0, 3], [1, 2]), "agents 0 to 2, got agent 3"),
        (lambda: Graph.from_links(3, [0], [-7]), "agents 0 to 2, got agent -7"),
        (lambda: ring(4).neighbours(4), "no agent 4: agents are 0 to 3"),
        (lambda: ring(4).neighbours(-1), "no agent -1"),
        (lambda: from_networkx([[0, 1], [1, 0]]), "wants a networkx graph, got list"),
        (lambda: from_networkx(nx.Graph()), "at least 1; got 0"),
    ],
)
def test_refused_with_the_reason(make, message):
    with pytest.raises(GraphError, match=message):
        make()


@pytest.mark.parametrize(
    ("g", "text"),
    [
        (ring(1), "Graph(1 agent, 0 links, undirected, strongly connected)"),
        (directed_triangle, "Graph(3 agents, 3 links, directed, strongly connected)"),
        (build(2, [(0, 1)]), "Graph(2 agents, 1 links, directed, not strongly connected)"),
    ],
)
def test_repr(g, text):
    assert repr(g) == text


def test_frozen_again_after_pickling_and_apart_from_the_callers_arrays():
    indptr, indices, places = np.array([0, 1, 2]), np.array([0, 1]), np.zeros((2, 2))
    g = Graph(indptr, indices, places)
    indices[0] = places[0, 0] = 1
    assert g.indices.tolist() == [0, 1]
    assert g.positions.tolist() == [[0, 0], [0, 0]]
    again = pickle.loads(pickle.dumps(g))
    for array in (again.indptr, again.indices, again.positions):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize(
    ("sources", "targets", "complaint"),
    [
        ([-1], [2], "got agent -1"),
        ([0], [3], "got agent 3"),
        ([0.5], [2], "whole numbers"),
        ([np.nan], [2], "whole numbers"),
    ],
)
def test_links_of_strangers_are_refused(sources, targets, complaint):
    with pytest.raises(GraphError, match=complaint):
        Graph.from_links(3, sources, targets)


def test_positions_must_fit():
    with pytest.raises(GraphError, match=r"positions must have shape \(3, 2\)"):
        Graph.from_links(3, [0], [1], positions=np.zeros((2, 2)))


def test_only_strongly_connected_graphs_have_a_period():
    with pytest.raises(GraphError, match="period"):
        Graph.from_links(3, [1, 1, 2], [0, 2, 1], self_loops=False).period  # noqa: B018


@pytest.mark.parametrize(
    ("indptr", "indices"),
    [([0, 2], [5, 7]), ([0, 1, 3], [1, 1]), ([0, 1, 3], [1, 1, 0]), ([1, 2], [0, 0]), ([0, 2, 1], [0])],
)
def test_index_arrays_that_make_no_graph_are_refused(indptr, indices):
    with pytest.raises(GraphError):
        Graph(indptr, indices)


def test_a_graph_cannot_be_changed():
    g = ring(4)
    with pytest.raises(AttributeError, match="frozen"):
        g.positions = None
