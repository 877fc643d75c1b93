"""Perron vector, second eigenvalue and mixing against dense eigenvalues, exact fractions and closed forms."""

import itertools
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from collegium.errors import AssumptionError, PolicyError
from collegium.policy import Policy, hastings, laplacian, metropolis, uniform
from collegium.topology import Graph, complete, erdos_renyi, geometric, grid, path, ring, small_world, star, torus

EPS = np.finfo(float).eps


def random_matrix(K, seed, density=1.0):
    """A left-stochastic matrix that is neither symmetric nor reversible; a cycle and self-loops keep it primitive."""
    rng = np.random.default_rng(seed)
    A = rng.random((K, K)) * (rng.random((K, K)) < density)
    A += np.eye(K) * rng.random(K) + np.roll(np.eye(K), 1, axis=0) * rng.random(K)
    return A / A.sum(axis=0)


def one_way_ring(K, own):
    """Agent k gives own[k] to itself and the rest to the agent before it."""
    own, k = np.broadcast_to(own, K), np.arange(K)
    entries = np.concatenate([own, 1 - own]), (np.concatenate([k, (k - 1) % K]), np.concatenate([k, k]))
    return sparse.csc_array(sparse.coo_array(entries, shape=(K, K)))


def winning_streak(K):
    """Half the weight always to agent 0, half to the next one: A^t is π exactly from t = K - 1 on, not before."""
    A = np.zeros((K, K))
    A[0] = 0.5
    for k in range(K):
        A[min(k + 1, K - 1), k] += 0.5
    return A


def perron_by_eig(A):
    values, vectors = np.linalg.eig(A)
    vector = vectors[:, np.argmin(np.abs(values - 1))].real
    return vector / vector.sum()


def slem_by_eigvals(A):
    return np.sort(np.abs(np.linalg.eigvals(A)))[-2]


SMALL = {
    "pair": np.array([[0.5, 0.25], [0.5, 0.75]]),
    "random": random_matrix(9, seed=1),
    "random sparse": random_matrix(30, seed=2, density=0.1),
    "uniform erdos-renyi": uniform(erdos_renyi(12, links=24, seed=7)).A,
    "metropolis erdos-renyi": metropolis(erdos_renyi(12, links=24, seed=7)).A,
    "uniform star": uniform(star(8)).A,
    "hastings grid": hastings(grid(3, 4), np.arange(1.0, 13.0)).A,
    "one-way ring": one_way_ring(8, 0.1).toarray(),
}
small = pytest.mark.parametrize("A", SMALL.values(), ids=SMALL.keys())


# --- Perron vector ---


@small
def test_perron_is_the_right_eigenvector(A):
    p = Policy(A)
    assert p.perron == pytest.approx(perron_by_eig(A), rel=1e-10)  # eig's own accuracy on these matrices
    assert p.perron.sum() == pytest.approx(1, abs=4 * EPS)
    assert np.abs(A @ p.perron - p.perron).max() <= 8 * EPS


@given(st.integers(1, 25), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.3]))
@settings(deadline=None, max_examples=60)
def test_perron_and_slem_of_random_matrices(K, seed, density):
    A = random_matrix(K, seed, density)
    p = Policy(A)
    assert p.perron == pytest.approx(perron_by_eig(A), abs=1e-10)
    if K > 1:
        # A cluster of m eigenvalues may move by eps**(1/m) when A is not normal: pairs by 1e-8.
        assert p.slem == pytest.approx(slem_by_eigvals(A), abs=1e-7)


def test_singular_vectors_would_be_wrong():
    A = SMALL["metropolis erdos-renyi"]
    left, _, right = np.linalg.svd(A)
    p = Policy(A)
    assert p.perron == pytest.approx(perron_by_eig(A), rel=1e-10)
    for vector in (left[:, 0], right[0]):
        assert np.abs(vector / vector.sum() - p.perron).max() > 0.1


