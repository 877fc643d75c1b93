"""Every method on scores of several classes: against brute force, other libraries, and two classes as vectors."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from collegium import agents, fusion, policy, protocol, topology
from collegium.agents import MicroCNN, PixelLogistic, Scores, TorchModel, Training
from collegium.data import Dataset
from collegium.errors import ModelError, ScoreError
from collegium.fusion.adaboost import boost
from collegium.fusion.simplex import _minimise, _Problem, _rows
from collegium.fusion.vote import _most_named
from collegium.tuning._border import Border, Branch, Server, complete
from helpers import score_record
from tiny_data import real_data

K, C = 6, 4
RING = policy.metropolis(topology.ring(K))
QUICK = Training(learning_rate=0.01, batch_size=16, max_epochs=6, patience=3)


def record_of_classes(N=400, M=300, n=500, seed=0) -> Scores:
    """Agents of different strength, scale and offset: the true entry is larger, one agent knows next to nothing."""
    rng = np.random.default_rng(seed)
    strength, scale = np.array([0.1, 0.5, 0.8, 1.0, 1.3, 1.6]), rng.uniform(0.5, 2.0, K)
    offset = rng.normal(0, 0.4, (K, C))
    parts, labels = [], []
    for count in (N, M, n):
        y = rng.integers(C, size=count)
        f = np.eye(C)[y][:, None] * strength[:, None] + 0.4 * rng.normal(size=(count, 1, C))
        f = scale[:, None] * (f + rng.normal(size=(count, K, C)) + offset)
        parts.append(f - f.mean(axis=2, keepdims=True))
        labels.append(y)
    return Scores(*parts, *labels)


@pytest.fixture(scope="module")
def record():
    return record_of_classes()


SCORE_METHODS = [
    fusion.NonCooperative(),
    fusion.AvgStat(),
    fusion.Vote(),
    fusion.LearnedFusion(),
    fusion.SimplexFusion(),
    fusion.AdaBoost(),
    fusion.Ours(RING, 20),
    fusion.Ours(RING, 20, center=False),
    fusion.Ours(RING, 20, protocol.SocialLearning()),
    fusion.LogOddsSum(),
    fusion.Stacking(LogisticRegression()),
]


@pytest.mark.parametrize("method", SCORE_METHODS, ids=lambda one: f"{one.name} {getattr(one, 'center', '')}")
def test_every_method_on_scores(method, record):
    method.fit(record)
    decision = method.decide(record.test)
    deciders = K if isinstance(method, fusion.NonCooperative | fusion.Ours) else 1
    assert decision.statistics.shape == (500, deciders, C)
    np.testing.assert_allclose(decision.statistics.sum(axis=2), 0, atol=1e-9)
    labels = method.predict(record.test)
    assert labels.shape == ((500, K) if deciders > 1 else (500,))
    assert set(np.unique(labels)) <= set(range(C))
    # Where nothing ties, the error is that of the labels.
    error = (labels.reshape(500, -1) != record.y_test[:, None]).mean()
    assert decision.error(record.y_test) == pytest.approx(error)
    assert error < 0.75
    for some in (record.test[:0], record.test[:7]):  # an item's decision does not depend on the company
        np.testing.assert_allclose(
            method.decide(some).statistics, decision.statistics[: len(some)], rtol=1e-9, atol=1e-9
        )


def test_what_each_method_sends(record):
    number = 64 * (C - 1)
    sent = {
        "Non-cooperative": (0, 0),
        "Avg-stat": (K, K * number),
        "Vote": (K, 2 * K),
        "Learned fusion": (K, K * number),
        "AdaBoost": (K, 2 * K),
        "Ours": (20 * RING.links, 20 * RING.links * number),
    }
    for method in SCORE_METHODS:
        if method.name in sent:
            decision = method.fit(record).decide(record.test)
            assert (decision.transmissions == sent[method.name][0]).all()
            assert (decision.bits == sent[method.name][1]).all()
    for learned in (fusion.LearnedFusion(), fusion.SimplexFusion(), fusion.Stacking(LogisticRegression())):
        assert learned.fit(record).training_transmissions_ == K * len(record.val)
    coarse = fusion.Ours(RING, 5, protocol.Quantised(protocol.DeGroot(), bits=4, bound=20.0)).fit(record)
    assert (coarse.decide(record.test).bits == 5 * RING.links * 4 * (C - 1)).all()


def test_average_and_ours_agree_where_communication_suffices(record):
    c = record.statistics("test")
    average = fusion.AvgStat().fit(record).decide(record.test)
    np.testing.assert_allclose(average.statistics[:, 0], c.mean(axis=1), atol=1e-12)
    ours = fusion.Ours(RING, 200).fit(record).decide(record.test)
    np.testing.assert_allclose(ours.statistics, np.repeat(average.statistics, K, axis=1), atol=1e-9)
    assert fusion.NonCooperative().fit(record).decide(record.test).statistics is not c
    np.testing.assert_array_equal(fusion.NonCooperative().fit(record).decide(record.test).statistics, c)


# The vote


@pytest.mark.parametrize("chair", [0, 2])
def test_votes_are_counted_by_hand(chair):
    rng = np.random.default_rng(1)
    labels = rng.integers(-1, C, size=(2000, K))  # -1: abstains
    votes = np.where(labels[:, :, None] == np.arange(C), 1.0, 0.0)
    fused = _most_named(votes, chair)
    np.testing.assert_allclose(fused.sum(axis=1), 0, atol=1e-12)
    ties = 0
    for named, found in zip(labels, fused, strict=True):
        counts = [int((named == c).sum()) for c in range(C)]
        leading = [c for c in range(C) if counts[c] == max(counts)]
        if len(leading) == 1:
            winner = leading[0]
        else:
            ties += 1
            order = [*named[chair:], *named[:chair]]
            winner = next((c for c in order if c in leading), None)
        if winner is None:
            assert found.max() == found.min()  # all abstained: nobody has decided
        else:
            assert found.argmax() == winner
            assert (found == found.max()).sum() == 1
    assert ties > 300


def test_two_classes_vote_alike_as_vectors():
    rng = np.random.default_rng(2)
    signs = rng.choice([-1.0, 1.0], (500, K))
    votes = np.stack([signs > 0, signs < 0], axis=2).astype(float)
    fused = _most_named(votes, 3)
    binary = signs.sum(axis=1) + signs[:, 3] / 2
    np.testing.assert_array_equal(np.sign(fused[:, 0] - fused[:, 1]), np.sign(binary))


def test_an_agent_of_two_minds_abstains(record):
    vote = fusion.Vote(center=False).fit(record)
    undecided = np.zeros((1, K, C))
    assert vote.decide(undecided).error([0]) == 1
    undecided[0, 0] = [3.0, 3.0, -3.0, -3.0]  # not a vote for each of the two
    undecided[0, 4] = [-1.0, -1.0, 3.0, -1.0]
    assert vote.predict(undecided).tolist() == [2]
    assert vote.decide(undecided).error([2]) == 0


# Learned rules


@pytest.mark.parametrize("ridge", [0.3, 3.0])
def test_learned_fusion_minimises_what_it_says(ridge, record):
    method = fusion.LearnedFusion(ridge=ridge).fit(record)
    c, y = record.statistics("val"), record.y_val
    x = c.reshape(len(c), -1)
    spread = x.std(axis=0)

    def loss(p):
        w, b = p[: C * K * C].reshape(C, K * C), p[C * K * C :]
        u = x @ (w / spread).T + b
        return -log_softmax(u, axis=1)[np.arange(len(y)), y].sum() + ridge / 2 * (w**2).sum()

    own = np.concatenate([(method.weights_.reshape(C, -1) * spread).ravel(), method.bias_])
    slope = [(loss(own + 1e-5 * e) - loss(own - 1e-5 * e)) / 2e-5 for e in np.eye(len(own))]
    assert np.abs(slope).max() < 1e-3
    u = x @ method.weights_.reshape(C, -1).T + method.bias_
    np.testing.assert_allclose(
        method._fuse(c), u - u.mean(axis=1, keepdims=True), atol=1e-9
    )  # what is decided by is what was fitted


def test_simplex_finds_the_smallest_cross_entropy(record):
    method = fusion.SimplexFusion().fit(record)
    c, y = record.statistics("val"), record.y_val

    def loss(w):
        u = np.einsum("nkc,k->nc", c, w)
        return float((logsumexp(u, axis=1) - u[np.arange(len(y)), y]).mean())

    free = minimize(
        lambda v: loss(np.exp(v - logsumexp(v))), np.zeros(K), method="Nelder-Mead",
        options={"maxiter": 20_000, "xatol": 1e-9, "fatol": 1e-13},
    )  # fmt: skip
    assert loss(method.weights_) <= free.fun + 1e-7
    assert loss(method.weights_) == pytest.approx(free.fun, abs=1e-5)
    assert method.weights_.sum() == pytest.approx(1)
    assert (method.weights_ >= 0).all()
    assert loss(method.weights_) - free.fun <= method.gap_ + 1e-12


def test_simplex_of_two_classes_as_vectors():
    scores = score_record()
    c, y = scores.statistics("val"), scores.y_val
    binary = fusion.SimplexFusion().fit(scores)
    leads = (c * y[:, None])[:, :, None]
    vectors = np.stack([c / 2, -c / 2], axis=2)
    both = _Problem(_rows(leads), _rows(vectors), 1, 2)
    np.testing.assert_allclose(_minimise(both, 1e-8, 50_000)[0], binary.weights_, atol=1e-5)
    one = _Problem(c * y[:, None], c * y[:, None], 1, 4)
    np.testing.assert_allclose(both.curvature(), one.curvature(), rtol=1e-9)


def test_the_curvature_of_the_simplex_problem_is_a_bound():
    rng = np.random.default_rng(3)
    problem = _Problem(rng.normal(size=(40 * 3, 5)), np.empty((0, 5)), 3, 2)
    entries = np.zeros((40, 4, 5))
    entries[:, 1:] = -problem.leads.reshape(40, 3, 5)  # the true class's entry is 0
    entries -= entries.mean(axis=1, keepdims=True)
    problem = problem._replace(entries=entries.reshape(-1, 5))
    for _ in range(20):
        w = rng.normal(size=5)
        H = np.array([(problem.slope(w + 1e-6 * e) - problem.slope(w - 1e-6 * e)) / 2e-6 for e in np.eye(5)])
        assert np.linalg.eigvalsh(np.diag(problem.curvature()) - (H + H.T) / 2).min() > -1e-6


def test_stacking_is_the_estimator_itself(record):
    near = KNeighborsClassifier(9)
    method = fusion.Stacking(near).fit(record)
    x = record.statistics("val").reshape(-1, K * C)
    expected = near.fit(x, record.y_val).predict_proba(record.statistics("test").reshape(-1, K * C))
    found = method.decide(record.test).statistics[:, 0]
    clear = np.sort(expected, axis=1)[:, -1] > np.sort(expected, axis=1)[:, -2]
    np.testing.assert_array_equal(found.argmax(axis=1)[clear], expected.argmax(axis=1)[clear])
    assert fusion.Stacking().fit(record).decide(record.test).error(record.y_test) < 0.5  # support vectors unless told


# AdaBoost and naive Bayes


def test_samme_by_hand(record):
    method = fusion.AdaBoost().fit(record)
    D = np.full(len(record.train), 1 / len(record.train))
    for k in range(K):
        wrong = record.train[:, k].argmax(axis=1) != record.y_train
        error = D[wrong].sum()
        alpha = np.log((1 - error) / error) + np.log(C - 1)  # of SAMME; here half of it
        assert method.alpha_[k] == pytest.approx(alpha / 2)
        D = D * np.exp(alpha * wrong)
        D /= D.sum()
    named = record.test.argmax(axis=2)
    sums = np.array([[method.alpha_[row == c].sum() for c in range(C)] for row in named])
    np.testing.assert_allclose(
        method.decide(record.test).statistics[:, 0], sums - sums.mean(axis=1, keepdims=True), atol=1e-12
    )


def test_chance_has_no_say_and_two_classes_are_as_before():
    right = np.arange(12) < 3  # one in four, of four classes
    error, alpha, after = boost(np.full(12, 1 / 12), np.where(right, 1.0, -1.0), 4)
    assert error == pytest.approx(0.75)
    assert alpha == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(after, 1 / 12)
    assert boost(np.full(12, 1 / 12), np.where(right, 1.0, -1.0), 2)[1] == pytest.approx(0.5 * np.log(1 / 3))


def test_log_odds_are_the_posterior_of_independent_views():
    """Symbols drawn independently given the class, agents that know their own posterior: the sum is the joint one."""
    rng = np.random.default_rng(4)
    prior = np.array([0.5, 0.3, 0.2])
    laws = rng.dirichlet(np.ones(5), size=(4, 3))  # [agent, class, symbol]
    N = 30_000
    y = rng.choice(3, N, p=prior)
    seen = np.stack([(laws[k].cumsum(axis=1)[y] < rng.random((N, 1))).sum(axis=1) for k in range(4)], axis=1)
    share = (np.bincount(y) + 1) / (N + 3)
    own = np.stack([np.log(laws[k][:, seen[:, k]].T * share) for k in range(4)], axis=1)
    own -= own.mean(axis=2, keepdims=True)
    scores = Scores(own, own[:300], own[:500], y, y[:300], y[:500])
    found = fusion.LogOddsSum(calibrate=False).fit(scores).decide(own[:500]).statistics[:, 0]
    joint = np.log(share) + sum(np.log(laws[k][:, seen[:500, k]].T) for k in range(4))
    np.testing.assert_allclose(found, joint - joint.mean(axis=1, keepdims=True), atol=1e-9)


# Methods that need views


def tiny_images(n, agents_, seed=0):
    """Noisy 8×8 pictures of three classes: brighter in the upper, the middle or the lower third."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    bands = np.array([[60, 60, 60, 0, 0, 0, 0, 0], [0, 0, 0, 60, 60, 0, 0, 0], [0, 0, 0, 0, 0, 60, 60, 60]])
    views = [np.clip(80 + bands[y][:, :, None] + rng.normal(0, 40, (n, 8, 8)), 0, 255) for _ in range(agents_)]
    return Dataset(
        [view.astype(np.uint8) for view in views],
        y,
        ("up", "middle", "down"),
        tuple(f"eye {k}" for k in range(agents_)),
    )


