"""Parts such as users bring, as files and as entry points of a package, in a folder of the test's own."""

import sys
from pathlib import Path

DATA = """\
import numpy as np

from collegium.data import Dataset


def load():
    rng = np.random.default_rng(0)

    def draw(n):
        y = np.where(np.arange(n) % 2, -1, 1)
        views = [0.6 * y[:, None] + rng.normal(size=(n, k + 2)) for k in range(5)]
        return Dataset(views, y, ("yes", "no"), tuple(f"sensor {k}" for k in range(5)), "made up")

    return draw(80), draw(60)
"""

MODELS = """\
import numpy as np
from sklearn.naive_bayes import GaussianNB

from collegium import agents


class Mean(agents.Model):
    def fit(self, view, y, validation=None):
        self.direction = (view * np.asarray(y)[:, None]).mean(axis=0)
        return self

    def scores(self, view):
        return view @ self.direction


class Apart(Mean):
    needs_process = True


def make(train):
    return [GaussianNB() if k % 2 else Mean() for k in range(train.size)]


def apart(train):
    return Apart()
"""

STUDY = """\
from pathlib import Path

from collegium.lab.claims import below
from collegium.lab.figures import curve, finish
from collegium.lab.job import Job
from collegium.lab.study import Study
from collegium.lab.study_networks import of
from collegium.lab.table import values
from collegium.network import collaborate
from collegium.plots import panels
from collegium.protocol import DeltaTrigger

THRESHOLDS = (0.0, 2.0)
DATA = Path(__file__).with_name("my_data.py")


class Thrift(Study):
    name = "thrift"
    title = "Transmissions at two thresholds"
    factors = {"threshold": float}

    def jobs(self, options):
        return [Job(f"{DATA}:load", 40, r, "L", options.seed) for r in range(options.reps or 3)]

    def evaluate(self, job, record, options):
        s = record.scores
        for threshold in THRESHOLDS:
            run = collaborate(s.statistics("test"), of(s.size), 5, DeltaTrigger(threshold))
            yield self.row(job, "sent", run.transmissions.mean(), method="Ours", round=5, threshold=threshold)

    def draw(self, table):
        figure, (axes,) = panels(1)
        curve(axes, table, "threshold", "sent")
        finish(axes, "threshold", "transmissions")
        return {self.name: figure}

    def claims(self, table):
        less = values(table, threshold=2.0) - values(table, threshold=0.0)
        return self.judged([("a threshold saves transmissions", below(less))])
"""


def write_parts(folder: Path) -> Path:
    """my_data.py, my_models.py and my_study.py."""
    for name, text in (("my_data", DATA), ("my_models", MODELS), ("my_study", STUDY)):
        (folder / f"{name}.py").write_text(text)
    return folder


def install(folder: Path, monkeypatch, **groups: dict[str, str]) -> None:
    """A package in the folder, for this process and those it starts, with entry points such as data={"office": "…"}."""
    info = folder / "parts-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parts\nVersion: 1.2\n")
    lines = []
    for group, entries in groups.items():
        lines += [f"[collegium.{group}]", *(f"{name} = {value}" for name, value in entries.items())]
        for value in entries.values():  # imported by name, and to be forgotten with the folder
            monkeypatch.setitem(sys.modules, value.partition(":")[0], None)
            del sys.modules[value.partition(":")[0]]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(folder)