def test_the_transposed_eigenproblem_would_be_wrong():
    A = SMALL["pair"]  # its left eigenvector is constant
    assert Policy(A).perron == pytest.approx([1 / 3, 2 / 3], abs=4 * EPS)


def test_perron_is_the_limit_of_the_rounds():
    p = uniform(erdos_renyi(12, links=24, seed=7))
    scores = np.random.default_rng(0).normal(size=(5, 12))
    long_after = scores @ np.linalg.matrix_power(p.A, 2000)
    assert long_after == pytest.approx(np.repeat((scores @ p.perron)[:, None], 12, axis=1), abs=1e-11)


def with_random_weights(g, seed):
    weights = np.random.default_rng(seed).uniform(0.1, 1.0, len(g.indices))
    return Policy(g.columns(weights / np.bincount(g.hearers, weights)[g.hearers]))


def between(low, high, seed=3):
    return np.random.default_rng(seed).uniform(low, high, 3000)


THREE_THOUSAND = {  # one for each way the Perron vector of a large sparse A is found
    "doubly stochastic": lambda: metropolis(geometric(3000, seed=2)),
    "reversible": lambda: uniform(geometric(3000, seed=2)),
    "reversible, any wish": lambda: hastings(grid(50, 60), between(1, 100)),
    "directed, fast": lambda: uniform(erdos_renyi(3000, links=15_000, seed=3)),
    "undirected, not reversible": lambda: with_random_weights(small_world(3000, 6, 0.2, seed=1), seed=1),
    "directed, slow": lambda: Policy(one_way_ring(3000, between(0.2, 0.8))),
}


@pytest.mark.parametrize("make", THREE_THOUSAND.values(), ids=THREE_THOUSAND.keys())
def test_perron_of_three_thousand_agents(make):
    p = make()
    K = p.size
    dense = np.linalg.solve(np.eye(K) - p.sparse.toarray() + 1, np.ones(K))  # (I - A + 11')π = 1
    # The dense solve is no better than its condition, up to 1 / (1 - σ_A) ~ 1e6: eps · 1e6 / 3000 in each π_k, tenfold.
    assert p.perron == pytest.approx(dense, abs=1e-12)
    assert np.abs(p.sparse @ p.perron - p.perron).sum() <= 1e-13
    assert (p.perron > 0).all()


def test_perron_of_large_networks_in_closed_form():
    own = between(0.2, 0.8)
    expected = 1 / (1 - own)  # what flows through each agent of a one-way ring is the same
    assert Policy(one_way_ring(3000, own)).perron == pytest.approx(expected / expected.sum(), rel=1e-11)
    star_sizes = np.array([5000.0] + [2.0] * 4999)
    assert uniform(star(5000)).perron == pytest.approx(star_sizes / star_sizes.sum(), rel=1e-11)
    wish = np.exp(np.linspace(0, 20, 4000))
    assert hastings(path(4000), wish).perron == pytest.approx(wish / wish.sum(), rel=1e-10)


# --- second eigenvalue ---


@small
def test_slem_is_the_second_eigenvalue_modulus(A):
    assert Policy(A).slem == pytest.approx(slem_by_eigvals(A), abs=1e-9)


