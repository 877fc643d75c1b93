"""The main studies' claims where they are easily got wrong: one agent of many, and methods tried at one N_0 only."""

import numpy as np
import pandas
import pytest
from scipy import stats

from collegium.lab.studies import STUDIES
from collegium.lab.studies.main import _better_alone, stronger
from collegium.lab.table import StudyRow, to_table

AGENTS, METHODS = 12, ("Ours", "Non-cooperative", "Ours (no centering)", "Avg-stat")
METHODS += ("Vote", "Learned fusion", "Learned simplex fusion")


def rounds(lost, sizes=(50, 390), repetitions=20, seed=0):
    """Errors alone and after 20 rounds, these differing by `lost` (K,) and by noise."""
    rng = np.random.default_rng(seed)
    return [
        StudyRow("modelnet-main", n0, r, "error by round", "Ours", k, t, 0.3 + (t > 0) * (lost[k] + 0.01 * noise))
        for n0 in sizes
        for r in range(repetitions)
        for k in range(AGENTS)
        for t, noise in ((0, 0.0), (20, rng.normal()))
    ]


def table(lost, sizes=(50, 390), repetitions=20, joint=False):
    """And errors of all methods, which fall with N_0, and the means of both classes."""
    rng, rows = np.random.default_rng(1), []
    for n0 in sizes:
        for r in range(repetitions):
            at = ("modelnet-main", n0, r)
            for label in (1, -1):
                mean = label * (1 + n0 / 400 + 0.01 * rng.normal())
                rows.append(StudyRow(*at, "mean statistic", "Ours", -1, -1, mean, {"label": label}))
            errors = dict.fromkeys(METHODS, 0.3 - n0 / 4000) | ({"VFL-JT": 0.1} if joint and n0 > 50 else {})
            for method, error in errors.items():
                rows.append(StudyRow(*at, "error", method, -1, -1, error + 0.001 * rng.normal()))
    return to_table(rows + rounds(lost, sizes, repetitions), {"label": int})


def verdict(found, claim):
    return next(one for one in STUDIES["modelnet-main"].claims(found) if one.claim.startswith(claim))


@pytest.mark.parametrize(("worse", "said"), [(0.02, "holds"), (-0.02, "undecided")])
def test_one_agent_that_loses(worse, said):
    found = verdict(table(np.r_[worse, np.full(11, -0.05)]), "at small N_0 some agents")
    assert found.verdict == said
    assert f"{int(worse > 0)} of 12 one by one; most agent 0 at N_0 = 50, by " in found.evidence


def test_one_of_twelve_seems_to_lose_by_chance():
    """Agents to whom talking makes no difference: in a quarter of the tables one seems to lose, surely not in those."""
    found = [_better_alone(to_table(rounds(np.zeros(AGENTS), (50, 390), 5, seed))) for seed in range(60)]
    assert sum(not one.numbers.startswith("0 of") for one in found) >= stats.binom.ppf(0.001, 60, 0.2)
    assert sum(one.verdict == "holds" for one in found) <= stats.binom.ppf(0.999, 60, 0.025)


def test_at_one_size_nothing_is_said_of_small_ones():
    claims = [one.claim for one in STUDIES["modelnet-main"].claims(table(np.zeros(12), sizes=(390,)))]
    assert not [one for one in claims if "small" in one]


def test_methods_tried_at_one_size_only():
    found = table(np.zeros(12), joint=True)
    assert verdict(found, "the error of every method falls").verdict == "holds"
    joint = verdict(found, "VFL-JT is below ours")
    assert joint.verdict == "holds"
    assert joint.evidence.startswith("N_0 = 390: ")
    assert "N_0 = 50" not in joint.evidence


def test_a_dip_on_the_way_is_seen_at_every_step():
    """The error falls on the whole, but from 100 to 200 it rises."""
    found = table(np.zeros(12), sizes=(50, 100, 200, 390))
    assert verdict(found, "from every N_0 to the next the error").verdict == "holds"
    assert verdict(found, "from every N_0 to the next the class means").verdict == "holds"
    there = (found["quantity"] == "error") & (found["n0"] == 200) & (found["method"] == "Vote")
    found.loc[there, "value"] += 0.03
    assert verdict(found, "the error of every method falls").verdict == "holds"
    step = verdict(found, "from every N_0 to the next the error")
    assert step.verdict == "does not hold"
    assert "Vote, 100 to 200" in step.evidence
    there = (found["quantity"] == "mean statistic") & (found["n0"] == 200) & (found["label"] == -1)
    found.loc[there, "value"] += 0.5
    assert "class -1, 100 to 200" in verdict(found, "from every N_0 to the next the class means").evidence


def test_the_stronger_fusions_are_the_two_best_on_average():
    """Not the two best of each repetition, which would be better than any method is."""
    index = pandas.MultiIndex.from_product([(50, 390), (0, 1)], names=["n0", "repetition"])
    errors = pandas.DataFrame(
        {"a": [0.1, 0.3, 0.5, 0.5], "b": [0.3, 0.1, 0.2, 0.2], "c": [0.0, 0.9, 0.4, 0.6], "d": [0.5, 0.5, 0.3, 0.1]},
        index,
    )
    np.testing.assert_allclose(stronger(errors), [0.2, 0.2, 0.25, 0.15])


def test_a_size_near_the_largest_is_not_small():
    one = "at small N_0 some agents"
    found = table(np.r_[0.02, np.full(11, -0.05)], sizes=(300, 390))
    assert not [claim for claim in STUDIES["modelnet-main"].claims(found) if claim.claim.startswith(one)]
    assert verdict(table(np.r_[0.02, np.full(11, -0.05)], sizes=(100, 300, 390)), one).evidence.startswith("1 of 12 ")