@pytest.fixture(scope="module")
def tiny():
    train, test = tiny_images(180, 3), tiny_images(90, 3, seed=1)
    return train, test, agents.train(train, test, LogisticRegression(max_iter=1000), seed=0)


def test_derivatives_through_the_border_are_those_of_one_graph():
    train = tiny_images(24, 3)
    still = Training(learning_rate=1e-30)
    branches = [Branch(PixelLogistic(random_state=k), view, view[:6], still, 3) for k, view in enumerate(train.views)]
    server, border = Server(train.y, train.y[:6], 3, still, 3), Border()
    with torch.no_grad():
        server.w.copy_(torch.tensor([1.5, -0.5, 2.0]))
        server.b.copy_(torch.tensor([0.3, -0.1, 0.2]))
    rows = torch.arange(24)
    said = border.cross(torch.stack([branch.speak(rows) for branch in branches], dim=1))
    assert said.shape == (24, 3, 2)
    loss, derivatives = server.learn(said, rows)
    for branch, own in zip(branches, border.cross(derivatives).unbind(1), strict=True):
        branch.learn(own)
    assert border.crossed == 24 * 3 * 2 * 2
    parts = [*(branch.network for branch in branches), server]
    found = [weight.grad.clone() for part in parts for weight in part.parameters()]
    for part in parts:
        part.zero_grad()
    x = [branch.model.prepare(branch.network, view) for branch, view in zip(branches, train.views, strict=True)]
    logits = torch.stack([branch.network(one) for branch, one in zip(branches, x, strict=True)], dim=1)
    whole = F.cross_entropy(server.b + torch.einsum("nkc,k->nc", logits, server.w), torch.tensor(train.y.tolist()))
    whole.backward()  # logits as they are: a common offset of all classes changes nothing
    assert loss == pytest.approx(float(whole.detach()), rel=1e-5)
    for one, other in zip(found, [weight.grad for part in parts for weight in part.parameters()], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(complete(said).sum(dim=2), torch.zeros(24, 3), atol=1e-5, rtol=0)


def test_vfl_jt_learns_and_counts(tiny):
    train, test, scores = tiny
    method = fusion.VFLJT(PixelLogistic(training=QUICK), workers=1).fit(scores, train)
    decision = method.decide(test.views)
    assert decision.statistics.shape == (90, 1, 3)
    assert decision.error(test.y) < 0.2
    assert method.training_transmissions_ == 3 * method.epochs_ * (2 * len(scores.train) + len(scores.val))
    assert (decision.transmissions == 3).all()
    assert (decision.bits == 3 * 2 * 64).all()
    s = np.stack([model.scores(view) for model, view in zip(method.models_, test.views, strict=True)], axis=1)
    u = np.einsum("nkc,k->nc", s, method.weights_) + method.bias_
    np.testing.assert_allclose(decision.statistics[:, 0], u - u.mean(axis=1, keepdims=True), atol=1e-9)


def test_oracles_and_boosted_models(tiny):
    train, test, scores = tiny
    rows = [
        fusion.evaluate(method, scores, train, test)
        for method in (
            fusion.CentralOracle(LogisticRegression(max_iter=1000)),
            fusion.AdaBoost(LogisticRegression(max_iter=1000)),
            fusion.AdaBoost(KNeighborsClassifier(5)),  # which cannot weigh items: they are drawn
        )
    ]
    assert all(row.error < 0.2 for row in rows)
    assert [row.bits for row in rows] == [3 * 64 * 8, 6, 6]


def test_the_multi_view_oracle(tiny):
    train, test, _ = tiny
    scores = agents.train(train, test, MicroCNN(channels=4, training=QUICK), seed=0, workers=1)
    oracle = fusion.MultiViewOracle(hidden=8, training=QUICK, workers=1).fit(scores, train)
    decision = oracle.decide(test.views)
    assert decision.statistics.shape == (90, 1, 3)
    np.testing.assert_allclose(decision.statistics.sum(axis=2), 0, atol=1e-6)
    assert decision.error(test.y) < 0.4
    assert oracle.decide([view[:0] for view in test.views]).statistics.shape == (0, 1, 3)


def test_all_methods_in_one_table(tiny):
    train, test, scores = tiny
    network = policy.metropolis(topology.ring(3))
    methods = fusion.all_methods(
        network, 10, model=LogisticRegression(max_iter=1000), branch=PixelLogistic(training=QUICK),
        oracle=fusion.CentralOracle(LogisticRegression(max_iter=1000)), workers=1,
    )  # fmt: skip
    results = [fusion.evaluate(method, scores, train, test) for method in methods]
    rows = fusion.summarise([results])
    assert [row.method for row in rows] == [method.name for method in methods]
    assert all(0 <= row.error < 0.4 for row in rows)
    errors = {row.method: row.error for row in rows}
    assert errors["Avg-stat"] <= errors["Non-cooperative"]


# What is refused

REFUSED = {
    "four for three": (
        lambda r: fusion.AvgStat().fit(r).decide(np.zeros((2, K, 3))),
        ScoreError,
        "fitted on scores of 4 classes; these are of 3",
    ),
    "two for four": (lambda r: fusion.AvgStat().fit(r).decide(np.zeros((2, K))), ScoreError, "these are of two"),
    "boosted": (lambda r: fusion.AdaBoost().fit(r).decide(np.zeros((2, K))), ScoreError, "these are of two"),
    "four for two": (
        lambda r: fusion.AvgStat().fit(score_record(K=K)).decide(r.test),
        ScoreError,
        "for two classes, one number",
    ),
    "a class is missing": (
        lambda r: fusion.LearnedFusion().fit(
            Scores(r.train, r.val[r.y_val != 2], r.test, r.y_train, r.y_val[r.y_val != 2], r.y_test)
        ),
        ScoreError,
        "every class; there are none of class 2",
    ),
    "labels": (
        lambda r: fusion.AvgStat().fit(r).decide(r.test).error([9] * len(r.test)),
        Exception,
        "label 9 of item 0 is none of",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_mistakes_are_named(name, record):
    call, kind, sentence = REFUSED[name]
    with pytest.raises(kind, match=sentence):
        call(record)


def test_a_branch_with_too_few_outputs(tiny):
    train, _, scores = tiny
    flat = TorchModel(lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 2)), training=QUICK)
    with pytest.raises(ModelError, match="3 classes must have as many outputs"):
        fusion.VFLJT(flat, workers=1).fit(scores, train)


# Real scores


@pytest.mark.data
@pytest.mark.parametrize(("name", "learned"), [("wall-robot-0", 0.02), ("multiple-features-0", 0.02)])
def test_real_scores(name, learned):
    scores = Scores.load(real_data("records") / "records" / f"{name}.npz")
    ring = policy.metropolis(topology.ring(scores.size))
    errors = {method.name: fusion.evaluate(method, scores).error for method in fusion.all_methods(ring, 300)}
    alone = errors["Non-cooperative"]
    assert all(error < alone for method, error in errors.items() if method != "Non-cooperative")
    assert errors["Ours"] == pytest.approx(errors["Avg-stat"], abs=0.005)  # a doubly stochastic ring tends to the mean
    assert errors["Learned fusion"] < learned
    assert errors["Stacking"] < learned
    assert errors["Learned fusion"] < errors["Learned simplex fusion"] < errors["Vote"]
