"""The planner: nothing better is overlooked, the halves are apart, and what cannot be had is said."""

import json
from dataclasses import replace

import numpy as np
import pytest

from collegium import collaborate, links, planner, policy, protocol, theory, topology
from collegium._util.measures import Interval, mean_interval, wrong
from collegium.errors import InputFileError, RuleError, ScoreError
from collegium.planner.candidates import lossy, networks, quick, rules
from collegium.planner.search import _beside, _certificate, _front, _halves, _measure
from collegium.plots import plan_figure
from helpers import score_record

RECORD = score_record(K=6, n=240, seed=3)
SCORES, Y = RECORD.statistics("test"), RECORD.y_test


@pytest.fixture(scope="module")
def answer():
    return planner.plan(SCORES, Y, budget_bits=200, rounds=8)


# What is searched


@pytest.mark.parametrize("K", [2, 3, 5, 6, 12, 16])
def test_networks_are_over_all_agents_and_differ(K):
    found = networks(K)
    assert all(one.policy.size == K for one in found)
    assert len({one.policy for one in found}) == len(found)
    names = {one.topology.partition(":")[0] for one in found}
    assert {"ring", "path"} & names
    if K == 12:
        assert names == {"ring", "path", "star", "grid", "torus", "small-world", "erdos-renyi", "complete"}


def test_networks_are_written_as_the_command_line_reads_them():
    from collegium.cli.network_argument import read_policy

    for one in networks(6):
        assert read_policy(one.topology, one.weighing) == one.policy


def test_rules_stop_early_and_say_little():
    exact, coarse = rules(2.0, 5.0)
    kinds = {type(rule) for rule in exact}
    assert kinds == {protocol.DeGroot, protocol.DeltaTrigger, protocol.LabelStability}
    assert {rule.bits for rule in coarse} == {2, 3, 4, 6, 8, 12}
    assert all(rule.bound == 5.0 for rule in coarse)


def test_quick_ways_to_average_are_tried_and_written_as_the_command_line_reads_them():
    from collegium.cli.network_argument import read_schedule

    found = list(quick(networks(6), 8, 2.0))
    kinds = {type(getattr(rule, "rule", rule)) for _, rule, _ in found}
    averages = {protocol.Ceca, protocol.Polynomial, protocol.Chebyshev, protocol.PushSum, protocol.Flood}
    assert kinds == averages | {protocol.DeGroot}  # over one-peer exponential schedules
    for one, rule, rounds in found:
        weighing = None if one.weighing == "own weights" else one.weighing
        assert read_schedule(one.topology, weighing) == one.policy
        collaborate(SCORES[:3].clip(-2, 2), one.policy, rounds, rule)
    assert {rounds for one, _, rounds in found if one.topology == "exact:6"} == {3}
    assert not [one for one, rule, _ in quick(networks(6), 2, 2.0) if isinstance(rule, protocol.Ceca)]


def test_the_fastest_weights_are_tried():
    found = {(one.topology, one.weighing): one.policy for one in networks(6)}
    assert found["path:6", "fastest"] == policy.fastest(topology.path(6))


def test_with_losses_plans_are_measured_with_losses():
    answer = planner.plan(SCORES, Y, rounds=6, loss=0.3)
    first, second = _halves(Y, (1, -1), 0)
    lost = links.Lossy(0.3, 0)
    for one in answer.front:
        assert type(getattr(one.rule, "rule", one.rule)) in (protocol.DeGroot, protocol.RunningSums, protocol.Flood)
        run = collaborate(SCORES[second], one.policy, one.rounds, one.rule, 0, items=second, links=lost)
        assert one.error == mean_interval(wrong(run.statistics[-1], Y[second]))
        again = collaborate(SCORES[first], one.policy, one.rounds, one.rule, 0, items=first, links=lost)
        if not isinstance(one.rule, protocol.Quantised):
            assert one.chosen_error == pytest.approx(again.errors(Y[first])[-1].mean())
    assert answer.certificate.no_theorem.endswith("with lost messages")
    assert np.isnan(answer.certificate.bound).all()
    with pytest.raises(RuleError, match="the part of the messages that is lost"):
        planner.plan(SCORES, Y, loss=1.5)


