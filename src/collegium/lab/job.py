"""A job: one repetition of a training, from data to score record; the same job gives the same bytes anywhere."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from collegium import agents, data, fusion
from collegium.agents.optimisation import ADAM, SGD, Training
from collegium.data import Dataset
from collegium.errors import DataError
from collegium.fusion.multi_view_oracle import HEAD
from collegium.lab.records import MethodResult, Record

FAMILIES = {"A": "PatchCNN", "B": "PixelLogistic", "C": "SmallResNet", "M": "MicroCNN"}
"""Model families by the letters of the paper's layouts, and M for ModelNet's."""
_VERSION = 1


@dataclass(frozen=True)
class Job:
    """What to train, on what, and from which seed."""

    dataset: str
    """cifar10, modelnet or digits."""
    n0: int
    repetition: int
    layout: str
    """A letter of `FAMILIES` for all agents, or one for each."""
    seed: int = 0
    methods: bool = False
    """Whether AdaBoost, VFL-JT and the central oracle, which train on views, are run as well."""
    epochs: int | None = None
    """Epochs at most, for quick looks; the paper's 100 if None."""

    @property
    def key(self) -> str:
        """The record's name: readable, then a hash of everything that determines its numbers."""
        settings = {**asdict(self), "training": repr(self.training), "version": _VERSION}
        settings.pop("methods")  # a record with more in it serves as well
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
        return f"{self.dataset}-n{self.n0}-{self.layout}-r{self.repetition}-{digest}"

    @property
    def training(self) -> Training:
        """The paper's settings for these data."""
        usual = {"cifar10": ADAM, "modelnet": SGD, "digits": replace(ADAM, learning_rate=0.01, batch_size=32)}
        chosen = usual[self.dataset]
        return chosen if self.epochs is None else replace(chosen, max_epochs=self.epochs)

    def recipes(self, K: int) -> list[Any]:
        """One model per agent."""
        letters = self.layout * K if len(self.layout) == 1 else self.layout
        if len(letters) != K:
            raise DataError(f"the layout {self.layout} names {len(letters)} families, but there are {K} agents")
        return [getattr(agents, FAMILIES[letter])(training=self.training) for letter in letters]


@lru_cache(1)
def load(dataset: str, root: str | None) -> tuple[Dataset, Dataset]:
    """Training and test items; read once per process."""
    if dataset == "digits":
        return data.digits()
    train, test = getattr(data, dataset)(root=root)
    return train, test


def run(job: Job, root: str | None = None, workers: int | None = 1) -> Record:
    """Train the agents of a job and let the methods that need views decide.

    The sample, the split and all weights come from (seed, repetition) alone, so that neither `workers` nor the
    process or machine it runs on changes a number.
    """
    train, test = load(job.dataset, root)
    recipes = job.recipes(train.size)
    seeds = np.random.SeedSequence(job.seed, spawn_key=(job.repetition,))
    scores = agents.train(train, test, recipes, job.n0, seeds, workers)
    results: dict[str, MethodResult] = {}
    if job.methods:
        own = int(seeds.generate_state(1)[0])
        for method in _view_methods(job, recipes, own, workers):
            method.fit(scores, train)
            decision = method.decide(test.views)
            epochs = getattr(method, "epochs_", 0)
            results[method.name] = MethodResult(decision.statistics[:, 0], method.training_transmissions_, epochs)
    return Record(scores, results, job.key)


def _view_methods(job: Job, recipes: list[Any], seed: int, workers: int | None) -> list[fusion.Method]:
    oracle: fusion.Method
    if job.dataset == "modelnet":
        head = HEAD if job.epochs is None else replace(HEAD, max_epochs=job.epochs)
        oracle = fusion.MultiViewOracle(training=head, workers=workers, random_state=seed)
    else:
        oracle = fusion.CentralOracle(recipes[0], (3, 3), threads=1, random_state=seed)
    return [
        fusion.AdaBoost(recipes, random_state=seed),
        fusion.VFLJT(recipes, workers=workers, random_state=seed),
        oracle,
    ]