@pytest.mark.parametrize("K", [2, 3, 4, 5, 12, 101, 400, 5000, 5001])
def test_slem_of_a_ring_in_closed_form(K):
    # On two agents the "ring" is complete, and (1 + 2 cos π)/3 counts their link twice.
    expected = 0.0 if K == 2 else max(abs(1 + 2 * np.cos(2 * np.pi * j / K)) / 3 for j in range(1, K))
    assert uniform(ring(K)).slem == pytest.approx(
        expected, abs=1e-10 if K > 1024 else 1e-13
    )  # ARPACK is asked for 1e-10


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        (lambda: uniform(complete(10)), 0.0),
        (lambda: uniform(star(9)), 0.5),
        (lambda: uniform(star(3000)), 0.5),
        (lambda: metropolis(path(50)), (1 + 2 * np.cos(np.pi / 50)) / 3),
        (lambda: metropolis(path(3000)), (1 + 2 * np.cos(np.pi / 3000)) / 3),
        (lambda: laplacian(torus(6, 7)), (3 + 2 * np.cos(2 * np.pi / 7)) / 5),
        (lambda: laplacian(torus(40, 50)), (3 + 2 * np.cos(2 * np.pi / 50)) / 5),
        (lambda: Policy([[0.1, 0.8], [0.9, 0.2]]), 0.7),
        (lambda: Policy(one_way_ring(20, 0.3)), abs(0.3 + 0.7 * np.exp(2j * np.pi / 20))),
        (lambda: Policy([[1.0]]), 0.0),
    ],
)
def test_slem_in_closed_form(p, expected):
    assert p().slem == pytest.approx(expected, abs=1e-10)


def test_slem_of_a_large_directed_network():
    p = uniform(erdos_renyi(1030, links=5000, seed=3))
    assert not p.graph.is_undirected
    assert p.slem == pytest.approx(slem_by_eigvals(p.sparse.toarray()), abs=1e-7)  # ARPACK is asked for 1e-8


def test_slem_of_a_large_network_that_is_not_reversible():
    p = with_random_weights(grid(26, 40), seed=1)
    assert p.slem == pytest.approx(slem_by_eigvals(p.sparse.toarray()), abs=1e-7)


def test_slem_of_a_large_one_way_ring_is_right_or_not_given():
    K, own = 2000, 0.3  # two thousand eigenvalues on a circle through 1: ARPACK has a hard time
    try:
        found = Policy(one_way_ring(K, own)).slem
    except PolicyError as refusal:
        assert "2000 agents was not found" in str(refusal)  # noqa: PT017 - either answer is honest
    else:
        assert found == pytest.approx(abs(own + (1 - own) * np.exp(2j * np.pi / K)), abs=1e-9)


# --- powers ---


@small
def test_power_is_the_repeated_product(A):
    p, product = Policy(A), np.eye(len(A))
    for t in range(8):
        assert np.abs(p.power(t) - product).max() <= 4 * len(A) * (t + 1) * EPS
        product = product @ A


def test_power_of_a_large_network():
    p = uniform(erdos_renyi(1100, links=4400, seed=1))
    dense = p.sparse.toarray()
    assert np.array_equal(p.power(0).toarray(), np.eye(1100))
    assert np.abs(p.power(3).toarray() - dense @ dense @ dense).max() <= 64 * EPS


def test_power_says_whose_score_counts_how_much():
    p, scores = Policy(SMALL["random"]), np.random.default_rng(2).normal(size=(4, 9))
    after = scores @ p.A @ p.A @ p.A
    assert scores @ p.power(3) == pytest.approx(after, abs=64 * EPS)


# --- mixing: everything again in exact fractions ---


def exact_deviations(weights, rounds):
    """A, and A^t - π1' for t = 0 … rounds - 1 as fractions, from whole-number weights scaled by columns."""
    whole = np.array(weights)
    K = len(whole)
    A = np.array([[Fraction(int(w), int(total)) for w, total in zip(row, whole.sum(0), strict=True)] for row in whole])
    identity = np.array([[Fraction(int(l == k)) for k in range(K)] for l in range(K)])
    # Markov chain tree theorem: π_k is proportional to the principal minor of I - A without k.
    minors = [determinant(np.delete(np.delete(identity - A, k, 0), k, 1)) for k in range(K)]
    limit = np.array([[minor / sum(minors)] * K for minor in minors])
    deviations, power = [identity - limit], identity
    for _ in range(rounds - 1):
        power = power @ A
        deviations.append(power - limit)
    return A.astype(float), deviations


def determinant(M):
    total = Fraction(0)
    for order in itertools.permutations(range(len(M))):
        swaps = sum(a > b for a, b in itertools.combinations(order, 2))
        term = Fraction((-1) ** swaps)
        for row, column in enumerate(order):
            term *= M[row, column]
        total += term
    return total