def test_running_sums_are_tried_where_messages_are_lost():
    kinds = {type(rule) for _, rule, _ in lossy(networks(6), 8)}
    assert kinds == {protocol.RunningSums, protocol.Flood}


def test_the_exact_average_is_recommended_where_it_is_cheapest(tmp_path):
    """Eight agents of which every one is needed: three rounds of one message each; nothing else is exact so cheaply."""
    y = np.where(np.arange(400) % 2, 1, -1)
    x = np.random.default_rng(8).normal(size=(400, 8))
    x += (0.3 * y - x.mean(axis=1))[:, None]  # only the average of all tells, and it always does
    found = planner.plan(x, y, target_error=0.02, rounds=6)
    best = found.recommended
    assert found.met
    assert (best.topology, best.rounds) == ("exact:8", 3)
    assert best.error.mean <= 0.02
    assert found.certificate.errors[-1].mean() == pytest.approx(best.error.mean)  # of the rule itself, not of DeGroot
    planner.write_network(tmp_path / "n.json", planner.NetworkFile(best.policy, best.rule, best.rounds))
    again = planner.read_network(tmp_path / "n.json")
    assert (again.policy, again.rule, again.rounds) == (best.policy, best.rule, best.rounds)


def test_where_flooding_is_recommended_its_price_is_said():
    plan = planner.Plan(
        "ring:4", "uniform", protocol.Flood(4), 2, policy.uniform(topology.ring(4)), 0.1, 9.0,
        Interval(0.1, 0.01), Interval(9.0, 0.1),
    )  # fmt: skip
    said = _beside(plan, plan.error, 2, True, None, None)
    assert "everybody learns everybody's scores" in said[-1]


# What is found


def test_three_classes_are_planned_like_two():
    """Chosen on one half, measured on the other, each class in both; thresholds and bits as of two classes."""
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    x = rng.normal(size=(150, 5, 3)) + 0.8 * np.eye(3)[y][:, None]
    x -= x.mean(axis=2, keepdims=True)
    names = np.array(["a", "b", "c"])[y]
    found = planner.plan(x, names, target_error=0.3, rounds=3, classes=("a", "b", "c"))
    first, second = _halves(y, range(3), 0)
    assert sorted([*first, *second]) == list(range(150))
    assert np.bincount(y[first]).tolist() == [25, 25, 25]
    best = found.recommended
    run = collaborate(x[second], best.policy, best.rounds, best.rule, 0, items=second)
    assert best.error.mean == pytest.approx(run.errors(y[second])[-1].mean())
    assert best.bits.mean == pytest.approx(run.bits.mean())
    assert best.chosen_error <= 0.3
    cheaper = [one for one in found.front if one.chosen_bits < best.chosen_bits]
    for one in cheaper:  # they miss the target where they were chosen, or have no margin there
        again = collaborate(x[first], one.policy, one.rounds, one.rule, 0, items=first)
        error = mean_interval(wrong(again.statistics[-1], y[first]))
        assert one.chosen_error > 0.3 or error.mean + error.half > 0.3
    assert found.alone.mean == pytest.approx(wrong(x[second], y[second]).mean())
    assert found.certificate.items == (25, 25, 25)


def test_the_front_is_what_brute_force_finds():
    first, _ = _halves(Y, (1, -1), 0)
    measured = _measure(SCORES, Y, first, T=3, M=1, seed=0)
    front = _front(measured)
    points = list(zip(measured.bits, measured.error, strict=True))
    best = set()
    for bits, error in points[:4000]:
        if not any((b <= bits and e < error) or (b < bits and e <= error) for b, e in points):
            best.add((bits, error))
    found = {points[i] for i in front}
    assert best <= found
    for bits, error in found:
        assert not any((b <= bits and e < error) or (b < bits and e <= error) for b, e in points)


