"""Guarantees for products of combination matrices, and for rules that combine scores linearly: by simulation."""

import numpy as np
import pytest

from collegium import collaborate, policy, schedule, theory, topology
from collegium.errors import AssumptionError
from collegium.protocol import Chebyshev, DeGroot, Flood, PushSum, Quantised, RunningSums
from collegium.theory.bound import CONNECTED
from collegium.theory.disturbed import Disturbed
from collegium.theory.mixing import mixing
from worlds import NETWORKS, World, assert_holds

N = 20_000
SKILLS = np.linspace(0.3, 0.9, 12)
RING, GRID, DIRECTED = NETWORKS["ring"], NETWORKS["grid"], NETWORKS["directed"]
CASES = {
    "exact": (schedule.exact(12), None, 4),
    "one peer": (schedule.one_peer_exponential(12), None, 12),
    "eigenvalue steps": (schedule.eigenvalue_steps(RING), None, 6),
    "eigenvalue steps, star": (schedule.eigenvalue_steps(policy.uniform(topology.star(12))), None, 2),
    "alternating": (schedule.alternating([GRID, DIRECTED]), None, 16),
    "pairwise": (schedule.pairwise(topology.grid(3, 4), seed=1), None, 150),
    "chebyshev": (GRID, Chebyshev(), 15),
    "push-sum": (DIRECTED, PushSum(), 20),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("raw", [False, True], ids=["centred", "raw"])
def test_finite_round(case, raw):
    """Errors measured in 20 000 items stay below the bound, in a 99.9 % interval; in the end it says something."""
    over, rule, rounds = CASES[case]
    world = World(SKILLS, beta=1.3)
    c, y = world.draw(N, np.random.default_rng(1))
    pi = mixing(over, rounds, rule).limit
    delta = 1.3 * float(pi @ SKILLS) * (1 - 1e-9)
    bound = theory.finite_round(over, delta, 1.3, rounds, raw=raw, rule=rule)
    assert_holds(collaborate(c, over, rounds, rule).errors(y), bound.value, N)
    assert not bound.vacuous[-1].any()
    limit = theory.sufficient(over, delta, 1.3, raw=raw, rule=rule)
    assert (bound.value[-1] >= limit.value * (1 - 1e-6)).all()
    assert CONNECTED not in bound.assumptions + limit.assumptions


@pytest.mark.parametrize("case", [name for name in CASES if name != "push-sum"])
@pytest.mark.parametrize("bits", [8, 12])
def test_finite_precision(case, bits):
    """With a quantiser as wide as the messages need; pairwise rounds every agent's value in every round."""
    over, rule, rounds = CASES[case]
    c, y = World(SKILLS).draw(N, np.random.default_rng(2))
    mix = mixing(over, rounds, rule)
    wide = 2 * float(mix.widening(np.array(float(bits))))
    run = collaborate(c, over, rounds, Quantised(mix.rule, bits, wide), rng=3)
    bound = theory.finite_precision(over, float(mix.limit @ SKILLS) * (1 - 1e-9), 1.0, rounds, bits, rule=rule)
    assert_holds(run.errors(y), bound.value, N)
    assert bound.parts["B_total"][-1] == run.bits[0]
    assert bits == 8 or not bound.vacuous[-1].any()


class Noise(Disturbed):
    """The rule from nothing, every message off by a draw of variance 1."""

    def emit(self, seat, state, draws):
        outbox, after = self.rule.emit(seat, state.state, draws)
        return outbox._replace(values=outbox.values + np.sqrt(12) * (draws.uniform(1) - 0.5)), state._replace(
            state=after
        )


@pytest.mark.parametrize("case", [name for name in CASES if name != "push-sum"])
def test_errors_of_messages_add_up_as_said(case):
    """Their variance in each statistic is the sum of squared gains, within the spread of a mean of n squares."""
    over, rule, rounds = CASES[case]
    n, rounds = 4000, min(rounds, 12)
    mix = mixing(over, rounds, rule)
    found = (collaborate(np.zeros((n, 12)), over, rounds, Noise(mix.rule), rng=6).statistics ** 2).mean(axis=1)
    gain = mix.rounding_gain()
    assert (gain[0] == 0).all()
    # A mean of n squares is off by at most sqrt(2/n) of itself; 4.5 of these for up to 144 means is 99.9 %.
    np.testing.assert_allclose(found[1:], gain[1:], rtol=4.5 * np.sqrt(2 / n))


def test_products_of_matrices_and_of_their_tails():
    """DeGroot on a schedule: A_1 … A_t, and for rounding errors of round s A_s … A_t."""
    mix = mixing(schedule.alternating([GRID, DIRECTED]), 5)
    A = [np.asarray(one.A) for one in (GRID, DIRECTED, GRID, DIRECTED, GRID)]
    tails = [np.linalg.multi_dot([*A[s:], np.eye(12)]) for s in range(5)]
    np.testing.assert_allclose(mix.weights[5], tails[0], rtol=64 * 2.3e-16)
    np.testing.assert_allclose(mix.rounding_gain()[5], sum((one**2).sum(axis=0) for one in tails), rtol=1e-13)
    np.testing.assert_allclose(A[0] @ A[1] @ mix.limit, mix.limit, rtol=1e-12)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_schedule_that_never_changes_has_the_guarantee_of_its_policy(network):
    p = NETWORKS[network]
    same = schedule.alternating([p, p])
    for found, expected in (
        (theory.finite_round(same, 0.6, 1.0, 20), theory.finite_round(p, 0.6, 1.0, 20)),
        (theory.finite_precision(same, 0.6, 1.0, 20, [2, 6]), theory.finite_precision(p, 0.6, 1.0, 20, [2, 6])),
        (theory.sufficient(same, 0.6, 1.0), theory.sufficient(p, 0.6, 1.0)),
    ):
        np.testing.assert_allclose(found.value, expected.value, rtol=1e-11)


@pytest.mark.parametrize("K", [2, 3, 7, 12, 16, 33])
def test_exact_schedules_have_the_guarantee_of_enough_rounds(K):
    over = schedule.exact(K)
    found = theory.finite_round(over, 0.5, 1.0, over.rounds + 2).value
    expected = np.exp(-(0.5**2) * K / 2)
    np.testing.assert_allclose(found[over.rounds :], expected, rtol=1e-12)
    np.testing.assert_allclose(theory.sufficient(over, 0.5, 1.0).value, expected, rtol=1e-14)
    if K > 2:
        assert not (found[over.rounds - 1] <= expected).any()


def test_what_has_no_guarantee_is_refused():
    lopsided = schedule.alternating([DIRECTED, GRID])
    for rule in (RunningSums(), Flood(12), Quantised(DeGroot(), 4, 1.0)):
        with pytest.raises(AssumptionError, match="but none for"):
            theory.finite_round(RING, 0.5, 1.0, 3, rule=rule)
    with pytest.raises(AssumptionError, match="cannot be rounded"):
        theory.finite_precision(DIRECTED, 0.5, 1.0, 3, 4, rule=PushSum())
    with pytest.raises(AssumptionError, match="leave it out"):
        theory.finite_round(lopsided, 0.5, 1.0, 3, sigma=0.99)
    with pytest.raises(AssumptionError, match="bits are too few"):
        theory.finite_precision(schedule.eigenvalue_steps(GRID), 0.5, 1.0, 11, 1)

    class Own:
        size, rule = 12, None

        def at(self, t):
            return lopsided.at(t)

    with pytest.raises(AssumptionError, match="is not known"):
        theory.finite_round(Own(), 0.5, 1.0, 3)


def test_a_certificate_of_a_schedule():
    c, y = World(SKILLS[1:]).draw(4000, np.random.default_rng(7))  # of an odd number of signs the mean is never 0
    found = theory.certify(c, y, schedule.exact(11), 4, beta=1.0)
    assert found.measured_limit == (c.mean(axis=1) * y <= 0).mean()
    assert found.errors[4].tolist() == [found.measured_limit] * 11
    np.testing.assert_allclose(found.bound[4], found.limit, rtol=1e-9)
    assert found.limit < 1