def streak_weights(K):
    return np.rint(2 * winning_streak(K)).astype(int)


def drift_weights(K):
    """A row of agents that trust the left nine times as much as the right: far from normal, one end has all the say."""
    weights = np.zeros((K, K), int)
    for k in range(K):
        weights[max(k - 1, 0), k] += 9
        weights[min(k + 1, K - 1), k] += 1
    return weights


ONE_SELF_LOOP = [[1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
EXACT = {
    "pair": [[2, 1], [2, 3]],
    "ring of five": [[1, 1, 0, 0, 1], [1, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 1, 1], [1, 0, 0, 1, 1]],
    "one-way ring": [[3, 0, 0, 7], [7, 3, 0, 0], [0, 7, 3, 0], [0, 0, 7, 3]],
    "one self-loop": ONE_SELF_LOOP,
    "drift": drift_weights(5),
    "streak": streak_weights(6),
    "uneven": [[5, 1, 0], [0, 1, 7], [1, 3, 2]],
}


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9], ids=lambda share: f"sigma {share} of the way to 1")
@pytest.mark.parametrize("weights", EXACT.values(), ids=EXACT.keys())
def test_mixing_constant_is_the_smallest_that_holds_in_every_round(weights, share):
    A, deviations = exact_deviations(weights, rounds=300)
    p = Policy(A)
    sigma = p.slem + share * (1 - p.slem)
    largest = [np.abs(deviation).max() / Fraction(sigma) ** t for t, deviation in enumerate(deviations)]
    # Equality in the round where it is tightest, so nothing smaller holds; rounding of products of a few matrices.
    assert p.mixing_constant(sigma) == pytest.approx(float(max(largest)), rel=1e-11)


@pytest.mark.parametrize(
    ("weights", "sigma", "worst"),
    [
        (streak_weights(6), 0.1, 4),
        (ONE_SELF_LOOP, 0.95, 2),
        (drift_weights(6), 0.55, 6),
        (drift_weights(6), 0.9, 4),
    ],
)
def test_mixing_constant_when_the_worst_round_is_not_the_first(weights, sigma, worst):
    A, deviations = exact_deviations(weights, rounds=300)
    largest = [np.abs(deviation).max() / Fraction(sigma) ** t for t, deviation in enumerate(deviations)]
    assert np.argmax(largest) == worst
    assert largest[worst] > 1.1 * largest[0]
    assert Policy(A).mixing_constant(sigma) == pytest.approx(float(max(largest)), rel=1e-11)


@pytest.mark.parametrize("rule", [uniform, metropolis])
@pytest.mark.parametrize("share", [0.01, 0.5])
def test_mixing_constant_of_the_papers_network_by_eigenvectors(rule, share):
    p = rule(erdos_renyi(12, links=24, seed=7))
    sigma = p.slem + share * (1 - p.slem)
    values, vectors = np.linalg.eig(p.A)
    values = np.where(np.abs(values - 1) < 1e-9, 0, values)  # A - π1': the eigenvalue 1 becomes 0
    inverse = np.linalg.inv(vectors)
    limit = np.repeat(perron_by_eig(p.A)[:, None], 12, axis=1)
    largest = [np.abs(np.eye(12) - limit).max()]
    largest += [np.abs((vectors * (values / sigma) ** t) @ inverse).max() for t in range(1, 600)]
    assert p.mixing_constant(sigma) == pytest.approx(max(largest), rel=1e-9)


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
@settings(deadline=None)
def test_two_agents_in_closed_form(a, b, share):
    A = np.array([[1 - a, b], [a, 1 - b]])
    shrink, pi = abs(1 - a - b), np.array([b, a]) / (a + b)
    p = Policy(A)
    assert p.slem == pytest.approx(shrink, abs=1e-14)
    sigma = shrink + share * (1 - shrink)
    assert p.mixing_constant(sigma) == pytest.approx(pi.max(), rel=1e-12)  # A^t - π1' is shrink^t (I - π1'): t = 0
    # Here 1e-10 is the stated tolerance, the rest is rounding.
    assert p.b_mix == pytest.approx(2 * pi.max() * shrink / (1 - shrink), rel=1.1e-10, abs=1.1e-10)


