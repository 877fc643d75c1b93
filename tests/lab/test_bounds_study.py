"""The remarks on the bounds: true of the formulas, and judged by them."""

import numpy as np
import pytest

from collegium import policy, topology
from collegium.lab.studies import STUDIES
from collegium.lab.study import Options
from collegium.lab.table import to_table

STUDY = STUDIES["bounds"]


@pytest.fixture(scope="module")
def table():
    return to_table(STUDY.examine(Options()), STUDY.factors)


def verdicts(table):
    return {claim.claim: claim.verdict for claim in STUDY.claims(table)}


def test_every_remark_holds(table):
    assert set(verdicts(table).values()) == {"holds"}


def test_the_numbers_are_those_of_the_theorems(table):
    """A ring of twelve, three neighbours each: written out."""
    A = policy.uniform(topology.ring(12)).A
    bound = table[table["quantity"] == "bound"].set_index(["method", "round", "bits"])["value"]
    assert bound.loc["Thm 1"].item() == pytest.approx(np.exp(-(0.81 * 12) / 2))
    t, levels = 40, 2**6 - 1
    powers = [np.linalg.matrix_power(A, r) for r in range(1, t + 1)]
    r = 0.9 - 2 * np.abs(powers[-1] - 1 / 12).sum(axis=0)
    V = 4 / levels**2 * np.sum([(one**2).sum(axis=0) for one in powers], axis=0)
    expected = np.exp(-(r**2) / (2 * ((powers[-1] ** 2).sum(axis=0) + V))).max()
    assert bound.loc[("Thm 3", t, 6)] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("quantity", "method", "change", "claim"),
    [
        ("rounding", "Thm 3", lambda part: part["value"] * part["bits"], "V of Thm 3 falls like 2^(-2b)"),
        ("bits sent", "Thm 3", lambda part: part["value"] ** 1.1, "bits sent grow linearly with b"),
        ("bound", "Thm 1", lambda part: part["value"] / 2, "Thm 2 tends to Thm 1 as t grows"),
        ("bound", "Thm 2", lambda part: part["value"] / 2, "Thm 3 tends to Thm 2 as b grows"),
        ("bound", "Prop. F.1", lambda part: part["value"] * 2, "the bound of social learning tends to that of Thm 1"),
        ("bound", "Thm 3", lambda part: 1 / (1 + part["round"]), "the bound of Thm 3 need not fall with the rounds"),
        ("penalty", "Thm 1", lambda part: 2 * part["value"], "the bound of the aggregate is below one agent's exactly"),
    ],
)
def test_other_numbers_are_judged_otherwise(table, quantity, method, change, claim):
    other = table.copy()
    there = (other["quantity"] == quantity) & (other["method"] == method)
    other.loc[there, "value"] = change(other[there]).astype(float)
    (found,) = (verdict for name, verdict in verdicts(other).items() if name.startswith(claim))
    assert found == "does not hold"


def test_the_figure_shows_every_precision(table):
    left, right = STUDY.draw(table)["bounds"].axes
    labels = [line.get_label() for line in left.lines]
    assert [name for name in labels if name.startswith("Thm 3")] == [f"Thm 3, {b} bits" for b in (2, 3, 4, 6, 8)]
    assert len({line.get_color() for line in left.lines if line.get_linestyle() == "-"}) == 6
    assert right.get_yscale() == "log"
