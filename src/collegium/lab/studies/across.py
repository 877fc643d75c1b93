"""What the paper says of one data set beside another: claims that need the tables of two studies."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from collegium.lab.claims import Claim, less
from collegium.lab.studies.main import FUSIONS
from collegium.lab.table import Table

LARGE, SMALL = "cifar-main", "modelnet-main"


def compared(tables: Mapping[str, Table]) -> list[Claim]:
    """Claims about ModelNet against CIFAR-10, where both main studies are there with several N_0."""
    if not all(name in tables and tables[name]["n0"].nunique() > 2 for name in (LARGE, SMALL)):
        return []
    large, small = tables[LARGE], tables[SMALL]
    slopes, fluctuations = (
        dict(zip((LARGE, SMALL), pair, strict=True)) for pair in zip(_margins(large), _margins(small), strict=True)
    )
    said = [
        (
            "the margin varies less with N_0 than on CIFAR-10 (per unit of log N_0, relative to its mean)",
            less(slopes[SMALL], slopes[LARGE]),
        ),
        ("and fluctuates more around that", less(fluctuations[LARGE], fluctuations[SMALL])),
        (
            "the order of the fusion methods changes more with N_0 than on CIFAR-10 (rank correlation)",
            less(_agreement(small), _agreement(large)),
        ),
    ]
    return [Claim(SMALL, claim, found.verdict, found.evidence) for claim, found in said]


def _margins(table: Table) -> tuple[Any, Any]:
    """Of each repetition's distance between the class means: its slope, and the spread around the line."""
    means = table[table["quantity"] == "mean statistic"].pivot_table(
        index=["repetition", "n0"], columns="label", values="value"
    )
    margins = (means[1] - means[-1]).unstack("n0").dropna()
    x = np.log(margins.columns.to_numpy(float))
    y = margins.to_numpy() / margins.to_numpy().mean()
    slope, offset = np.polyfit(x, y.T, 1)
    return slope, np.std(y - slope[:, None] * x - offset[:, None], axis=1)


def _agreement(table: Table) -> Any:
    """Each repetition's rank correlation of the fusion methods' errors, averaged over pairs of N_0."""
    errors = table[table["quantity"] == "error"].pivot_table(
        index=["repetition", "n0"], columns="method", values="value"
    )
    found = []
    for _, part in errors[list(FUSIONS)].groupby("repetition"):
        rows = part.to_numpy()
        if len(rows) == table["n0"].nunique():
            pairs = (spearmanr(a, b).statistic for a, b in combinations(rows, 2))
            found.append(np.nanmean(list(pairs)))
    return np.array(found)
