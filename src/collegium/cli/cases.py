"""Where the scores of a comparison come from: agents trained on a data set by name, or score records in files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collegium import agents, data, fusion
from collegium.agents.optimisation import ADAM, SGD, Training
from collegium.errors import DataError, ModelError
from collegium.policy import Policy

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


SOURCES = {
    "digits": Source("logistic", Training(learning_rate=0.02, batch_size=32), grid=(3, 3)),
    "cifar10": Source("patch-cnn", ADAM, n0=1000, grid=(3, 3)),
    "modelnet": Source("micro-cnn", SGD),
}


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
        return Case(agents.Scores.load(self.paths[r]))

    def methods(self, r: int, network: Policy, rounds: int, calibrate: bool) -> list[Method]:
        """All methods that need nothing but scores."""
        return fusion.all_methods(network, rounds, calibrate=calibrate)


@dataclass(frozen=True)
class Trained:
    """Repetitions in which agents are trained on a data set: a new sample, a new split, new models each time."""

    name: str
    repetitions: int
    model_name: str | None = None
    n0: int | None = None
    epochs: int | None = None
    classes: tuple[str, str] | None = None
    root: Path | None = None
    workers: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        self.model()  # so that a wrong name is noticed before anything is loaded

    @property
    def source(self) -> Source:
        """What is usual for this data set."""
        return SOURCES[self.name]

    @property
    def title(self) -> str:
        """What is compared, in a few words."""
        size = self.n0 or self.source.n0
        return f"{self.name}{f', N_0 = {size}' if size else ''}, {self.model_name or self.source.model}"

    @property
    def left_out(self) -> str:
        """What cannot be compared, and why."""
        return "" if self._branch() else "VFL-JT needs the extra: pip install 'collegium[torch]'. It is left out"

    def case(self, r: int) -> Case:
        """Train the agents of a repetition."""
        settings: dict[str, Any] = {} if self.classes is None else {"classes": self.classes}
        if self.name == "digits":
            if self.root is not None:
                raise DataError("the digits come with scikit-learn: leave out --root")
            settings["seed"] = int(self._seeds(r).generate_state(1)[0])
        else:
            settings["root"] = self.root
        train, test = getattr(data, self.name)(**settings)
        n0 = self.source.n0 if self.n0 is None else self.n0
        scores = agents.train(train, test, self.model(), n0, self._seeds(r, 0), self.workers)
        return Case(scores, train, test)

    def methods(self, r: int, network: Policy, rounds: int, calibrate: bool) -> list[Method]:
        """All methods; AdaBoost fits the agents anew, and VFL-JT trains branches of their family."""
        from collegium.fusion.multi_view_oracle import HEAD

        seed = int(self._seeds(r).generate_state(2)[1])
        oracle: Method
        if self.source.grid is None:
            head = HEAD if self.epochs is None else replace(HEAD, max_epochs=self.epochs)
            oracle = fusion.MultiViewOracle(training=head, workers=self.workers, random_state=seed)
        else:
            oracle = fusion.CentralOracle(self.model(), self.source.grid, random_state=seed)
        return fusion.all_methods(
            network, rounds, calibrate=calibrate, model=self.model(), branch=self._branch(), oracle=oracle,
            workers=self.workers, random_state=seed,
        )  # fmt: skip

    def model(self) -> Any:
        """The agents' recipe."""
        name = self.model_name or self.source.model
        if name not in MODELS:
            raise ModelError(f"there is no model {name!r}: choose one of {', '.join(MODELS)}")
        if name != "logistic":
            return getattr(agents, MODELS[name])(training=self._training())
        if self.source.grid is None:
            raise ModelError(f"scikit-learn's logistic regression is too slow for {self.name}: take pixel-logistic")
        from sklearn.linear_model import LogisticRegression

        return agents.SklearnModel(LogisticRegression(max_iter=1000))

    def _branch(self) -> Any:
        """A PyTorch model of the agents' family, for joint training."""
        model = self.model()
        if isinstance(model, agents.SklearnModel):
            return agents.PixelLogistic(training=self._training()) if find_spec("torch") else None
        return model

    def _training(self) -> Training:
        usual = self.source.training
        return usual if self.epochs is None else replace(usual, max_epochs=self.epochs)

    def _seeds(self, *path: int) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.seed, spawn_key=path)
