"""Temperature scaling: the main panels with calibrated scores, and the temperatures themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from collegium.lab.claims import Claim, above, below
from collegium.lab.figures import curve, finish, log_sizes
from collegium.lab.studies.main import CifarMain, MainStudy, ModelNetMain
from collegium.lab.table import Table
from collegium.plots import panels


class _Calibrated(MainStudy):
    calibrate = True

    def draw(self, table: Table) -> dict[str, Any]:
        """The main panels, and a figure of mean and spread of the temperatures."""
        figure, (axes,) = panels(1, width=5.5)
        T = table[table["quantity"] == "temperature"]
        curve(axes, T, "n0", "mean over agents", 1)
        spread = T.groupby(["n0", "repetition"])["value"].std().reset_index()
        curve(axes, spread, "n0", "spread over agents", 0)
        axes.axhline(1, color="black", linewidth=0.6, linestyle=":")
        log_sizes(axes, table["n0"].unique())
        finish(axes, "N_0", "temperature", "fitted temperatures")
        return super().draw(table) | {f"{self.name}-diagnostics": figure}

    def claims(self, table: Table) -> list[Claim]:
        """Above one and shrinking, beside what is claimed of the panels."""
        T = table[table["quantity"] == "temperature"]
        means = T.groupby(["n0", "repetition"])["value"].mean()
        slopes = [
            np.polyfit(np.log(part.index.get_level_values("n0").astype(float)), part, 1)[0]
            for _, part in means.groupby("repetition")
            if len(part) > 1
        ]
        said = [
            ("temperatures are above one on average", above(means.groupby("repetition").mean(), 1.0)),
            ("temperatures shrink with N_0", below(slopes)),
        ]
        return [Claim(self.name, claim, *verdict) for claim, verdict in said] + super().claims(table)


class CifarTemperature(_Calibrated, CifarMain):
    """Fig. 16 and the temperatures of Fig. 14."""

    name = "cifar-temperature"
    title = "CIFAR-10 patches with temperature scaling"
    figures = "Fig. 14b, 16"


class ModelNetTemperature(_Calibrated, ModelNetMain):
    """Fig. 8 and the temperatures of Fig. 14."""

    name = "modelnet-temperature"
    title = "ModelNet views with temperature scaling"
    figures = "Fig. 8, 14a"
