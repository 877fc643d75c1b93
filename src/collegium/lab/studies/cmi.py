"""Conditional mutual information between patches: the matrix with stars and boxes, and its grouped summary."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np

from collegium.diagnostics import conditional_mutual_information
from collegium.lab.claims import Claim, exactly
from collegium.lab.figures import COLOURS, finish
from collegium.lab.job import load
from collegium.lab.study import DataStudy, Options
from collegium.lab.table import Factors, StudyRow, Table
from collegium.plots import panels

SIDE = 3
GROUPS = ("adjacent", "same row", "same column", "far")
DIMENSIONS, NEIGHBOURS = (10, 20, 30), (3, 5, 10)
"""What the paper tries."""
SHOWN, OTHER = "mutual information", "mutual information, other settings"
CLEARLY = 0.05
"""Nats that are clearly above zero."""


class CifarCmi(DataStudy):
    """On all training items; PCA to 20 dimensions and 5 neighbours, or what the options say.

    What is concluded is tried with the paper's other settings too, and on the test items.
    """

    name = "cifar-cmi"
    title = "Conditional mutual information between CIFAR-10 patches"
    figures = "Fig. 3"
    factors: ClassVar[Factors] = {"other": int, "dimensions": int, "neighbours": int, "split": str}

    def examine(self, options: Options) -> Iterable[StudyRow]:
        """Every pair of patches, `agent` and `other`: as the options say, then with all other settings of the paper."""
        shown = ("train", options.dimensions, options.neighbours)
        others = [one for one in product(("train", "test"), DIMENSIONS, NEIGHBOURS) if one != shown]
        parts = dict(zip(("train", "test"), load("cifar10", options.root), strict=True))
        if options.quick:
            others = [("test", *shown[1:])]
            parts = {
                split: part.take(np.arange(0, len(part), max(len(part) // 600, 1))) for split, part in parts.items()
            }
        for quantity, (split, dimensions, neighbours) in ((SHOWN, shown), *((OTHER, one) for one in others)):
            items = parts[split]
            found = conditional_mutual_information(items.views, items.y, dimensions, neighbours)
            how: dict[str, Any] = {"dimensions": dimensions, "neighbours": neighbours, "split": split}
            for a, b in combinations(range(items.size), 2):
                yield self.row(None, quantity, found[a, b], agent=a, other=b, **how)._replace(n0=len(items))

    def draw(self, table: Table) -> dict[str, Any]:
        """The matrix, stars at adjacent patches and boxes at each row's largest; and means by group."""
        matrix = _matrix(table)
        figure, (left, right) = panels(2, width=5.2, height=4.4)
        shown = left.imshow(matrix, cmap="viridis")
        for a in range(len(matrix)):
            for b in _neighbours(a):
                left.text(b, a, "*", color="white", ha="center", va="center", fontsize=14)
            for b in _largest(matrix, a):
                left.plot(*_box(b, a), color="red", linewidth=1.4)
        figure.colorbar(shown, ax=left, label="nats", shrink=0.85)
        left.set_xticks(range(9))
        left.set_yticks(range(9))
        finish(left, "patch", "patch", "(a) stars: adjacent · boxes: largest of a row", legend=False)
        left.grid(visible=False)
        groups = _grouped(matrix)
        for i, name in enumerate(GROUPS):
            right.bar(i, np.mean(groups[name]), color=COLOURS[i], alpha=0.8)
            right.plot(np.full(len(groups[name]), i), groups[name], "k.", markersize=4)
        right.set_xticks(range(len(GROUPS)), GROUPS)
        finish(right, "", "mutual information given the class (nats)", "(b) by position", legend=False)
        return {self.name: figure}

    def claims(self, table: Table) -> list[Claim]:
        """Nearby patches share more, whatever the settings."""
        shown = _concluded(_matrix(table))
        said = [(claim, exactly(true, evidence)) for claim, (true, evidence) in shown.items()]
        others = table[table["quantity"] == OTHER].groupby(["split", "dimensions", "neighbours"])
        found = {key: _concluded(_matrix(part, OTHER)) for key, part in others}
        failed = [
            f"{split}, {dimensions} dimensions, {k} neighbours: not that {claim} ({evidence})"
            for (split, dimensions, k), of in found.items()
            for claim, (true, evidence) in of.items()
            if not true
        ]
        if found:
            evidence = (
                f"{len(found)} other settings on training and test items; {'; '.join(failed) or 'all three in each'}"
            )
            said.append(
                ("dimensions 10 to 30, 3 to 10 neighbours and both splits agree", exactly(not failed, evidence))
            )
        return self.judged(said)


def _concluded(matrix: Any) -> dict[str, tuple[bool, str]]:
    """What the paper concludes, whether it is so in this matrix, and by which numbers."""
    groups = _grouped(matrix)
    near, far = np.mean(groups["adjacent"]), np.mean(groups["far"])
    hits = sum(len(set(_largest(matrix, a)) & set(_neighbours(a))) for a in range(9))
    total = sum(len(_neighbours(a)) for a in range(9))
    median, smallest = float(np.nanmedian(matrix)), float(np.nanmin(matrix))
    return {
        "adjacent patches share more information than far ones": (
            bool(near > far), f"{near:.3f} against {far:.3f} nats",
        ),
        "the largest entries of a row are mostly its neighbours": (2 * hits > total, f"{hits} of {total}"),
        f"it is clearly above zero ({CLEARLY} nats) for at least half of the pairs": (
            median > CLEARLY, f"median {median:.3f}, smallest {smallest:.3f} nats",
        ),
    }  # fmt: skip


def _matrix(table: Table, quantity: str = SHOWN) -> Any:
    matrix = np.full((9, 9), np.nan)
    for row in table[table["quantity"] == quantity].itertuples():
        matrix[row.agent, row.other] = matrix[row.other, row.agent] = row.value
    return matrix


def _neighbours(a: int) -> list[int]:
    row, column = divmod(a, SIDE)
    return [b for b in range(9) if abs(b // SIDE - row) + abs(b % SIDE - column) == 1]


def _largest(matrix: Any, a: int) -> list[int]:
    """As many of the largest entries of a row as the patch has neighbours."""
    order = np.argsort(-np.where(np.isnan(matrix[a]), -np.inf, matrix[a]))
    return [int(b) for b in order[: len(_neighbours(a))]]


def _grouped(matrix: Any) -> dict[str, list[float]]:
    groups: dict[str, list[float]] = {name: [] for name in GROUPS}
    for a, b in combinations(range(9), 2):
        value = float(matrix[a, b])
        same_row, same_column = a // SIDE == b // SIDE, a % SIDE == b % SIDE
        if b in _neighbours(a):
            groups["adjacent"].append(value)
        if same_row:
            groups["same row"].append(value)
        if same_column:
            groups["same column"].append(value)
        if not (same_row or same_column):
            groups["far"].append(value)
    return groups


def _box(x: float, y: float) -> tuple[list[float], list[float]]:
    return [x - 0.48, x + 0.48, x + 0.48, x - 0.48, x - 0.48], [y - 0.48, y - 0.48, y + 0.48, y + 0.48, y - 0.48]
