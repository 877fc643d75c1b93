"""Where the scores of a comparison come from: agents trained on a data set by name, or score records in files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collegium import agents, data, fusion
from collegium._util import plugins
from collegium.agents.optimisation import ADAM, SGD, Training
from collegium.cli.labelled import read_record
from collegium.errors import DataError, ModelError
from collegium.lab import own
from collegium.schedule import Schedule

if TYPE_CHECKING:
    from collegium.agents import Scores
    from collegium.data import Dataset
    from collegium.fusion import Method

MODELS = {
    "logistic": "",  # scikit-learn's
    "pixel-logistic": "PixelLogistic",
    "patch-cnn": "PatchCNN",
    "small-resnet": "SmallResNet",
    "micro-cnn": "MicroCNN",
}


class Case(NamedTuple):
    """One repetition: the agents' scores, and the items behind them if they are at hand."""

    scores: Scores
    train: Dataset | None = None
    test: Dataset | None = None


class Source(NamedTuple):
    """How the agents of a data set are trained unless told otherwise."""

    model: str
    training: Training
    n0: int | None = None
    """None for as many items as there are."""
    grid: tuple[int, int] | None = None
    """How the views make one image, if they do."""
    classes: tuple[str, ...] | None = None
    """Which are taken; None for those the data set takes by itself."""
    seeded: bool = False
    """Whether every repetition splits it anew."""


_PIXELS = Training(learning_rate=0.02, batch_size=32)
SOURCES = {
    "digits": Source("logistic", _PIXELS, grid=(3, 3), classes=("3", "8"), seeded=True),
    "cifar10": Source("patch-cnn", ADAM, n0=1000, grid=(3, 3)),
    "modelnet": Source("micro-cnn", SGD),
    "wall_robot": Source("logistic", ADAM, seeded=True),
    "multiple_features": Source("logistic", ADAM, seeded=True),
    "occupancy": Source("logistic", ADAM),
}
CHOSEN = ("digits", "cifar10", "modelnet")
"""Those of which some classes can be taken."""
OWN = Source("logistic", ADAM)
"""A user's data."""


@dataclass(frozen=True)
class Recorded:
    """Repetitions read from score records: no views, so what is trained on views is left out."""

    paths: Sequence[Path]

    @property
    def repetitions(self) -> int:
        """One per file."""
        return len(self.paths)

    @property
    def title(self) -> str:
        """What is compared, in a few words."""
        return self.paths[0].name if len(self.paths) == 1 else f"{len(self.paths)} score records"

    @property
    def left_out(self) -> str:
        """What cannot be compared, and why."""
        return "VFL-JT and the central oracle are trained on views, which a score record does not keep: left out"

    def case(self, r: int) -> Case:
        """Read the record of a repetition."""
        return Case(read_record(self.paths[r]))

    def methods(self, r: int, network: Schedule, rounds: int, calibrate: bool) -> list[Method]:
        """All methods that need nothing but scores."""
        return fusion.all_methods(network, rounds, calibrate=calibrate)