def test_a_plan_is_measured_on_the_other_half(answer):
    first, second = _halves(Y, (1, -1), 0)
    assert not set(first) & set(second)
    assert len(first) + len(second) == len(Y)
    assert abs(Y[first].sum()) <= 1
    for one in (answer.recommended, answer.front[0], answer.front[-1]):
        run = collaborate(SCORES[second], one.policy, one.rounds, one.rule, 0, items=second)
        assert one.error == mean_interval(wrong(run.statistics[-1], Y[second]))
        assert one.bits.mean == pytest.approx(run.bits.mean())
        again = collaborate(SCORES[first], one.policy, one.rounds, one.rule, 0, items=first)
        if not isinstance(one.rule, protocol.Quantised):
            assert one.chosen_error == pytest.approx(again.errors(Y[first])[-1].mean())


def test_the_front_is_sorted_by_what_it_shows(answer):
    bits = [one.bits.mean for one in answer.front]
    assert bits == sorted(bits)
    chosen = sorted(answer.front, key=lambda one: one.chosen_bits)
    assert (np.diff([one.chosen_error for one in chosen]) < 0).all()
    assert len(answer.front) <= 25


def test_a_budget_gets_the_best_within_it(answer):
    best = answer.recommended
    assert answer.met
    assert best.chosen_bits <= 200
    assert best.bits.mean <= 200
    surely = [one.chosen_error for one in answer.front if one.chosen_bits <= 200 and not _stops(one.rule)]
    assert best.chosen_error <= min(surely)  # what never stops early costs the same on every item
    assert "smallest error of those with at most 200 bits" in answer.reasons[0]


def _stops(rule):
    rule = getattr(rule, "rule", rule)
    return isinstance(rule, (protocol.DeltaTrigger, protocol.LabelStability))


@pytest.mark.parametrize("place", [0.3, 0.6, 0.9])
def test_a_target_gets_the_cheapest_that_keeps_it_by_a_margin(answer, place):
    one = answer.front[int(place * len(answer.front))]
    target = one.error.mean + one.error.half
    found = planner.plan(SCORES, Y, target_error=target, rounds=8)
    best = found.recommended
    assert found.met == (best.error.mean + best.error.half <= target)
    assert best.chosen_error <= target


def test_met_means_met():
    """Over many draws: where `met`, fresh items keep the target, all but the share that a 95 % interval allows."""
    rng = np.random.default_rng(5)
    kept = []
    for seed in range(12):
        y = np.where(np.arange(160) % 2, 1, -1)
        x = y[:, None] * 0.5 + rng.normal(size=(160, 4))
        found = planner.plan(x, y, target_error=0.25, rounds=2, seed=seed)
        if found.met:
            fresh = np.where(np.arange(20_000) % 2, 1, -1)
            best = found.recommended
            size = np.abs(x).max()  # the range of the quantiser
            scores = np.clip(fresh[:, None] * 0.5 + rng.normal(size=(20_000, 4)), -size, size)
            again = collaborate(scores, best.policy, best.rounds, best.rule)
            kept.append(again.errors(fresh)[-1].mean() <= 0.25)
    assert len(kept) >= 3
    assert np.mean(kept) >= 0.8


def test_what_lies_within_the_interval_is_not_met():
    """The best plan just reaches the target, so nothing says that it will on other items."""
    found = planner.plan(SCORES, Y, rounds=4)
    target = found.recommended.chosen_error + 1e-6
    just = planner.plan(SCORES, Y, target_error=target, rounds=4)
    assert not just.met
    assert "by a margin" in just.reasons[0]


def test_what_cannot_be_had_is_said_with_the_nearest():
    cheap = planner.plan(SCORES, Y, budget_bits=3, rounds=4)
    assert not cheap.met
    assert "no plan with any messages costs at most 3 bits" in cheap.reasons[0]
    assert cheap.recommended == min(cheap.front, key=lambda one: one.chosen_bits)
    good = planner.plan(SCORES, Y, target_error=0.0, rounds=4)
    assert not good.met
    assert "no plan reaches an error of 0" in good.reasons[0]
    assert good.recommended == max(good.front, key=lambda one: one.chosen_bits)
    both = planner.plan(SCORES, Y, target_error=0.0, budget_bits=100, rounds=4)
    assert not both.met
    assert both.recommended.chosen_bits <= 100
    assert "with at most 100 bits per item reaches" in both.reasons[0]


