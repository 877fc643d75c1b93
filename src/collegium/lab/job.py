"""A job: one repetition of a training, from data to score record; the same job gives the same bytes anywhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from collegium import agents, data, fusion, schedule
from collegium._util import plugins
from collegium.agents.optimisation import ADAM, SGD, SGD_SHORT, Training
from collegium.data import Dataset
from collegium.errors import DataError
from collegium.fusion.multi_view_oracle import HEAD
from collegium.lab import own
from collegium.lab.records import MethodResult, Record

_Loader = Callable[[str | None, np.random.Generator], tuple[Dataset, Dataset]]
_LOADERS: dict[str, _Loader] = {
    "cifar10": lambda root, rng: data.cifar10(root=root),
    "modelnet": lambda root, rng: data.modelnet(root=root),
    "digits": lambda root, rng: data.digits((3, 8)),
    "wall_robot": lambda root, rng: data.wall_robot(root=root, seed=rng),
    "wall_robot_blocks": lambda root, rng: data.wall_robot("blocks", root=root, seed=rng),
    "occupancy": lambda root, rng: data.occupancy(root=root),
    "multiple_features": lambda root, rng: data.multiple_features(root=root, seed=rng),
}
DATASETS = tuple(_LOADERS)
DRAWN = ("wall_robot", "wall_robot_blocks", "multiple_features")
"""Those without an official split: another one is drawn in every repetition."""
_PATCHES = {"cifar10": (3, 3), "digits": (3, 3)}
"""Data whose views are patches of one image."""
FAMILIES = {"A": "PatchCNN", "B": "PixelLogistic", "C": "SmallResNet", "M": "MicroCNN"}
"""Model families by the letters of the paper's layouts, and M for ModelNet's."""
SHORT = "m"
"""The letter of ModelNet's agents as earlier results had them: 16 channels, and a patience that ends on a plateau."""
LOGISTIC = "L"
"""The letter of scikit-learn's logistic regression, which takes views of any kind."""
STANDARDISED = "S"
"""The same on columns of mean 0 and spread 1."""
TREES = "T"
"""A few small boosted trees of scikit-learn's."""
_SKLEARN = {LOGISTIC: own.logistic, STANDARDISED: own.standardised, TREES: own.trees}
_VERSION = 1


@dataclass(frozen=True)
class Job:
    """What to train, on what, and from which seed."""

    dataset: str
    """One of `DATASETS`; or a user's own, an entry point of collegium.data or FILE.py:NAME."""
    n0: int
    repetition: int
    layout: str
    """A letter of `FAMILIES`, or m, L, S or T, for all agents, or one for each; means nothing beside `models`."""
    seed: int = 0
    methods: bool = False
    """Whether AdaBoost, VFL-JT and the central oracle, which train on views, are run as well."""
    epochs: int | None = None
    """Epochs at most, for quick looks; the paper's 100 if None."""
    models: str | None = None
    """A user's own models, an entry point of collegium.models or FILE.py:NAME."""

    def __post_init__(self) -> None:
        for name in ("dataset", "models"):  # workers may be in another folder
            if getattr(self, name) is not None:
                object.__setattr__(self, name, plugins.absolute(getattr(self, name)))

    @property
    def key(self) -> str:
        """The record's name: readable, then a hash of everything that determines its numbers."""
        settings = {**asdict(self), "training": repr(self.training), "version": _VERSION}
        settings.pop("methods")  # a record with more in it serves as well
        if self.dataset not in DATASETS:
            settings["dataset"] = plugins.fingerprint(self.dataset, plugins.DATA, DATASETS)
        if settings.pop("models") is not None:
            settings["layout"] = plugins.fingerprint(str(self.models), plugins.MODELS)
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
        by = plugins.label(self.models) if self.models else self.layout
        return f"{plugins.label(self.dataset)}-n{self.n0}-{by}-r{self.repetition}-{digest}"

    def load_own(self) -> None:
        """Load the user's files, so that a mistake in them is noticed before workers are started."""
        if self.dataset not in DATASETS:
            plugins.load(self.dataset, plugins.DATA, DATASETS)
        if self.models is not None:
            plugins.load(self.models, plugins.MODELS)

    @property
    def training(self) -> Training:
        """The paper's settings for these data."""
        usual = {"cifar10": ADAM, "modelnet": SGD, "digits": replace(ADAM, learning_rate=0.01, batch_size=32)}
        chosen = SGD_SHORT if self.layout == SHORT else usual.get(self.dataset, ADAM)
        return chosen if self.epochs is None else replace(chosen, max_epochs=self.epochs)

    def recipes(self, train: Dataset) -> list[Any]:
        """One model per agent of these data."""
        if self.models is not None:
            return own.models(self.models, train)
        K = train.size
        letters = self.layout * K if len(self.layout) == 1 else self.layout
        if len(letters) != K:
            raise DataError(f"the layout {self.layout} names {len(letters)} families, but there are {K} agents")
        return [self._recipe(letter) for letter in letters]

    def _recipe(self, letter: str) -> Any:
        if letter in _SKLEARN:
            return _SKLEARN[letter]()
        if letter == SHORT:
            return agents.MicroCNN(channels=16, training=self.training)
        if letter not in FAMILIES:
            raise DataError(
                f"there is no family {letter!r} for a layout: choose among {', '.join((*FAMILIES, SHORT, *_SKLEARN))}"
            )
        return getattr(agents, FAMILIES[letter])(training=self.training)