@dataclass(frozen=True)
class Trained:
    """Repetitions in which agents are trained on a data set: a new sample, a new split, new models each time.

    The data set and the models are Collegium's, by name, or a user's, by entry point or as FILE.py:NAME.
    """

    name: str
    repetitions: int
    model_name: str | None = None
    n0: int | None = None
    epochs: int | None = None
    classes: tuple[str, ...] | None = None
    """("all",) for all there are."""
    root: Path | None = None
    workers: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Notice a wrong name, or a user's file that is wrong, before anything is trained."""
        if self.name not in SOURCES:
            for option, value in {"--classes": self.classes, "--root": self.root}.items():
                if value is not None:
                    raise DataError(
                        f"{option} is for {', '.join(SOURCES)}: leave it out, {self.name} has data of its own"
                    )
            plugins.load(self.name, plugins.DATA, SOURCES)
        elif self.classes is not None and self.name not in CHOSEN:
            raise DataError(f"--classes is for {', '.join(CHOSEN)}: {self.name} has all its classes")
        if self._own_models is None:
            self._family()
        else:
            plugins.load(self._own_models, plugins.MODELS, MODELS)

    @property
    def source(self) -> Source:
        """What is usual for this data set."""
        return SOURCES.get(self.name, OWN)

    @property
    def _own_models(self) -> str | None:
        return None if self.model_name in (None, *MODELS) else self.model_name

    @property
    def title(self) -> str:
        """What is compared, in a few words."""
        size = self.n0 or self.source.n0
        model = plugins.short(self.model_name or self.source.model)
        return f"{plugins.short(self.name)}{f', N_0 = {size}' if size else ''}, {model}"

    @property
    def left_out(self) -> str:
        """What cannot be compared, and why."""
        if self.name in SOURCES and self._own_models is None:
            return "" if self._branch() else "VFL-JT needs the extra: pip install 'collegium[torch]'. It is left out"
        reasons = []
        if self._branch() is None:
            reasons.append("VFL-JT trains PyTorch models only: left out")
        if self._oracle(0) is None:
            reasons.append("The central oracle needs one scikit-learn model for all agents: left out")
        return "\n".join(reasons)

    def case(self, r: int) -> Case:
        """Train the agents of a repetition."""
        train, test = self._data(r)
        n0 = self.source.n0 if self.n0 is None else self.n0
        scores = agents.train(train, test, self.recipe, n0, self._seeds(r, 0), self.workers)
        return Case(scores, train, test)

    def _data(self, r: int) -> tuple[Dataset, Dataset]:
        if self.name not in SOURCES:
            return own.data(self.name)
        settings: dict[str, Any] = {}
        classes = self.classes or self.source.classes
        if classes is not None:
            settings["classes"] = None if classes == ("all",) else classes
        if self.source.seeded:
            settings["seed"] = int(self._seeds(r).generate_state(1)[0])
        if self.name != "digits":
            settings["root"] = self.root
        elif self.root is not None:
            raise DataError("the digits come with scikit-learn: leave out --root")
        train, test = getattr(data, self.name)(**settings)
        return train, test

    def methods(self, r: int, network: Schedule, rounds: int, calibrate: bool) -> list[Method]:
        """All methods; AdaBoost fits the agents anew, and VFL-JT trains branches of their family."""
        seed = int(self._seeds(r).generate_state(2)[1])
        return fusion.all_methods(
            network, rounds, calibrate=calibrate, model=self.recipe, branch=self._branch(), oracle=self._oracle(seed),
            workers=self.workers, random_state=seed,
        )  # fmt: skip

    @cached_property
    def recipe(self) -> Any:
        """The agents' model; a list of one for each, where they are a user's."""
        return self._family() if self._own_models is None else own.models(self._own_models, self._data(0)[0])

    def _family(self) -> Any:
        name = self.model_name or self.source.model
        if name != "logistic":
            return getattr(agents, MODELS[name])(training=self._training())
        if self.name == "modelnet":
            raise ModelError(f"scikit-learn's logistic regression is too slow for {self.name}: take pixel-logistic")
        return own.logistic()

    def _branch(self) -> Any:
        """A PyTorch model of the agents' family, or one for each agent, for joint training; None if there is none."""
        if isinstance(self.recipe, list):
            return self.recipe if own.can_train_jointly(self.recipe) else None
        if not isinstance(self.recipe, agents.SklearnModel):
            return self.recipe
        is_image = self.name in SOURCES  # nobody knows of a user's views
        return agents.PixelLogistic(training=self._training()) if is_image and find_spec("torch") else None

    def _oracle(self, seed: int) -> Method | None:
        """One model on everything, where one can be had."""
        from collegium.fusion.multi_view_oracle import HEAD

        if self.name == "modelnet":
            head = HEAD if self.epochs is None else replace(HEAD, max_epochs=self.epochs)
            return fusion.MultiViewOracle(training=head, workers=self.workers, random_state=seed)
        if self.name in SOURCES and self._own_models is None:
            return fusion.CentralOracle(self.recipe, self.source.grid, random_state=seed)
        return own.oracle(self.recipe if isinstance(self.recipe, list) else [self.recipe], self.source.grid, seed)

    def _training(self) -> Training:
        usual = self.source.training
        return usual if self.epochs is None else replace(usual, max_epochs=self.epochs)

    def _seeds(self, *path: int) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.seed, spawn_key=path)
