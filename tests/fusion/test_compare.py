"""Evaluating, summarising, and the table of who must meet whom."""

import time

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from collegium import agents, data, policy, topology
from collegium.agents import PixelLogistic, Training
from collegium.errors import DataError, ScoreError
from collegium.fusion import (
    AvgStat,
    CentralOracle,
    NonCooperative,
    Result,
    Vote,
    all_methods,
    coordination_table,
    evaluate,
    summarise,
)
from helpers import score_record

# The paper's table of regimes, as it stands there; one row for each method where it joins two.
PAPER = {
    "Non-cooperative": ("None", "None", "None"),
    "Avg-stat": ("None", "None", "One-shot centralized averaging"),
    "Vote": ("None", "None", "One-shot centralized voting"),
    "Learned fusion": (
        "None",
        "Fusion rule fitted on aligned validation outputs",
        "One-shot centralized fusion",
    ),
    "Learned simplex fusion": (
        "None",
        "Fusion rule fitted on aligned validation outputs",
        "One-shot centralized fusion",
    ),
    "AdaBoost": ("Centralized", "Boosting-based fitting of local predictors", "One-shot weighted fusion"),
    "Ours": ("None", "None", "Iterative peer-to-peer scalar exchange"),
    "Ours (no centering)": ("None", "None", "Iterative peer-to-peer scalar exchange"),
    "VFL-JT": (
        "Joint training on aligned labeled samples",
        "Server-side fusion head learned jointly",
        "One-shot server fusion",
    ),
    "Central oracle": (
        "Centralized full-information training",
        "None",
        "Centralized full-information prediction",
    ),
}
DIGITS = policy.uniform(topology.erdos_renyi(9, links=24, seed=7))

QUICK = Training(learning_rate=0.02, batch_size=32, max_epochs=5)


def everything():
    model = LogisticRegression()
    return all_methods(DIGITS, model=model, branch=PixelLogistic(training=QUICK), oracle=CentralOracle(model, (3, 3)))


def test_the_papers_table_prints_itself():
    rows = {row["Method"]: tuple(row.values())[1:] for row in coordination_table(everything())}
    assert {name: rows[name] for name in PAPER} == PAPER
    assert set(rows) - set(PAPER) == {"Social learning", "Log-odds sum", "Stacking", "Tuned", "Tuned models"}


def test_what_a_method_says_it_asks_is_what_it_takes():
    """Only methods that say so cost messages before deciding; only those that say nothing cost none in deciding."""
    train, test = data.digits(classes=(3, 8))
    record = agents.train(train, test, LogisticRegression(), seed=0)
    for method in everything():
        result = evaluate(method, record, train, test)
        asks = method.coordination
        assert (result.training_transmissions > 0) == (asks.training != "None" or asks.fitting != "None"), method
        assert (result.transmissions > 0) == (asks.inference != "None"), method
        assert 0 <= result.error < 0.35
        assert result.seconds > 0


def test_a_result_is_the_decision_counted(record):
    result = evaluate(AvgStat(), record)
    mistakes = (record.statistics("test").mean(axis=1) * record.y_test <= 0).sum()
    assert (result.method, result.error) == ("Avg-stat", mistakes / 400)
    p = (mistakes + 2) / 404
    assert result.ci95 == pytest.approx(1.96 * np.sqrt(p * (1 - p) / 404), rel=1e-12)
    assert (result.transmissions, result.bits) == (5, 320)


def test_no_mistake_is_no_certainty():
    easy = score_record(K=5)
    sure = agents.Scores(
        easy.train, easy.val, 9.0 * easy.y_test[:20, None] + np.zeros(5), easy.y_train, easy.y_val, easy.y_test[:20]
    )
    result = evaluate(Vote(), sure)
    assert result.error == 0
    assert result.ci95 > 0.1


def test_a_summary_is_means_with_students_interval():
    results = [
        [Result("a", error, 0.3, 9, 9 * bits, 100, 1.0), Result("b", 0.5, 0.1, 0, 0, 0, 0.0)]
        for error, bits in ((0.1, 1), (0.2, 2), (0.6, 6))
    ]
    first, second = summarise(results)
    assert first._asdict() == pytest.approx(
        {"method": "a", "error": 0.3, "ci95": 0.6572, "transmissions": 9, "bits": 27, "seconds": 1.0}, abs=1e-4
    )
    assert (second.error, second.ci95) == (0.5, 0)
    assert summarise(results[:1])[0].ci95 == 0.3  # of one repetition: over its items
    with pytest.raises(DataError, match="the same methods"):
        summarise([results[0], results[1][:1]])


def test_seconds_are_of_fitting_and_deciding(record):
    class Slow(AvgStat):
        def fit(self, scores, train=None):
            time.sleep(0.05)
            return super().fit(scores, train)

        def decide(self, X):
            time.sleep(0.05)
            return super().decide(X)

    assert 0.1 <= evaluate(Slow(), record).seconds < 60


def test_views_that_are_not_the_records_are_refused(record):
    train, test = data.digits(classes=(3, 8))
    scores = agents.train(train, test, LogisticRegression(), seed=0)
    oracle = CentralOracle(LogisticRegression(), (3, 3))
    with pytest.raises(DataError, match="test items of the score record"):
        evaluate(oracle, scores, train)
    with pytest.raises(DataError, match="test items of the score record"):
        evaluate(oracle, scores, train, train)
    turned = data.Dataset(test.views, -test.y, test.class_names, test.agent_names)
    with pytest.raises(DataError, match="test items of the score record"):
        evaluate(oracle, scores, train, turned)
    assert not hasattr(oracle, "model_")  # nothing was trained in vain
    nothing = agents.Scores(record.train, record.val, record.test[:0], record.y_train, record.y_val, record.y_test[:0])
    with pytest.raises(ScoreError, match="no test items"):
        evaluate(NonCooperative(), nothing)
    assert evaluate(NonCooperative(), scores).transmissions == 0
