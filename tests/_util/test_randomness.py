"""Counter-based draws: the published hashes, the same numbers everywhere, no pattern a chi-square test would see."""

import hashlib
import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from collegium._util.randomness import (
    Draws,
    child,
    distinct,
    item_ids,
    item_keys,
    mix64,
    mix64_array,
    seed64,
    sender_salts,
    sorted_distinct,
    stream,
    uniforms,
)
from collegium.errors import RuleError

SIGNIFICANCE = 1e-4  # of each chi-square test; the seeds are fixed, so a test that passes goes on passing
words = st.integers(0, 2**64 - 1)
GOLDEN = 0x9E3779B97F4A7C15


# --- the 64-bit hash ---


def test_mix64_is_splitmix64():
    # The first five outputs of Vigna's splitmix64.c from the state 1234567; the state grows by the golden ratio.
    published = [
        *[6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431],
        16408922859458223821,
    ]
    assert [mix64((1234567 + i * GOLDEN) % 2**64) for i in range(5)] == published
    assert mix64(0) == 0xE220A8397B1DCDAF


@given(st.lists(words, min_size=1, max_size=20))
@settings(deadline=None)
def test_mix64_of_arrays_is_mix64_of_numbers(numbers):
    array = np.array(numbers, np.uint64)
    assert mix64_array(array).tolist() == [mix64(number) for number in numbers]
    assert array.tolist() == numbers


def test_mix64_does_not_collide():
    numbers = np.arange(200_000, dtype=np.uint64)
    assert len(np.unique(mix64_array(numbers))) == 200_000


def test_child_seeds_differ():
    assert len({child(seed, index) for seed in range(100) for index in range(100)}) == 10_000
    assert child(0, 0) == 4433936053105669075


@given(words, st.integers(0, 1000), st.integers(0, 20), st.integers(0, 20))
@settings(deadline=None)
def test_a_stream_is_the_same_in_any_pieces(seed, start, first, second):
    whole = stream(seed, start, first + second)
    pieces = np.concatenate([stream(seed, start, first), stream(seed, start + first, second)])
    assert np.array_equal(whole, pieces)
    assert whole.tolist() == [mix64((mix64(seed) + GOLDEN * (start + i)) % 2**64) for i in range(first + second)]
    assert uniforms(seed, start, first + second).tolist() == [(word >> 11) / 2**53 for word in whole.tolist()]


def test_uniforms_are_uniform():
    numbers = uniforms(0, 0, 100_000)
    assert ((numbers >= 0) & (numbers < 1)).all()
    assert stats.chisquare(np.bincount((numbers * 100).astype(int), minlength=100)).pvalue > SIGNIFICANCE


# --- sampling without replacement ---


@given(words, st.integers(0, 60), st.data())
@settings(deadline=None)
def test_distinct_has_exactly_as_many_as_asked_for(seed, total, data):
    count = data.draw(st.integers(0, total))
    drawn = distinct(seed, total, count)
    assert drawn.dtype == np.int64
    assert len(drawn) == len(set(drawn.tolist())) == count
    assert drawn.tolist() == sorted(drawn.tolist())
    assert all(0 <= number < total for number in drawn.tolist())
    assert np.array_equal(drawn, distinct(seed, total, count))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_distinct_draws_every_set_equally_often(count):
    sets = list(itertools.combinations(range(6), count))
    found = Counter(tuple(distinct(seed, 6, count).tolist()) for seed in range(150 * len(sets)))
    assert set(found) == set(sets)
    assert stats.chisquare([found[some] for some in sets]).pvalue > SIGNIFICANCE


def test_distinct_golden():
    assert distinct(7, total=100, count=5).tolist() == [21, 27, 45, 74, 90]
    assert len(distinct(1, total=10**12, count=1000)) == 1000


@given(st.lists(st.integers(-50, 50)))
@settings(deadline=None)
def test_sorted_distinct_is_a_sorted_set(values):
    assert sorted_distinct(np.array(values, np.int64)).tolist() == sorted(set(values))


# --- seeds ---


@pytest.mark.parametrize("seed", [0, 7, 2**63, 2**64 - 1, np.int64(7), np.uint64(2**64 - 1), np.uint8(3)])
def test_whole_numbers_are_their_own_seeds(seed):
    assert seed64(seed) == int(seed)
    assert type(seed64(seed)) is int