@pytest.mark.parametrize("sigma", [0.9, 0.5, 0.0, -0.5, 1.0, 1.5, float("nan"), float("inf")])
def test_mixing_constant_refuses_sigma_outside_its_range(sigma):
    p = Policy([[0.95, 0.05], [0.05, 0.95]])  # σ_A = 0.9, and computed not a bit larger
    sigma = p.slem if sigma == 0.9 else sigma
    with pytest.raises(AssumptionError, match=r"strictly between sigma_A = 0\.9 and 1, got|finite number; got"):
        p.mixing_constant(sigma)


@pytest.mark.parametrize("weights", EXACT.values(), ids=EXACT.keys())
def test_b_mix_is_the_sum_of_all_rounds(weights):
    A, deviations = exact_deviations(weights, rounds=300)
    p = Policy(A)
    added = float(max(sum(np.abs(deviation).sum(axis=0) for deviation in deviations[1:])))
    after = float(np.abs(deviations[-1]).sum(axis=0).max()) * added / (1 - p.slem)  # generous for what comes later
    assert after < 1e-11
    assert added * (1 - 1e-12) <= p.b_mix <= added * (1 + 1e-12) + 1e-10 * max(1, added) + after


def test_b_mix_when_the_network_forgets_after_finitely_many_rounds():
    _, deviations = exact_deviations(streak_weights(4), rounds=6)
    assert not deviations[3].any()
    expected = float(max(sum(np.abs(deviation).sum(axis=0) for deviation in deviations[1:])))
    assert Policy(winning_streak(4)).b_mix == pytest.approx(expected, abs=1.1e-10)


def test_b_mix_of_a_network_that_hardly_mixes_is_refused_with_advice():
    with pytest.raises(PolicyError, match=r"too many terms to add up.* mixing_constant"):
        _ = uniform(ring(600)).b_mix


@small
def test_mixing_time_is_the_first_round_within_a_quarter(A):
    limit, power, t = perron_by_eig(A)[:, None], np.eye(len(A)), 0
    while np.abs(power - limit).sum(axis=0).max() / 2 > 0.25:
        power, t = power @ A, t + 1
    assert Policy(A).mixing_time == t


@pytest.mark.parametrize("g", [ring(40), path(25), star(30), complete(5), grid(5, 6)])
def test_mixing_time_of_slower_networks(g):
    p = metropolis(g)
    power, t = np.eye(g.size), 0
    while np.abs(power - 1 / g.size).sum(axis=0).max() / 2 > 0.25:
        power, t = power @ p.A, t + 1
    assert p.mixing_time == t


@pytest.mark.parametrize(
    "ask",
    [lambda p: p.mixing_constant(0.9999999), lambda p: p.b_mix, lambda p: p.mixing_time],
    ids=["C", "b_mix", "time"],
)
def test_mixing_of_large_networks_is_refused_kindly(ask):
    with pytest.raises(PolicyError, match=r"at most 1024\b.*|1025.*at most 1024"):
        ask(uniform(ring(1025)))


def test_a_lonely_agent_is_done_before_it_starts():
    p = Policy([[1.0]])
    assert p.perron.tolist() == [1.0]
    assert (p.slem, p.b_mix, p.mixing_time, p.links) == (0.0, 0.0, 0, 0)
    assert p.mixing_constant(0.5) == 0.0
    assert p.power(7).tolist() == [[1.0]]
    assert p.is_doubly_stochastic


# --- memory ---


