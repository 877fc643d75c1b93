"""Matrices that are no policies are refused, each with the sentence that helps."""

import pickle
import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from collegium.errors import CollegiumError, PolicyError
from collegium.policy import Policy, hastings, laplacian, metropolis, uniform
from collegium.topology import Graph

GOOD = np.array([[0.5, 0.2, 0.0], [0.3, 0.8, 0.1], [0.2, 0.0, 0.9]])


def changed(entry, value):
    A = GOOD.copy()
    A[entry] = value
    return A


@pytest.mark.parametrize("form", [np.asarray, sparse.csc_array, sparse.csr_array, sparse.coo_array, sparse.lil_array])
@pytest.mark.parametrize(
    ("A", "message"),
    [
        (changed((0, 2), -0.1), r"not be negative: A\[0, 2\] = -0\.1.* the weight agent 2 gives to agent 0"),
        (changed((2, 1), np.nan), r"NaN or infinity: 1 entries, first A\[2, 1\] = nan"),
        (changed((1, 0), np.inf), r"NaN or infinity: 1 entries, first A\[1, 0\] = inf"),
        (changed((1, 0), -np.inf), r"NaN or infinity: 1 entries, first A\[1, 0\] = -inf"),
        (changed((slice(None), 1), np.nan), r"NaN or infinity: 3 entries, first A\[0, 1\] = nan"),
        (changed((0, 0), 0.4), r"column 0 sums to 0\.9\. .*weight agent k gives to agent l\. Scale each column"),
        (GOOD / 2, r"column 0 sums to 0\.5 \(and 2 more\)"),
        (changed((slice(None), 1), 0), r"column 1 sums to 0\."),
        (changed((0, 0), 0.5 + 1e-4), r"column 0 sums to 1\.0001"),
        (GOOD.T, r"column 0 sums to 0\.7 \(and 2 more\).*The rows do sum to 1: pass A\.T"),
        (np.full((2, 3), 0.5), r"square, one row and one column per agent; got shape \(2, 3\)"),
        (np.full((3, 2), 1 / 3), r"square, one row and one column per agent; got shape \(3, 2\)"),
        (np.empty((0, 0)), "A is empty: a network needs at least one agent"),
    ],
    ids=[
        *["negative", "nan", "inf", "-inf", "three nans", "short column", "all short", "empty column", "slightly off"],
        *["transposed", "wide", "tall", "empty"],
    ],
)
def test_refused_with_the_sentence_that_helps(A, message, form):
    with pytest.raises(PolicyError, match=message):
        Policy(form(A))


@pytest.mark.parametrize(
    ("A", "message"),
    [
        ([0.5, 0.5], r"square matrix, got an array of shape \(2,\)"),
        ([], r"square matrix, got an array of shape \(0,\)"),
        (1.0, r"square matrix, got an array of shape \(\)"),
        (np.ones((1, 1, 1)), r"square matrix, got an array of shape \(1, 1, 1\)"),
        ([[]], r"square.* got shape \(1, 0\)"),
        ([[1.0], [0.0, 1.0]], "matrix of real numbers, all rows of the same length"),
        ([["half", "half"]], "matrix of real numbers"),
        (object(), "matrix of real numbers"),
    ],
)
def test_things_that_are_no_matrices(A, message):
    with pytest.raises(PolicyError, match=message):
        Policy(A)


def test_refusals_can_be_caught_as_one_and_as_value_errors():
    with pytest.raises(CollegiumError):
        Policy([[2.0]])
    with pytest.raises(ValueError, match="sum to 1"):
        Policy([[2.0]])


def test_rows_that_sum_to_one_are_not_blamed_when_the_columns_do():
    assert np.array_equal(Policy(GOOD).A, GOOD)


def test_a_doubly_wrong_matrix_is_not_called_transposed():
    with pytest.raises(PolicyError, match=r"Scale each column to sum to 1\.$"):
        Policy([[0.5, 0.4], [0.4, 0.5]])


def test_rounding_in_the_sums_is_forgiven():
    A = np.array([[1 / 3, 0.1], [2 / 3, 0.9]]) * (1 + 5e-10)
    assert Policy(A).size == 2


def uniform_columns(links, K):
    """Equal weights over whom each agent hears, as a plain matrix."""
    A = np.zeros((K, K))
    for l, k in links:
        A[l, k] = 1
    return A / A.sum(axis=0)


@st.composite
def digraphs_with_self_loops(draw):
    K = draw(st.integers(2, 8))
    agent = st.integers(0, K - 1)
    return K, {(k, k) for k in range(K)} | set(draw(st.lists(st.tuples(agent, agent), max_size=2 * K)))


@given(digraphs_with_self_loops())
@settings(deadline=None, max_examples=200)
def test_the_two_agents_named_have_no_path(drawn):
    K, links = drawn
    A, peer = uniform_columns(links, K), nx.DiGraph(sorted(links))
    if nx.is_strongly_connected(peer):
        assert Policy(A).size == K
        return
    with pytest.raises(PolicyError, match="not strongly connected") as refusal:
        Policy(A)
    sender, receiver = map(
        int, re.search(r"message of agent (\d+) ever reaches agent (\d+)", str(refusal.value)).groups()
    )
    assert not nx.has_path(peer, sender, receiver)


