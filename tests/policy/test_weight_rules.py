"""The weight rules against naive loops over the paper's formulas, and what every policy carries."""

import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from collegium.errors import PolicyError
from collegium.policy import Policy, hastings, laplacian, metropolis, uniform
from collegium.topology import (
    Graph,
    complete,
    erdos_renyi,
    from_networkx,
    geometric,
    grid,
    path,
    ring,
    small_world,
    star,
    torus,
)

EPS = np.finfo(float).eps

UNDIRECTED = {
    "lonely": ring(1),
    "pair": ring(2),
    "ring": ring(9),
    "path": path(6),
    "star": star(7),
    "grid": grid(3, 4),
    "torus": torus(2, 5),
    "complete": complete(5),
    "small world": small_world(14, 4, 0.4, seed=1),
    "geometric": geometric(15, seed=2),
}
DIRECTED = {
    "one-way ring": Graph.from_links(6, range(6), [1, 2, 3, 4, 5, 0]),
    "erdos-renyi": erdos_renyi(12, links=24, seed=7),
    "denser": erdos_renyi(12, links=70, seed=1),
    "barely": erdos_renyi(40, links=41, seed=1),
}


def graphs(*families):
    named = {name: g for family in families for name, g in family.items()}
    return pytest.mark.parametrize("g", named.values(), ids=named.keys())


def naive(g, weight):
    """a_lk = weight(l, k) for l in N_k other than k; the agent keeps the rest."""
    A = np.zeros((g.size, g.size))
    for k in range(g.size):
        for l in g.neighbours(k):
            if l != k:
                A[l, k] = weight(l, k)
        A[k, k] = 1 - A[:, k].sum()
    return A


def apart(X, Y):
    return np.abs(X - Y).max()


@graphs(UNDIRECTED, DIRECTED)
@pytest.mark.parametrize("rule", [uniform, metropolis, laplacian])
def test_every_rule_gives_a_policy_on_the_graph(rule, g):
    p = rule(g)
    A = p.A
    assert A.shape == (g.size, g.size)
    assert (A >= 0).all()
    assert np.abs(A.sum(axis=0) - 1).max() <= g.size * EPS
    assert np.array_equal(A > 0, g.adjacency)  # all three leave a positive weight on every link and self-loop
    assert p.graph == g
    assert (p.size, p.links) == (g.size, g.links)
    assert p.is_doubly_stochastic == np.allclose(A.sum(axis=1), 1, rtol=0, atol=1e-9)


@graphs(UNDIRECTED, DIRECTED)
def test_uniform_is_one_over_the_neighbourhood(g):
    sizes = np.array([len(g.neighbours(k)) for k in range(g.size)])
    assert np.array_equal(uniform(g).A, g.adjacency / sizes)


@graphs(UNDIRECTED)
def test_uniform_gives_more_say_to_larger_neighbourhoods(g):
    sizes = np.array([len(g.neighbours(k)) for k in range(g.size)])
    assert uniform(g).perron == pytest.approx(sizes / sizes.sum(), rel=1e-12)


@graphs(UNDIRECTED, DIRECTED)
def test_metropolis_is_the_formula_of_the_appendix(g):
    size = [len(g.neighbours(k)) for k in range(g.size)]  # counts the agent itself
    expected = naive(g, lambda l, k: 1 / max(size[k], size[l]))
    assert apart(metropolis(g).A, expected) <= g.size * EPS


@graphs(UNDIRECTED)
@pytest.mark.parametrize("rule", [metropolis, laplacian])
def test_doubly_stochastic_on_undirected_graphs(rule, g):
    p = rule(g)
    assert p.is_doubly_stochastic
    assert p.perron == pytest.approx(np.full(g.size, 1 / g.size), rel=1e-12)


@pytest.mark.parametrize("rule", [uniform, metropolis])
def test_not_doubly_stochastic_on_the_papers_directed_network(rule):
    p = rule(DIRECTED["erdos-renyi"])
    assert np.abs(p.A.sum(axis=1) - 1).max() > 0.1
    assert not p.is_doubly_stochastic


