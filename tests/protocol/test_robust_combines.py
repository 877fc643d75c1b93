"""Robust combines against plain Python item by item, against liars, and on networks too thin for them."""

import numpy as np
import pytest

import collegium
from collegium import check_combine, check_rule, policy, protocol, topology
from collegium.errors import RuleError
from collegium.protocol import Averaging, Quantised, Robust, registry
from collegium.protocol.combine import (
    Clipped,
    MeanSubsequence,
    Median,
    NearestNeighbours,
    OutlierScissor,
    SelfCentred,
    TrimmedMean,
    WeightedMean,
)
from collegium.protocol.trigger import Delta

COMBINES = [
    TrimmedMean(1),
    TrimmedMean(2),
    Median(),
    Clipped(),
    Clipped(0.4),
    SelfCentred(1),
    SelfCentred(2),
    NearestNeighbours(1),
    NearestNeighbours(3),
    MeanSubsequence(1),
    MeanSubsequence(2),
    OutlierScissor(1),
    OutlierScissor(2),
]


def away(x, y):
    """The distance of two messages whose left-out last entry makes the sum zero."""
    difference = [a - b for a, b in zip(x, y, strict=True)]
    return float(np.linalg.norm(difference if len(difference) == 1 else [*difference, -sum(difference)]))


def mean(pairs, own):
    total = sum(weight for weight, _ in pairs)
    return np.sum([weight * np.asarray(x) for weight, x in pairs], axis=0) / total if pairs else np.asarray(own)


def by_entry(function):
    return lambda pairs, own, f: np.array(
        [function([(weight, x[j]) for weight, x in pairs], own[j], f) for j in range(len(own))]
    )


def trimmed(pairs, own, f):
    return mean(sorted(pairs, key=lambda pair: pair[1])[f : len(pairs) - f] if len(pairs) > 2 * f else [], own)


def middle(pairs, own, f):
    return np.median([x for _, x in pairs])


def subsequence(pairs, own, F):
    above = sorted((pair for pair in pairs if pair[1] > own), key=lambda pair: pair[1])
    below = sorted((pair for pair in pairs if pair[1] < own), key=lambda pair: pair[1])
    same = [pair for pair in pairs if pair[1] == own]
    return mean(above[: max(len(above) - F, 0)] + below[F:] + same, own)


def clipped(pairs, own, tau):
    moved = np.array(own, float)
    for weight, x in pairs:
        far = away(x, own)
        moved += weight * (np.asarray(x) - own) * (1.0 if far <= tau else tau / far)
    return moved


def self_centred(pairs, own, b):
    far = sorted((away(x, own) for _, x in pairs), reverse=True)
    return clipped(pairs, own, far[2 * b] if len(far) > 2 * b else 0.0)


def nearest(pairs, own, b):
    kept = sorted(pairs, key=lambda pair: away(pair[1], own))[: len(pairs) - b] if len(pairs) > 2 * b else []
    return mean(kept, own)


def scissor(pairs, own, f):
    others = sorted(weight for weight, x in pairs if list(x) != list(own))
    if len(pairs) <= 3 * f or sum(others[-f:]) >= 1 / 3:
        return np.asarray(own)
    for _ in range(f):
        centre = mean(pairs, own)
        others = [pair for pair in pairs if list(pair[1]) != list(own)]
        farthest = max(others, key=lambda pair: away(pair[1], centre))
        pairs = [pair for pair in pairs if pair is not farthest]
    return mean(pairs, own)