@pytest.mark.parametrize(
    ("links", "K", "period"),
    [
        ([(0, 1), (1, 0)], 2, 2),
        ([(k, (k + 1) % 5) for k in range(5)], 5, 5),
        ([(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (4, 5), (5, 6), (6, 7), (7, 8), (8, 0)], 9, 2),
        ([(k, (k + 1) % 6) for k in range(6)] + [(2, 0)], 6, 3),
    ],
)
def test_periodic_names_the_period(links, K, period):
    with pytest.raises(PolicyError, match=rf"periodic with period {period}: .* at least one agent a weight for itself"):
        Policy(uniform_columns(links, K))
    assert Policy(uniform_columns([*links, (0, 0)], K)).graph.period == 1


def test_aperiodic_without_any_self_loop_is_welcome():
    links = [(0, 1), (1, 2), (2, 0), (1, 0)]  # cycles of three and of two
    assert Policy(uniform_columns(links, 3)).links == 4


@pytest.mark.parametrize("by_columns", [True, False], ids=["csc", "coo"])
def test_sparse_duplicates_are_added_up(by_columns):
    entries, rows = [0.25, 0.25, 0.5, 0.25, 1.0, -0.25], [0, 0, 1, 0, 1, 1]
    where = (rows, [0, 3, 6]) if by_columns else ((rows, [0, 0, 0, 1, 1, 1]),)
    p = Policy((sparse.csc_array if by_columns else sparse.coo_array)((entries, *where), shape=(2, 2)))
    assert p.A.tolist() == [[0.5, 0.25], [0.5, 0.75]]
    assert p.weights.tolist() == [0.5, 0.5, 0.25, 0.75]


def test_unsorted_sparse_indices_are_sorted():
    p = Policy(sparse.csc_array(([0.75, 0.25, 0.5, 0.5], [1, 0, 1, 0], [0, 2, 4]), shape=(2, 2)))
    assert p.A.tolist() == [[0.25, 0.5], [0.75, 0.5]]
    assert p.graph.indices.tolist() == [0, 1, 0, 1]


def test_stored_zeros_are_no_links():
    entries = [0.5, 0.5, 0.0, 0.25, 0.75, 0.0, 0.5, 0.5]
    A = sparse.csc_array((entries, [0, 1, 2, 1, 2, 0, 0, 2], [0, 3, 6, 8]), shape=(3, 3))
    p = Policy(A)
    assert p.links == 3
    assert len(p.weights) == 6
    assert A.nnz == 8  # the user's own matrix is left alone


def test_stored_zeros_do_not_connect():
    A = sparse.csc_array(([0.5, 0.5, 0.0, 1.0], [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
    with pytest.raises(PolicyError, match="no message of agent 0 ever reaches agent 1"):
        Policy(A)


def test_stored_zeros_on_the_diagonal_do_not_end_periodicity():
    A = sparse.csc_array(([0.0, 1.0, 1.0, 0.0], [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
    with pytest.raises(PolicyError, match="period 2"):
        Policy(A)


def test_a_graph_that_is_not_the_matrix_only_lends_its_picture():
    g = Graph.from_links(2, [0], [1], positions=[[0, 0], [3, 4]])
    p = Policy([[0.5, 0.25], [0.5, 0.75]], graph=g)
    assert p.links == 2
    assert p.graph.positions.tolist() == [[0, 0], [3, 4]]


@pytest.mark.parametrize("t", [-1, 1.5, "two", None])
def test_power_refuses_rounds_that_are_none(t):
    with pytest.raises(PolicyError, match=rf"whole number, at least 0; got {t!r}"):
        Policy(GOOD).power(t)


def test_sums_that_miss_by_little_are_shown_in_full():
    with pytest.raises(PolicyError, match=r"column 0 sums to 1\.00000001"):
        Policy([[0.5, 0.5], [0.5 + 1e-8, 0.5]])


@pytest.mark.parametrize("A", [sparse.coo_array([1.0, 2.0]), np.array([[1 + 0j]])])
def test_vectors_and_complex_numbers_are_no_policies(A):
    with pytest.raises(PolicyError, match=r"square matrix|real numbers"):
        Policy(A)


def test_a_policy_is_frozen_again_after_pickling():
    p = pickle.loads(pickle.dumps(Policy([[0.5, 0.25], [0.5, 0.75]])))
    with pytest.raises(ValueError, match="read-only"):
        p.weights[0] = 1


def test_a_policy_cannot_be_changed():
    p = Policy([[0.5, 0.25], [0.5, 0.75]])
    with pytest.raises(AttributeError, match="frozen"):
        p.graph = Graph.from_links(2, [0], [1])


@pytest.mark.parametrize("rule", [uniform, metropolis, laplacian, lambda graph: hastings(graph, [1, 1])])
def test_a_matrix_is_no_graph(rule):
    with pytest.raises(PolicyError, match=r"wants a Graph .* Policy\(A\)"):
        rule(np.eye(2))