def test_nobody_talks_if_nobody_needs_to():
    found = planner.plan(SCORES, Y, target_error=0.9, rounds=3)
    assert found.met
    assert (found.recommended.rounds, found.recommended.bits.mean) == (0, 0)
    assert "no messages are needed" in found.reasons[0]
    assert found.recommended.error == found.alone


def test_classes_the_wrong_way_round_are_noticed():
    found = planner.plan(SCORES, -Y, budget_bits=100, rounds=3)
    assert any("right way round" in reason for reason in found.reasons)


def test_what_the_other_half_says():
    plan = planner.plan(SCORES, Y, budget_bits=200, rounds=3).recommended
    alone = Interval(0.3, 0.01)
    worse = replace(plan, error=Interval(0.30, 0.02), bits=Interval(300.0, 1.0), chosen_bits=100.0)
    said = _beside(worse, alone, 2, False, 0.29, 200)
    assert any("within the interval" in one for one in said)
    assert any("needs more than 200 bits" in one for one in said)
    assert any("beyond doubt" in one for one in _beside(worse, alone, 2, False, 0.25, None))
    assert len(_beside(worse, alone, 2, True, 0.35, 400)) == 1
    assert any("more items would tell" in one for one in _beside(worse, alone, 2, False, 0.31, 400))


def test_thresholds_are_in_units_of_the_scores():
    small, large = rules(1.0, 5.0)[0], rules(10.0, 5.0)[0]
    assert [rule.threshold for rule in large[1:6]] == pytest.approx([10 * rule.threshold for rule in small[1:6]])
    assert large[-1].confidence == pytest.approx(10 * small[-1].confidence)