def test_a_generator_gives_one_draw():
    rng, twin = np.random.default_rng(5), np.random.default_rng(5)
    assert seed64(rng) == int(twin.integers(0, 2**64, dtype=np.uint64))
    assert rng.random() == twin.random()  # no more than one draw was taken


def test_a_seed_sequence_is_not_used_up():
    sequence = np.random.SeedSequence(5)
    assert seed64(sequence) == seed64(sequence) == seed64(np.random.SeedSequence(5))
    assert seed64(sequence) != seed64(sequence.spawn(1)[0])


def test_none_is_a_new_seed_every_time():
    assert len({seed64(None) for _ in range(10)}) == 10


@pytest.mark.parametrize("seed", [True, np.True_, 1.0, "7", [7], np.array([7]), np.random.RandomState(7)])
def test_other_things_are_no_seeds(seed):
    with pytest.raises(RuleError, match="a seed must be a whole number, a numpy Generator or None, got"):
        seed64(seed)


@pytest.mark.parametrize("seed", [-1, 2**64, np.int64(-5)])
def test_seeds_have_64_bits(seed):
    with pytest.raises(RuleError, match=rf"between 0 and 2\*\*64 - 1, got {int(seed)}"):
        seed64(seed)


# --- item identities ---


@pytest.mark.parametrize(
    ("items", "ids"),
    [
        (None, [0, 1, 2]),
        ([5, 0, 9], [5, 0, 9]),
        (range(4, 7), [4, 5, 6]),
        (np.array([5, 0, 9], np.uint8), [5, 0, 9]),
        (np.array([2**64 - 1, 0, 2**63], np.uint64), [2**64 - 1, 0, 2**63]),
    ],
)
def test_whole_numbers_name_items(items, ids):
    found = item_ids(items, 3)
    assert found.dtype == np.uint64
    assert found.tolist() == ids


@pytest.mark.parametrize("form", [list, tuple, np.array, lambda names: np.array(names, object)])
def test_names_are_hashed(form):
    names = ["a", "photo 7", "é"]
    expected = [int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little") for name in names]
    assert item_ids(form(names), 3).tolist() == expected
    assert expected[0] == 3405396810240292928


@pytest.mark.parametrize("items", [None, [], np.array([]), ()])
def test_no_items_have_no_identities(items):
    assert item_ids(items, 0).shape == (0,)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([1, 2], "items names 2 items, but there are 3 rows"),
        ([], "items names 0 items, but there are 3 rows"),
        ([1, -2, 3], "must lie between 0 and .* got -2"),
        ([1.0, 2.0, 3.0], "whole numbers or strings"),
        ([True, False, True], "whole numbers or strings"),
        ([b"a", b"b", b"c"], "whole numbers or strings"),
        ([1, "two", 3], "whole numbers or strings"),
        (["a", None, "c"], "whole numbers or strings"),
        ([[1], [2], [3]], "whole numbers or strings"),
        ([2**64, 0, 1], "must lie between 0 and .* got 18446744073709551616"),
    ],
)
def test_other_things_name_no_items(items, message):
    with pytest.raises(RuleError, match=message):
        item_ids(items, 3)


# --- draws ---


def lowbias32(x):
    """The 32-bit finaliser with the constants of Wellons' hash-prospector, on uint32 arrays, which wrap."""
    x = x ^ (x >> np.uint32(16))
    x = x * np.uint32(0x21F0AAAD)
    x = x ^ (x >> np.uint32(15))
    x = x * np.uint32(0xD35A2D97)
    return x ^ (x >> np.uint32(15))


def draw_all(seed, items, agents, rounds):
    """The first draw of everybody as the kernels take it; arrays broadcast."""
    k0, k1 = item_keys(np.array([seed], np.uint64), np.asarray(items, np.uint64))
    s0, s1 = sender_salts(np.asarray(agents), np.asarray(rounds))
    return lowbias32((k0 ^ s0) + (k1 ^ s1)) / 2.0**32


@given(words, st.lists(words, min_size=1, max_size=5), st.integers(0, 2**40), st.integers(0, 2**40))
@settings(deadline=None, max_examples=200)
def test_one_agents_draw_is_that_of_the_arrays(seed, items, agent, round):
    expected = Draws(seed, np.array(items, np.uint64), agent, round).uniform()[:, 0].tolist()
    assert draw_all(seed, items, [agent], [round]).tolist() == expected
    assert all(0 <= number < 1 for number in expected)