@pytest.mark.parametrize("K", [1, 2, 3, 12, 50])
def test_metropolis_on_a_ring_is_uniform(K):
    assert apart(metropolis(ring(K)).A, uniform(ring(K)).A) <= 2 * EPS


@graphs(UNDIRECTED)
def test_laplacian_is_identity_minus_eps_times_the_laplacian(g):
    L = nx.laplacian_matrix(nx.Graph(g.to_networkx()), nodelist=range(g.size)).toarray()
    most = max(len(g.neighbours(k)) for k in range(g.size))
    for weight in (None, 0.5 / most, 0.01):
        eps = 1 / most if weight is None else weight
        assert apart(laplacian(g, weight).A, np.eye(g.size) - eps * L) <= g.size * EPS


@graphs(DIRECTED)
def test_laplacian_on_directed_graphs_counts_whom_an_agent_hears(g):
    expected = naive(g, lambda l, k: 0.02)
    assert apart(laplacian(g, 0.02).A, expected) <= g.size * EPS


def test_laplacian_may_leave_agents_nothing_for_themselves():
    p = laplacian(path(3), 0.5)  # the middle one keeps nothing: its self-loop is gone, the ends still have theirs
    assert p.A.tolist() == [[0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]]
    assert p.graph.neighbours(1).tolist() == [0, 2]


@pytest.mark.parametrize("weight", [0.0, -0.1, 0.51, float("nan"), float("inf")])
def test_laplacian_refuses_weights_that_do_not_fit(weight):
    with pytest.raises(PolicyError, match=rf"hears 2 others.* above 0 and at most 0\.5; got {weight}"):
        laplacian(ring(5), weight)


@st.composite
def connected_graphs_with_wishes(draw):
    """A random tree with random extra links, and a positive weight per agent over six decades."""
    K = draw(st.integers(1, 12))
    parents = [draw(st.integers(0, k - 1)) for k in range(1, K)]
    extra = draw(st.lists(st.tuples(st.integers(0, K - 1), st.integers(0, K - 1)), max_size=K))
    sources, targets = [*range(1, K), *(l for l, _ in extra)], [*parents, *(k for _, k in extra)]
    wish = draw(st.lists(st.floats(1e-3, 1e3), min_size=K, max_size=K))
    return Graph.from_links(K, sources, targets, undirected=True), np.array(wish)


@given(connected_graphs_with_wishes())
@settings(deadline=None)
def test_hastings_grants_the_wish(drawn):
    g, wish = drawn
    p = hastings(g, wish)
    flow = p.A * (wish / wish.sum())  # a_lk π_k
    assert flow == pytest.approx(flow.T, abs=4 * EPS)  # a product of rounded numbers below one
    assert (flow @ np.ones(g.size)) == pytest.approx(wish / wish.sum(), abs=4 * g.size * EPS)
    # Solving for π amplifies rounding by the condition of the system.
    condition = np.linalg.cond(np.eye(g.size) - p.A + 1)
    assert apart(p.perron, wish / wish.sum()) <= 4 * g.size * EPS * condition


@graphs(UNDIRECTED)
def test_hastings_is_its_formula(g):
    wish = 1.0 + np.arange(g.size) ** 2
    size = [len(g.neighbours(k)) for k in range(g.size)]
    expected = naive(g, lambda l, k: min(1 / size[k], wish[l] / (wish[k] * size[l])))
    p = hastings(g, wish)
    assert apart(p.A, expected) <= g.size * EPS
    assert p.perron == pytest.approx(wish / wish.sum(), rel=1e-11)


@graphs(UNDIRECTED)
def test_hastings_with_equal_wishes_is_metropolis(g):
    assert apart(hastings(g, np.ones(g.size)).A, metropolis(g).A) <= g.size * EPS


@pytest.mark.parametrize(
    ("g", "wish", "message"),
    [
        (Graph.from_links(3, [0, 1, 2], [1, 2, 0]), [1, 1, 1], "undirected graph: agent 0 hears agent 2, but not"),
        (ring(4), [1, 1, 1], r"one weight per agent: expected 4, got shape \(3,\)"),
        (ring(4), 1.0, r"one weight per agent: expected 4, got shape \(\)"),
        (ring(4), [1, 1, 0, 1], r"positive and finite: agent 2 has 0\.0"),
        (ring(4), [1, -1, 1, 1], r"positive and finite: agent 1 has -1\.0"),
        (ring(4), [1, 1, 1, float("nan")], "positive and finite: agent 3 has nan"),
        (ring(4), [float("inf"), 1, 1, 1], "positive and finite: agent 0 has inf"),
    ],
)
def test_hastings_refuses(g, wish, message):
    with pytest.raises(PolicyError, match=message):
        hastings(g, wish)