def test_luck_is_called_luck():
    """Pure noise: the chosen error is flattering, and the other half says so."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(80) < 0.5, 1, -1)
    found = planner.plan(rng.normal(size=(80, 4)), y, target_error=0.42, rounds=6)
    assert found.recommended.chosen_error <= 0.42
    assert any("flatters" in reason for reason in found.reasons) == (found.recommended.error.mean > 0.42)
    assert abs(found.recommended.error.mean - 0.5) < 3 * found.recommended.error.half
    assert found.certificate.vacuous or found.certificate.limit > 0.5


def test_the_certificate_is_of_the_recommended_plan(answer):
    best = answer.recommended
    _, second = _halves(Y, (1, -1), 0)
    run = collaborate(SCORES[second], best.policy, best.rounds, best.rule, 0, items=second)
    np.testing.assert_array_equal(answer.certificate.errors, run.errors(Y[second]))
    assert best.error.mean == pytest.approx(run.errors(Y[second])[-1].mean())
    assert isinstance(best.rule, protocol.Quantised)
    assert answer.certificate.bits == best.rule.bits
    assert not theory.mixing.is_linear(best.rule.rule)  # it may be silent, of which the paper's theorems say nothing
    assert answer.certificate.no_theorem == protocol.registry.describe(best.rule)
    assert np.isnan(answer.certificate.bound).all()
    assert answer.alone == mean_interval(wrong(SCORES[second], Y[second]))


def test_the_certificate_of_a_plan_that_is_never_silent_has_the_papers_bounds(answer):
    best = answer.recommended
    talking = replace(best, rule=protocol.Quantised(protocol.DeGroot(), best.rule.bits, best.rule.bound))
    _, second = _halves(Y, (1, -1), 0)
    found = _certificate(talking, SCORES[second], Y[second], second, 0)
    beta = max(best.rule.bound / 2, np.ptp(SCORES[second], axis=0).max() / 2)
    assert found.beta == pytest.approx(beta)
    assert not found.beta_is_given
    assert not found.no_theorem
    reference = theory.finite_precision(best.policy, found.delta, beta, best.rounds, best.rule.bits)
    np.testing.assert_allclose(found.bound, reference.value)


def test_the_same_seed_gives_the_same_plan(answer):
    again = planner.plan(SCORES, Y, budget_bits=200, rounds=8)
    assert again.recommended == answer.recommended
    assert again.reasons == answer.reasons


def test_other_labels_are_understood():
    words = np.where(Y > 0, "cat", "dog")
    found = planner.plan(SCORES, words, budget_bits=200, rounds=3, classes=("cat", "dog"))
    assert found.recommended.error.mean < found.alone.mean


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: planner.plan(SCORES[:, :1], Y), ScoreError, "at least two agents"),
        (lambda: planner.plan(SCORES[:6], Y[:6]), ScoreError, "four of each class"),
        (lambda: planner.plan(SCORES[:0], Y[:0]), ScoreError, "four of each class"),
        (lambda: planner.plan(SCORES, Y, target_error=1.5), RuleError, "target error"),
        (lambda: planner.plan(SCORES, Y, budget_bits=-1), RuleError, "budget in bits"),
        (lambda: planner.plan(SCORES, Y, rounds=0), RuleError, "rounds"),
        (lambda: planner.plan(SCORES * np.nan, Y), ScoreError, "NaN"),
        (lambda: planner.plan(SCORES * 1e200, Y), ScoreError, "too small or too large"),
        (lambda: planner.plan(SCORES * 1e-200, Y), ScoreError, "too small or too large"),
        (lambda: planner.plan("scores", Y), ScoreError, "at least two agents"),
    ],
)
def test_mistakes(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


def test_a_figure_is_drawn(answer, tmp_path):
    plan_figure(answer, "a plan").savefig(tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 10_000


# Network files


@pytest.mark.parametrize(
    "rule",
    [
        protocol.DeGroot(),
        protocol.SocialLearning(),
        protocol.DeltaTrigger(0.25),
        protocol.Quantised(protocol.LabelStability(2, 0.5), 4, 2.5),
    ],
    ids=repr,
)
def test_a_network_file_comes_back_number_for_number(rule, tmp_path):
    network = planner.NetworkFile(policy.uniform(topology.erdos_renyi(9, links=24, seed=7)), rule, 12, "for a test")
    planner.write_network(tmp_path / "deep" / "net.json", network)
    back = planner.read_network(tmp_path / "deep" / "net.json")
    assert back == network
    content = json.loads((tmp_path / "deep" / "net.json").read_text())
    assert content["agents"] == 9
    assert len(content["links"]) == 24 + 9


def test_a_network_file_that_cannot_be_written_leaves_the_older_one(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    path = tmp_path / "net.json"
    network = planner.NetworkFile(policy.uniform(topology.ring(3)), protocol.DeGroot(), 12)
    planner.write_network(path, network)
    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(InputFileError, match=r"cannot write .*net\.json: No space left on device"):
        planner.write_network(path, network._replace(rounds=1))
    assert planner.read_network(path) == network


WHOLE = {"format": "collegium network 1", "agents": 1, "rounds": 1, "rule": {"DeGroot": {}}, "links": [[0, 0, 1]]}
BROKEN = {
    "no file": None,
    "no JSON": "{",
    "another": {"format": "something"},
    "no links": {name: WHOLE[name] for name in ("format", "agents")},
    "weights": WHOLE | {"agents": 2},
    "agents": WHOLE | {"links": [[0, 5, 1]]},
    "rule": WHOLE | {"rule": 3},
    "unknown": WHOLE | {"rule": {"Magic": {}}},
    "rounds": WHOLE | {"rounds": -1},
}


def test_the_broken_ones_differ_from_a_whole_one_in_one_thing(tmp_path):
    (tmp_path / "net.json").write_text(json.dumps(WHOLE))
    assert planner.read_network(tmp_path / "net.json").policy.size == 1


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_network_file_is_refused(name, tmp_path):
    path = tmp_path / "net.json"
    content = BROKEN[name]
    if content is not None:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(InputFileError, match=r"net\.json"):
        planner.read_network(path)
