"""Noise at the start, what it costs, the ledger, and masks: against OpenDP, closed forms and statistics."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

import collegium
from collegium import check_codec, policy, topology, trust
from collegium._util.randomness import Draws
from collegium.errors import InputFileError, LiveError, RuleError, ScoreError
from collegium.live import folder
from collegium.protocol import Averaging, registry
from collegium.protocol.codec import LaplaceOnce
from collegium.protocol.trigger import Delta, LabelStable
from collegium.trust import masks

dp = pytest.importorskip("opendp.prelude", reason="OpenDP is not installed")


@pytest.mark.parametrize(("epsilon", "bound", "width"), [(1.0, 1.0, 1), (0.3, 2.0, 1), (4.0, 0.5, 3)])
def test_opendp_gives_the_same_epsilon_for_our_scale(epsilon, bound, width):
    """Two scores of `width` numbers within ±bound are at most 2 · bound · width apart, entry by entry."""
    dp.enable_features("contrib")
    codec = LaplaceOnce(epsilon, bound)
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    laplace = dp.m.make_laplace(*space, scale=codec.scale(width))
    assert laplace.map(2 * bound * width) == pytest.approx(epsilon, rel=1e-9)


def test_no_output_is_more_than_e_to_the_epsilon_times_as_likely():
    """Of the two scores that are farthest apart: counts of outputs in bins, with the 99.99 % interval of each."""
    codec, n = LaplaceOnce(1.0, 1.0), 400_000
    ids = np.arange(n, dtype=np.uint64)
    low, high = (codec.encode(np.full((n, 1), x), Draws(s, ids, 0, 1))[:, 0] for s, x in ((1, -1.0), (2, 1.0)))
    edges = np.r_[-np.inf, np.linspace(-6, 6, 25), np.inf]
    p, q = (np.histogram(one, edges)[0] / n for one in (low, high))
    room = 3.9 * np.sqrt(p / n + (np.e**2) * q / n)
    assert (p <= np.e * q + room).all()
    assert (q <= np.e * p + 3.9 * np.sqrt(q / n + (np.e**2) * p / n)).all()
    assert p[0] > 0.9 * np.e * q[0]  # and no more noise than needed


def test_variance_is_that_of_the_theory():
    for epsilon, K in ((1.0, 12), (4.0, 6)):
        n = 4000
        scores = np.tanh(np.random.default_rng(0).normal(size=(n, K)))
        rule = Averaging(codec=LaplaceOnce(epsilon, 1.0))
        run = collegium.collaborate(scores, policy.uniform(topology.complete(K)), 5, rule, rng=3)
        noise = run.statistics[-1][:, 0] - scores.mean(axis=1)
        wanted = collegium.theory.laplace_variance(epsilon, 1.0, K)
        assert wanted == 8 / (epsilon**2 * K)
        # the variance of a sample variance with the kurtosis of a mean of K Laplace variables, 3 + 3/K
        assert abs(noise.var() / wanted - 1) < 3.9 * np.sqrt((2 + 3 / K) / n)
        assert abs(noise.mean()) < 3.9 * np.sqrt(wanted / n)


def test_later_messages_are_made_of_sent_ones_alone():
    """Two agents with other scores that sent the same in round 1 send the same ever after."""
    seen = {}

    class Recorder(LaplaceOnce):
        def encode(self, values, draws):
            codes = super().encode(values, draws)
            if draws.round == 1:
                codes = codes if draws.agent else np.full_like(codes, 0.25)  # what agent 0 is seen to send
            seen.setdefault(self.epsilon, []).append(codes.copy())
            return codes

    for trigger in (None, Delta(0.05)):
        runs = []
        for score in (-1.0, 1.0):
            seen.clear()
            parts = {} if trigger is None else {"trigger": trigger}
            scores = np.array([[score, 0.3, -0.2, 0.9]])
            collegium.collaborate(
                scores, policy.uniform(topology.ring(4)), 6, Averaging(codec=Recorder(1.0, 1.0), **parts)
            )
            runs.append(np.concatenate([one.ravel() for one in seen[1.0]]))
        np.testing.assert_array_equal(*runs)


def test_what_would_tell_is_refused(tmp_path):
    codec = LaplaceOnce(1.0, 1.0)
    with pytest.raises(RuleError, match="silence"):
        Averaging(codec=codec, trigger=LabelStable(1, 0.0))
    with pytest.raises(ScoreError, match="up to 1"):
        collegium.collaborate([[1.5, 0.0]], policy.uniform(topology.complete(2)), 1, Averaging(codec=codec))
    settings = folder.NetworkSettings(budget=3.0)
    with pytest.raises(LiveError, match="for rules that add noise"):
        folder.create(tmp_path / "net", policy.uniform(topology.ring(3)), settings=settings)
    assert registry.from_text(registry.to_text(codec), "codec") == codec
    assert any("skipped, it adds noise" in one for one in check_codec(codec))


def test_a_ledger_survives_and_refuses(tmp_path):
    ledger = trust.Ledger(1.0)
    for _ in range(10):
        ledger.charge(0.1, "ann")
    ledger.charge(0.7, "bob")
    with pytest.raises(trust.BudgetExceeded, match="beyond the budget of 1"):
        ledger.charge(0.01, "ann")
    ledger.save(tmp_path / "ledger.json")
    again = trust.Ledger.load(tmp_path / "ledger.json")
    assert again.left("bob") == pytest.approx(0.3)
    with pytest.raises(trust.BudgetExceeded):
        again.charge(0.31, "bob")
    (tmp_path / "ledger.json").write_text("{}")
    with pytest.raises(InputFileError, match="no ledger"):
        trust.Ledger.load(tmp_path / "ledger.json")


def test_a_ledger_gives_nothing_back():
    ledger = trust.Ledger(1.0)
    ledger.charge(0.4)
    for wrong in (-1, 0.5, "2"):
        with pytest.raises(RuleError, match="how many items are booked must be a whole number"):
            ledger.charge(0.1, items=wrong)
    with pytest.raises(RuleError, match="a subject is a text, got 3"):
        ledger.charge(0.1, subject=3)
    assert ledger.spent == {"": 0.4}


def network(K):
    private = [X25519PrivateKey.generate() for _ in range(K)]
    public = {k: key.public_key() for k, key in enumerate(private)}
    return [masks.pair_secrets(k, private[k], public) for k in range(K)]


def test_masks_hide_the_score_and_keep_the_average():
    K, n = 5, 4000
    secrets, items = network(K), list(range(n))
    assert secrets[1][3] == secrets[3][1]
    scores = np.tanh(np.random.default_rng(0).normal(size=(n, K)))
    sent = {k: masks.masked(k, scores[:, k], secrets[k], items) for k in range(K)}
    np.testing.assert_allclose(masks.average(sent, K)[:, 0], scores.mean(axis=1), rtol=0, atol=1e-9)
    for k in range(K):  # what a neighbour sees in round 1, and what it hides
        assert abs(np.corrcoef(sent[k][:, 0], scores[:, k])[0, 1]) < 3.9 / np.sqrt(n)
        counts = np.histogram(sent[k], np.linspace(0, masks.MODULUS, 17))[0]
        assert ((counts - n / 16) ** 2 / (n / 16)).sum() < 44.3  # chi-squared, 15 degrees, 1e-4
    assert abs(np.corrcoef(scores[:, 0] + 0.01 * sent[0][:, 0] / masks.MODULUS, scores[:, 0])[0, 1]) > 0.9


def test_a_missing_agent_is_taken_out_or_the_items_are_refused():
    K, items = 6, [7, 9, 11]
    secrets, scores = network(K), np.random.default_rng(1).normal(size=(3, K, 2))
    sent = {k: masks.masked(k, scores[:, k], secrets[k], items) for k in range(K) if k not in (2, 4)}
    with pytest.raises(RuleError, match="agent 2 is missing and agent 0 has not revealed"):
        masks.average(sent, K)
    shares = {gone: {k: masks.masks(k, {gone: secrets[k][gone]}, items, 2) for k in sent} for gone in (2, 4)}
    got = masks.average(sent, K, shares)
    np.testing.assert_allclose(got, scores[:, [0, 1, 3, 5]].mean(axis=1), rtol=0, atol=1e-9)
    with pytest.raises(RuleError, match="reveals too much"):
        masks.average({0: sent[0], 1: sent[1]}, K)
    with pytest.raises(RuleError, match="serve once"):
        masks.masked(0, [1.0, 2.0], secrets[0], [5, 5])
    with pytest.raises(ScoreError, match="must be below"):
        masks.masked(0, [9000.0], secrets[0], [5])
    with pytest.raises(RuleError, match="2 items and 1 rows"):
        masks.masked(0, [1.0], secrets[0], [5, 6])
    with pytest.raises(RuleError, match="1 items and 2 rows"):  # both would have the same masks
        masks.masked(0, [1.0, 2.0], secrets[0], [5])
    for wrong in ([-1], ["a"], [0.5]):
        with pytest.raises(RuleError, match="items are whole numbers"):
            masks.masked(0, [1.0], secrets[0], wrong)
    with pytest.raises(RuleError, match="agent 9 has no masks here"):
        masks.average({**sent, 9: sent[0]}, K, shares)