def by_hand(combine, pairs, own):
    match combine:
        case TrimmedMean(f):
            return by_entry(trimmed)(pairs, own, f)
        case Median():
            return by_entry(middle)(pairs, own, 0)
        case MeanSubsequence(F):
            return by_entry(subsequence)(pairs, own, F)
        case Clipped(None):
            return clipped(pairs, own, sorted(away(x, own) for _, x in pairs)[len(pairs) // 2])
        case Clipped(tau):
            return clipped(pairs, own, tau)
        case SelfCentred(b):
            return self_centred(pairs, own, b)
        case NearestNeighbours(b):
            return nearest(pairs, own, b)
        case OutlierScissor(f):
            return scissor(pairs, own, f)


@pytest.mark.parametrize("combine", COMBINES, ids=str)
@pytest.mark.parametrize("width", [1, 3])
def test_each_equals_plain_python(combine, width):
    rng = np.random.default_rng(4)
    for m in (1, 2, 4, 7, 10):
        values = rng.normal(size=(m, 40, width)) * rng.choice([1.0, 9.0], size=(m, 40, 1))
        own = values[m // 2].copy()
        weights = rng.uniform(0.1, 1.0, (m, 40))
        if m > 2:
            weights[0, ::3] = weights[m - 1, ::4] = 0.0  # some did not come
        weights /= weights.sum(axis=0)
        got = combine(values, weights, own)
        for i in range(40):
            pairs = [(weights[l, i], values[l, i]) for l in range(m) if weights[l, i] > 0]
            np.testing.assert_allclose(got[i], by_hand(combine, pairs, own[i]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("combine", COMBINES, ids=str)
def test_the_checks_pass_and_text_is_read_back(combine):
    assert len(check_combine(combine)) == 9
    assert registry.from_text(registry.to_text(Robust(combine))) == Robust(combine)


@pytest.mark.parametrize("combine", [TrimmedMean(2), Median(), MeanSubsequence(2)], ids=str)
def test_no_liar_moves_it_out_of_the_honest_range(combine):
    """Whatever as many liars as it bears say, entry by entry."""
    rng = np.random.default_rng(0)
    m = combine.least + 1
    values = rng.normal(size=(m, 500, 2))
    liars = combine.bears(m)
    assert liars == 2 or isinstance(combine, Median)
    values[:liars] = rng.choice([-1e6, -1.0, 0.3, 1.0, 1e6], size=(liars, 500, 2))
    got = combine(values, np.full((m, 500), 1 / m), values[-1])
    honest = values[liars:]
    assert (got >= honest.min(axis=0) - 1e-12).all()
    assert (got <= honest.max(axis=0) + 1e-12).all()


@pytest.mark.parametrize(
    "combine", [Clipped(), SelfCentred(2), NearestNeighbours(2), OutlierScissor(2), TrimmedMean(2), Median()], ids=str
)
def test_no_liar_moves_it_farther_than_an_honest_value_is_away(combine):
    rng = np.random.default_rng(1)
    m = 9
    values = rng.normal(size=(m, 500, 3))
    values[:2] *= 10.0 ** rng.uniform(-2, 6, size=(2, 500, 1))
    own = values[-1]
    got = combine(values, np.full((m, 500), 1 / m), own)
    honest = np.array([[away(values[l, i], own[i]) for l in range(2, m)] for i in range(500)]).max(axis=1)
    moved = np.array([away(got[i], own[i]) for i in range(500)])
    assert (moved <= 2 * honest).all()
    plain = WeightedMean()(values, np.full((m, 500), 1 / m), own)
    assert max(away(plain[i], own[i]) for i in range(500)) > 1000


@pytest.mark.parametrize(
    "combine", [combine for combine in COMBINES if combine not in (Clipped(0.4), MeanSubsequence(1))], ids=str
)
@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("size", [1e160, 1e300])
def test_lies_too_large_to_be_squared_move_it_no_farther(combine, width, size):
    rng = np.random.default_rng(2)
    liars = min(combine.bears(9), 2)
    values = rng.normal(size=(9, 50, width))
    values[:liars] = size
    got = combine(values, np.full((9, 50), 1 / 9), values[-1])
    assert np.abs(got).max() <= 2 * np.abs(values[liars:]).max()


@pytest.mark.parametrize("combine", [combine for combine in COMBINES if combine != Clipped(0.4)], ids=str)
def test_a_liar_that_weighs_a_lot_moves_it_no_farther(combine):
    rng = np.random.default_rng(3)
    liars = min(combine.bears(9), 2)
    values = rng.normal(size=(9, 50, 1))
    values[:liars] = 1e6
    weights = np.full((9, 50), 0.1 / (9 - liars))
    weights[:liars] = 0.9 / liars
    assert np.abs(combine(values, weights, values[-1])).max() <= 2 * np.abs(values[liars:]).max()


def test_the_scissor_refuses_weights_that_liars_could_win_by():
    heavy = policy.Policy(np.full((4, 4), 0.5 / 3) + np.eye(4)[[1, 2, 3, 0]] * (0.5 - 0.5 / 3))
    with pytest.raises(RuleError, match=r"no 1 others have a third together, but agent 0 gives them 0[.]5"):
        collegium.collaborate(np.ones((1, 4)), heavy, 1, Robust(OutlierScissor(1)))


@pytest.mark.parametrize(
    ("combine", "least"),
    [
        (TrimmedMean(2), 5),
        (Median(), 3),
        (Clipped(), 3),
        (SelfCentred(1), 4),
        (NearestNeighbours(2), 5),
        (MeanSubsequence(1), 4),
        (OutlierScissor(1), 4),
    ],
    ids=str,
)
def test_networks_that_are_too_thin_are_refused(combine, least):
    enough, thin = topology.complete(least), topology.complete(least - 1)
    assert combine.least == least
    assert combine.bears(least) > 0
    collegium.collaborate(np.ones((1, least)), policy.uniform(enough), 1, Robust(combine))
    for rule in (Robust(combine), Averaging(combine, trigger=Delta(0.1)), Quantised(Robust(combine), 4, 2.0)):
        with pytest.raises(RuleError, match=rf"needs {least} values .* agent 0 has {least - 1}: add links"):
            collegium.collaborate(np.ones((1, least - 1)), policy.uniform(thin), 1, rule)


def test_a_network_where_agents_can_be_kept_apart_is_refused():
    """Two complete fours joined by a link each: everyone hears enough, but one liar keeps the halves apart."""
    links = [(i, j) for half in (0, 4) for i in range(half, half + 4) for j in range(half, i)]
    links += [(i, i + 4) for i in range(4)]
    graph = topology.Graph.from_links(8, *zip(*links, strict=True), undirected=True)
    with pytest.raises(RuleError, match=r"needs a network that is \(2, 2\)-robust"):
        collegium.collaborate(np.ones((1, 8)), policy.uniform(graph), 1, Robust(MeanSubsequence(1)))


def test_a_schedule_of_pairs_is_refused():
    pairs = collegium.schedule.pairwise(topology.complete(6), seed=1)
    with pytest.raises(RuleError, match="needs 3 values"):
        collegium.collaborate(np.ones((1, 6)), pairs, 5, Robust(Median()))


@pytest.mark.parametrize("combine", [Median(), TrimmedMean(1), Clipped(), OutlierScissor(1)], ids=str)
def test_the_rule_keeps_the_promises_of_rules(combine):
    check_rule(Robust(combine))


def test_robust_refuses_a_plain_mean():
    with pytest.raises(RuleError, match="bears no liar"):
        Robust(WeightedMean())
    for wrong in (lambda: TrimmedMean(0), lambda: Clipped(-1.0), lambda: SelfCentred(True)):
        with pytest.raises(RuleError, match="must be a"):
            wrong()


def test_lost_messages_leave_an_agent_with_its_own_value():
    """Of seven, four are cut off: three are too few for two liars."""
    links = collegium.links.Cut((0, 1, 2), 1, 2)
    scores = np.arange(7.0)[None]
    run = collegium.collaborate(scores, policy.uniform(topology.complete(7)), 1, Robust(TrimmedMean(2)), links=links)
    assert run.statistics[1, 0, 0] == 0.0
    assert run.statistics[1, 0, 5] == 5.0  # of four
    assert protocol.combine.TrimmedMean(2).bears(4) == 0