@pytest.mark.parametrize("rule", [metropolis, laplacian, lambda g: hastings(g, np.ones(g.size))])
def test_rules_with_a_remainder_need_self_loops(rule):
    peer = nx.complete_graph(4, nx.DiGraph)
    peer.add_edges_from([(0, 0), (1, 1), (3, 3)])
    with pytest.raises(PolicyError, match="agent 2 has no self-loop"):
        rule(from_networkx(peer, self_loops=False))


def test_uniform_works_without_self_loops():
    p = uniform(from_networkx(nx.complete_graph(4), self_loops=False))
    assert np.array_equal(p.A, (1 - np.eye(4)) / 3)


# --- what every policy carries ---


@graphs(UNDIRECTED, DIRECTED)
def test_weights_are_the_columns_in_the_order_of_the_graph(g):
    p = metropolis(g)
    assert np.array_equal(p.weights, [p.A[l, k] for l, k in zip(g.indices, g.hearers, strict=True)])
    assert np.array_equal(p.sparse.toarray(), p.A)
    assert Policy.from_weights(g, p.weights) == p


def test_rules_keep_the_picture():
    g = grid(2, 3)
    assert np.array_equal(uniform(g).graph.positions, g.positions)
    assert np.array_equal(laplacian(path(3), 0.5).graph.positions, path(3).positions)


def test_arrays_are_read_only():
    p = uniform(ring(4))
    for array in (p.A, p.weights, p.perron):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.5


@pytest.mark.parametrize("form", [np.array, sparse.csc_array, sparse.csr_array, sparse.coo_array, sparse.csc_matrix])
def test_a_policy_owns_its_matrix(form):
    given_matrix = form([[0.5, 0.25], [0.5, 0.75]])
    before = given_matrix.copy()
    p = Policy(given_matrix)
    assert abs(given_matrix - before).max() == 0
    (given_matrix if form is np.array else given_matrix.data)[...] = 7.0
    assert p.A.tolist() == [[0.5, 0.25], [0.5, 0.75]]


@pytest.mark.parametrize("K", [1024, 1025])
def test_the_matrix_is_sparse_above_1024_agents(K):
    p = uniform(ring(K))
    assert sparse.issparse(p.A) == (K > 1024)


def test_equality_hash_and_pickle():
    p = metropolis(DIRECTED["erdos-renyi"])
    assert p == Policy(p.A)
    assert hash(p) == hash(Policy(p.A))
    assert p != uniform(DIRECTED["erdos-renyi"])
    assert p != p.A.tolist()
    expected = p.perron.copy()
    copy = pickle.loads(pickle.dumps(p))
    assert copy == p
    assert np.array_equal(copy.perron, expected)


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (uniform(ring(1)), "Policy(1 agent, 0 links, sigma_A = 0)"),
        (uniform(complete(4)), "Policy(4 agents, 12 links, sigma_A = 0)"),
        (laplacian(ring(4), 0.25), "Policy(4 agents, 8 links, sigma_A = 0.5)"),
        (uniform(ring(1025)), "Policy(1025 agents, 2050 links)"),  # finding sigma_A may take long
    ],
)
def test_repr(p, text):
    assert repr(p) == text


@pytest.mark.parametrize("K", range(3, 60))
def test_laplacian_at_its_limit_leaves_exactly_nothing(K):
    p = laplacian(star(K), 1 / (K - 1))  # rounding must not leave a weight of a few eps, of either sign
    assert p.A[0, 0] == 0.0


def test_laplacian_without_any_self_weight_is_periodic_not_slow():
    with pytest.raises(PolicyError, match="period 2"):
        laplacian(from_networkx(nx.complete_bipartite_graph(6, 6)), 1 / 6)