def load(dataset: str, root: str | None, seed: int = 0, repetition: int = 0) -> tuple[Dataset, Dataset]:
    """Training and test items; read once per process, and for every repetition where its split is drawn."""
    if dataset not in DATASETS:
        return own.data(dataset)
    return _load(dataset, root, (seed, repetition) if dataset in DRAWN else (0, 0))


@lru_cache(1)
def _load(dataset: str, root: str | None, entropy: tuple[int, int]) -> tuple[Dataset, Dataset]:
    return _LOADERS[dataset](root, np.random.default_rng(entropy))


def run(job: Job, root: str | None = None, workers: int | None = 1) -> Record:
    """Train the agents of a job and let the methods that need views decide.

    The sample, the split and all weights come from (seed, repetition) alone, so that neither `workers` nor the
    process or machine it runs on changes a number.
    """
    train, test = load(job.dataset, root, job.seed, job.repetition)
    recipes = job.recipes(train)
    seeds = np.random.SeedSequence(job.seed, spawn_key=(job.repetition,))
    scores = agents.train(train, test, recipes, job.n0, seeds, workers)
    results: dict[str, MethodResult] = {}
    if job.methods:
        drawn = int(seeds.generate_state(1)[0])
        for method in _view_methods(job, recipes, drawn, workers):
            with nullcontext() if own.can_train_jointly(recipes) else threadpool_limits(1):  # as agents are trained
                method.fit(scores, train)
                decision = method.decide(test.views)
            epochs = getattr(method, "epochs_", 0)
            results[method.name] = MethodResult(decision.statistics[:, 0], method.training_transmissions_, epochs)
    return Record(scores, results, job.key)


def _view_methods(job: Job, recipes: list[Any], seed: int, workers: int | None) -> list[fusion.Method]:
    oracle: fusion.Method | None
    if job.dataset == "modelnet":
        head = HEAD if job.epochs is None else replace(HEAD, max_epochs=job.epochs)
        oracle = fusion.MultiViewOracle(training=head, workers=workers, random_state=seed)
    elif job.dataset in _PATCHES and job.models is None:
        oracle = fusion.CentralOracle(recipes[0], _PATCHES[job.dataset], threads=1, random_state=seed)
    else:
        oracle = own.oracle(recipes, _PATCHES.get(job.dataset), seed)
    methods: list[fusion.Method] = [fusion.AdaBoost(recipes, random_state=seed)]
    if own.can_train_jointly(recipes):
        exact = schedule.exact(len(recipes))
        methods.append(fusion.VFLJT(recipes, workers=workers, random_state=seed))
        methods.append(fusion.TunedModels(recipes, exact, workers=workers, random_state=seed))
    return methods if oracle is None else [*methods, oracle]
