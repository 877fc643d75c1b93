"""What the experiments look like: patches or views, the network, the local data sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from collegium.data import Dataset, patches
from collegium.lab import study_networks
from collegium.lab.figures import COLOURS
from collegium.lab.job import load
from collegium.lab.studies import stand_ins
from collegium.lab.study import DataStudy, Options
from collegium.lab.table import Factors, StudyRow, Table
from collegium.plots import network_figure, panels
from collegium.policy import Policy

SHOWN = 6
"""Items in the picture of the local data sets."""
Views = dict[int, dict[int, Any]]
"""Pictures by item and agent."""


class Setup(DataStudy):
    """What both data sets share."""

    dataset: ClassVar[str]
    factors: ClassVar[Factors] = {"sender": int, "item": int, "row": int, "column": int, "channel": int}

    def examine(self, options: Options) -> Iterable[StudyRow]:
        """The network's links and weights, and the pixels of the items that are shown."""
        train, _ = load(self.dataset, options.root)
        over = study_networks.of(train.size)
        for l, k, weight in zip(over.graph.indices, over.graph.hearers, over.weights, strict=True):
            yield self.row(None, "weight", weight, agent=int(k), sender=int(l))
        for item in _chosen(train):
            for k, view in enumerate(train.views):
                yield from self._pixels(view[item], item, k)

    def _pixels(self, view: Any, item: int, k: int) -> Iterable[StudyRow]:
        small = np.asarray(view)
        step = max(small.shape[0] // 56, 1)
        small = np.atleast_3d(small[::step, ::step])
        for (row, column, channel), value in np.ndenumerate(small):
            yield self.row(None, "pixel", value, agent=k, item=item, row=row, column=column, channel=channel)

    def draw(self, table: Table) -> dict[str, Any]:
        """The network, and what each agent sees."""
        weights = table[table["quantity"] == "weight"]
        A = np.zeros((K := int(table["agent"].max()) + 1, K))
        A[weights["sender"].to_numpy(int), weights["agent"].to_numpy(int)] = weights["value"]
        over = Policy(A)
        title = f"{over.links} directed links, self-loops not drawn"
        return {f"{self.name}-network": network_figure(over, title), **self._pictures(_images(table))}

    def stand_ins(self) -> dict[str, Any]:
        """The figures that show items, with pictures of our own: the data sets' are not ours to hand on."""
        return self._pictures(self._own(), " (a drawing in place of the data)")

    def _pictures(self, views: Views, note: str = "") -> dict[str, Any]:
        return {f"{self.name}-local": _mosaic(views, f"a row per agent, a column per item{note}")}

    def _own(self) -> Views:
        raise NotImplementedError


class CifarSetup(Setup):
    """Fig. 1 and the picture of the local data sets."""

    name = "cifar-setup"
    title = "CIFAR-10 patches: what each agent sees, the network, the local data sets"
    figures = "Fig. 1, H.1"
    dataset = "cifar10"

    def _pictures(self, views: Views, note: str = "") -> dict[str, Any]:
        """The patch map too."""
        figure, (axes,) = panels(1, width=4.4, height=4.2)
        item = next(iter(views))
        whole = patches.join([views[item][k][None] for k in range(9)], (3, 3))[0]
        axes.imshow(whole.astype(np.uint8))
        for k, (rows, columns) in enumerate(patches.cells(whole.shape[0], whole.shape[1], (3, 3))):
            axes.axhline(rows.start - 0.5, color="white", linewidth=1.5)
            axes.axvline(columns.start - 0.5, color="white", linewidth=1.5)
            axes.text(columns.start + 0.3, rows.start + 2.2, str(k), color="yellow", fontsize=11, fontweight="bold")
        axes.set_axis_off()
        axes.set_title(f"what each agent sees of an image{note}", fontsize=9)
        return {f"{self.name}-patches": figure, **super()._pictures(views, note)}

    def _own(self) -> Views:
        cut = patches.cut(np.stack(stand_ins.faces(SHOWN)), (3, 3))
        return {i: {k: cut[k][i] for k in range(9)} for i in range(SHOWN)}


class ModelNetSetup(Setup):
    """Fig. 6: the twelve views of an object and the network."""

    name = "modelnet-setup"
    title = "ModelNet views: what each agent sees, the network"
    figures = "Fig. 6"
    dataset = "modelnet"

    def _own(self) -> Views:
        return {i: dict(enumerate(views)) for i, views in enumerate(stand_ins.boxes(SHOWN, 12))}


def _chosen(train: Dataset) -> list[int]:
    """The first items of each class, in turn."""
    rows = [np.flatnonzero(train.y == sign)[: SHOWN // 2] for sign in (1, -1)]
    return [int(i) for pair in zip(*rows, strict=True) for i in pair]


def _images(table: Table) -> Views:
    """Pictures by item and agent, from the table's pixels."""
    pixels = table[table["quantity"] == "pixel"]
    found: Views = {}
    for (item, agent), part in pixels.groupby(["item", "agent"]):
        places = part[["row", "column", "channel"]].to_numpy(np.int64)
        picture = np.empty(places.max(axis=0) + 1)
        picture[tuple(places.T)] = part["value"]
        found.setdefault(int(item), {})[int(agent)] = picture
    return found


def _mosaic(views: Views, title: str) -> Any:
    """A row per agent, a column per item; those of one item of each class stand out."""
    K = len(next(iter(views.values())))
    figure, axes = panels(K * len(views), width=1.0, height=0.85, rows=K)
    grid = np.reshape(axes, (K, len(views)))
    for j, item in enumerate(views):
        for k in range(K):
            picture = views[item][k]
            grid[k, j].imshow(picture.squeeze().astype(np.uint8), cmap="gray", vmin=0, vmax=255)
            grid[k, j].set_xticks([])
            grid[k, j].set_yticks([])
            if j < 2:  # items of the two classes alternate
                grid[k, j].spines[:].set(color=COLOURS[j], linewidth=2.5)
            if j == 0:
                grid[k, j].set_ylabel(f"agent {k}", rotation=0, ha="right", va="center", fontsize=8)
    figure.suptitle(title, fontsize=9)
    return figure