def test_draws_golden():
    draws = Draws(1, np.array([2], np.uint64), agent=3, round=4)
    # Whole multiples of 2**-32: exact.
    assert [draws.uniform().item() for _ in range(3)] == [0.7945712627843022, 0.8151352787390351, 0.026458924170583487]


def bins(numbers, count):
    return (np.asarray(numbers) * count).astype(int)


def together(first, second, count=16):
    """The chance of a table as uneven as this one, were the two uniform and independent."""
    cells = np.bincount(bins(first, count) * count + bins(second, count), minlength=count**2)
    return stats.chisquare(cells).pvalue


@pytest.mark.parametrize(("seed", "agent", "round"), [(0, 0, 1), (1, 0, 1), (7, 11, 20), (2**63, 999_999, 3)])
def test_uniform_over_items(seed, agent, round):
    numbers = Draws(seed, np.arange(20_000, dtype=np.uint64), agent, round).uniform()[:, 0]
    assert stats.chisquare(np.bincount(bins(numbers, 100), minlength=100)).pvalue > SIGNIFICANCE


def test_uniform_over_agents_rounds_and_seeds():
    for numbers in (
        draw_all(0, [0], np.arange(50_000), np.array([1])),
        draw_all(0, [0], np.array([0]), np.arange(50_000)),
        draw_all(0, [2**40], np.arange(200)[:, None], np.arange(250)).ravel(),
        np.array([Draws(seed, np.zeros(1, np.uint64), 0, 1).uniform().item() for seed in range(10_000)]),
    ):
        assert stats.chisquare(np.bincount(bins(numbers, 100), minlength=100)).pvalue > SIGNIFICANCE


SENDERS = [(0, 1), (1, 1), (2, 1), (3, 1), (0, 2), (1, 2), (0, 20), (1000, 1), (1, 0)]


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(SENDERS, 2)))
def test_two_senders_are_independent(one, other):
    items = np.arange(60_000)
    draws = [draw_all(3, items, [agent], [round]) for agent, round in (one, other)]
    assert together(*draws) > SIGNIFICANCE


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations([0, 1, 2, 3, 256, 2**32, 2**63], 2)))
def test_two_items_are_independent(one, other):
    agents, rounds = np.arange(300)[:, None], np.arange(200)
    draws = [draw_all(3, [item], agents, rounds).ravel() for item in (one, other)]
    assert together(*draws) > SIGNIFICANCE


@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 2), (0, 2**63), (5, child(5, 0))])
def test_two_seeds_are_independent(one, other):
    items, agents = np.arange(5000)[:, None], np.arange(12)
    draws = [draw_all(seed, items, agents, [1]).ravel() for seed in (one, other)]
    assert together(*draws) > SIGNIFICANCE


def test_successive_draws_of_one_agent_are_independent():
    draws = Draws(0, np.arange(20_000, dtype=np.uint64), 4, 1)
    assert together(draws.uniform()[:, 0], draws.uniform()[:, 0], count=10) > SIGNIFICANCE


def test_coordinates_are_independent_and_the_first_is_that_of_one():
    ids = np.arange(20_000, dtype=np.uint64)
    three = Draws(0, ids, 4, 1).uniform(3)
    np.testing.assert_array_equal(three[:, :1], Draws(0, ids, 4, 1).uniform())
    for a, b in itertools.combinations(range(3), 2):
        assert together(three[:, a], three[:, b], count=10) > SIGNIFICANCE


def test_draws_of_some_items_go_on_where_all_were():
    draws = Draws(3, np.arange(5, dtype=np.uint64), 1, 2)
    draws.uniform()
    some = draws.take(np.array([True, False, False, True, False]))
    np.testing.assert_array_equal(some.uniform(2), draws.uniform(2)[[0, 3]])


def test_low_bits_are_as_random_as_high_ones():
    words32 = (draw_all(0, np.arange(50_000), [5], [1]) * 2.0**32).astype(np.uint32)
    ones = [int(((words32 >> np.uint32(bit)) & 1).sum()) for bit in range(32)]
    low, high = stats.binom.interval(1 - SIGNIFICANCE, 50_000, 0.5)
    assert all(low <= count <= high for count in ones)


def test_item_numbers_may_use_all_64_bits():
    assert item_ids([2**63, 1], 2).tolist() == [2**63, 1]
    assert item_ids(np.array([2**64 - 1], np.uint64), 1).tolist() == [2**64 - 1]
    assert len(item_ids(["\ud800"], 1)) == 1