def ten_each(K):
    """Everybody hears ten others at fixed distances around a circle."""
    here, steps = np.arange(K), np.array([1, 7, 100, 3001, 50_021])
    return Graph.from_links(K, np.repeat(here, 5), (here[:, None] + steps).ravel() % K, undirected=True)


@pytest.mark.parametrize(
    "make", [ten_each, lambda K: erdos_renyi(K, links=10 * K, seed=1)], ids=["ring", "erdos-renyi"]
)
def test_memory_grows_with_the_links(make):
    K = 200_000
    g = make(K)
    assert g.links == 10 * K
    tracemalloc.start()
    try:
        p = uniform(g)
        say = p.perron
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Weights and indices, a copy of each and the masks of the checks: 45 bytes per link. A dense A would be 160 000.
    assert peak <= 64 * p.links
    assert say.sum() == pytest.approx(1)
    assert np.abs(p.A @ say - say).sum() <= 1e-13


def test_perron_entries_are_relatively_exact_however_small():
    """A winning streak: 0.9 on, 0.1 back to the start, so the entries are 0.9^k to the last digit."""
    K = 400
    A = np.zeros((K, K))
    A[0], A[np.arange(1, K), np.arange(K - 1)] = 0.1, 0.9
    A[K - 1, K - 1] = 0.9
    pi = np.append(0.1 * 0.9 ** np.arange(K - 1), 0.9 ** (K - 1))
    np.testing.assert_allclose(Policy(A).perron, pi, rtol=1e-10)  # 400 steps, each a few eps
    np.testing.assert_array_equal(Policy([[1 - 1e-16, 1e-16], [1e-16, 1 - 1e-16]]).perron, [0.5, 0.5])


def test_perron_of_two_large_parts_joined_by_a_thread():
    """Power iteration would stop between the parts; the flow across the thread decides."""
    halves = [erdos_renyi(1500, links=15_000, seed=seed) for seed in (1, 2)]
    blocks = [uniform(half).sparse.tolil() for half in halves]
    A = sparse.block_diag(blocks, format="lil")
    for speaker, hearer, weight in ((1500, 0, 1e-12), (0, 1500, 2e-12)):
        A[hearer, hearer] -= weight
        A[speaker, hearer] = weight
    p = Policy(sparse.csc_array(A))
    # flows balance: what the first half loses to agent 1500's word it gains back
    inner = [uniform(half).perron[0] for half in halves]
    first = 2e-12 * inner[1] / (1e-12 * inner[0] + 2e-12 * inner[1])
    assert p.perron[:1500].sum() == pytest.approx(first, rel=1e-9)


def test_mixing_constant_of_instant_agreement_at_any_sigma():
    p = uniform(ring(3))
    for sigma in (1e-300, 1e-17, 0.5):
        assert p.mixing_constant(sigma) == pytest.approx(2 / 3, rel=1e-12)


def test_mixing_constant_of_a_slow_ring_is_quick():
    p = uniform(ring(300))
    powers = [np.abs(np.linalg.matrix_power(p.A, t) - 1 / 300).max() / 0.9999**t for t in range(300)]
    assert p.mixing_constant(0.9999) == pytest.approx(max(powers), rel=1e-12)


@pytest.mark.parametrize(("K", "links", "seed"), [(1200, 1400, 2), (1500, 1800, 0), (1500, 2250, 0)])
def test_slem_where_a_few_eigenvalues_would_miss_the_largest(K, links, seed):
    p = uniform(erdos_renyi(K, links=links, seed=seed))
    assert p.slem == pytest.approx(slem_by_eigvals(p.sparse.toarray()), abs=1e-7)


def test_b_mix_is_refused_where_nothing_mixes():
    with pytest.raises(PolicyError, match="too many terms"):
        Policy([[1.0, 1e-17], [1e-17, 1.0]]).b_mix  # noqa: B018


def test_sigma_equal_to_slem_up_to_rounding_is_refused():
    p = Policy([[0.5, 0.25], [0.5, 0.75]])
    with pytest.raises(AssumptionError):
        p.mixing_constant(0.25)
