"""Any PyTorch module as an agent's model, and the paper's families: PatchCNN, PixelLogistic, SmallResNet, MicroCNN."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import fields, replace
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin

from collegium.agents._outputs import KINDS, probabilities_to_scores, to_scores, warn_of_probabilities
from collegium.agents._seeding import seed_sequence
from collegium.agents._splitting import split
from collegium.agents.base import Doubles, Model, View, check_weights
from collegium.agents.classes import inside, targets
from collegium.agents.inference import outputs, scoring
from collegium.agents.optimisation import (
    ADAM,
    SGD,
    History,
    Progress,
    Sample,
    Training,
    check_training,
    optimise,
    threads,
)
from collegium.agents.pipeline import probabilities
from collegium.errors import BackendError, CollegiumError, ModelError

if TYPE_CHECKING:
    from torch import Tensor, nn


# The seed and the number of threads belong to the whole process: models in several threads take turns.
ONE_AT_A_TIME = RLock()


def load_torch() -> Any:
    """The torch package, or the sentence that says how to get it."""
    try:
        import torch
    except ImportError:
        raise BackendError("PyTorch models need the extra: pip install 'collegium[torch]'") from None
    return torch


class TorchModel(ClassifierMixin, Model):  # type: ignore[misc]
    """Any `torch.nn.Module` with one output (the score), two (logits, the second for +1), or one per class (logits).

    `module` is either a module, scored as it is and, when fitted, trained on from a copy of its weights; or a function
    without arguments that makes one, called afresh for every fit. Views reach it as float32 tensors, otherwise
    unchanged, unless `transform` makes the tensor. `classes` says which classes the outputs of a module that is used as
    it is are of, where they are not those of the team in the same order; `fit` finds its own.

    `kind="probabilities"` takes the outputs of a module that is used as it is for probabilities, of +1 or of all
    classes, as a last sigmoid or softmax gives them. By itself, `kind="score"`, outputs that all lie between 0 and 1
    are warned of.
    """

    uses_validation: ClassVar[bool] = True
    needs_process: ClassVar[bool] = True
    reports_progress: ClassVar[bool] = True
    module_: nn.Module
    history_: History
    input_shape_: tuple[int, ...]

    def __init__(
        self,
        module: nn.Module | Callable[[], nn.Module],
        transform: Callable[[View], Tensor] | None = None,
        training: Training = ADAM,
        random_state: int | None = None,
        classes: Sequence[Any] | None = None,
        kind: str = "score",
    ) -> None:
        self.module = module
        self.transform = transform
        self.training = training
        self.random_state = random_state
        self.classes = classes
        self.kind = kind

    @property
    def weighs_items(self) -> bool:
        """Yes: each item's loss counts as much as its weight says."""
        return True

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, and those of the training as `training__learning_rate` and so on."""
        params: dict[str, Any] = super().get_params(deep)
        if deep and isinstance(self.training, Training):
            params |= {f"training__{field.name}": getattr(self.training, field.name) for field in fields(Training)}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set settings by name; `training__learning_rate=0.01` changes that one of the training."""
        inner = {name: params.pop(name) for name in list(params) if name.startswith("training__")}
        super().set_params(**params)
        if inner:
            changes = {name.removeprefix("training__"): value for name, value in inner.items()}
            known = [field.name for field in fields(Training)]
            for name in changes:
                if name not in known:
                    raise ModelError(f"there is no training__{name}: choose among {', '.join(known)}")
            check_training(self.training)
            self.training = replace(self.training, **changes)
        return self

    def fit(
        self,
        view: View,
        y: ArrayLike,
        validation: tuple[View, ArrayLike] | None = None,
        progress: Progress | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train with early stopping, from the seed `random_state`; the caller's own random numbers are left alone."""
        torch = load_torch()
        if self.kind != "score":
            raise ModelError("a module is trained by its logits: leave out its last sigmoid or softmax, and kind=")
        view = self.checked(view)
        targets(y, len(view))  # which refuses what are no labels
        classes = np.unique(np.asarray(y))
        labels = inside(y, len(view), classes)
        seed = int(seed_sequence(self.random_state, "random_state").generate_state(1)[0])
        check_training(self.training)
        weight = None if sample_weight is None else check_weights(sample_weight, len(view))
        if validation is None:
            learned_from, outside = split(labels, self.training.validation, np.random.default_rng(seed))
            held = view[outside], labels[outside]
            view, labels = view[learned_from], labels[learned_from]
            weight = None if weight is None else check_weights(weight[learned_from], len(view))
        else:
            held_view = self.checked(validation[0])
            held = held_view, inside(validation[1], len(held_view), classes)
            if len(held_view) == 0 or held_view.shape[1:] != view.shape[1:]:
                raise ModelError(
                    f"the validation set must hold items like those to learn from, of shape {view.shape[1:]}; "
                    f"got {held_view.shape}"
                )
        with (
            ONE_AT_A_TIME,
            torch.random.fork_rng(devices=[]),
            threads(self.training.threads),
            self.explained("be fitted on", view.shape),
        ):
            torch.manual_seed(seed)
            network = self.new_network(view, len(classes))
            learned, held_out = (
                Sample(self.inputs(network, part), self._targets(own, len(classes)), classes=len(classes))
                for part, own in ((view, labels), held)
            )
            if weight is not None:
                learned = learned._replace(weight=torch.from_numpy(weight.astype(np.float32)))
            history = optimise(network, learned, held_out, self.training, progress)
        self.module_, self.history_, self.input_shape_, self.classes_ = network, history, view.shape[1:], classes
        return self

    def scores(self, view: View) -> Doubles:
        """Logit differences, or the single output, shape (n,); of C > 2 classes, logits less their mean, (n, C)."""
        if self.kind not in KINDS:
            raise ModelError(f"kind must be one of {', '.join(KINDS)}; got {self.kind!r}")
        view = self.matching(view)
        network = self._fitted()
        if len(view) == 0:
            C = len(getattr(self, "classes_", ()))
            return np.empty((0, C) if C > 2 else 0)
        # In pieces, so that a large view is never held twice as floats.
        step = max(1, 2**22 // max(1, view[:1].size)) * 4
        with ONE_AT_A_TIME, scoring(), self.explained("score", view.shape):
            pieces = [
                outputs(network, self.prepare(network, view[i : i + step])).numpy() for i in range(0, len(view), step)
            ]
        self.scored_shape_ = view.shape[1:]
        found, name = np.concatenate(pieces), type(self).__name__
        if self.kind == "probabilities":
            return probabilities_to_scores(found, len(view), name)
        warn_of_probabilities(
            found,
            name,
            'leave out the last sigmoid or softmax of the module, or say TorchModel(…, kind="probabilities")',
        )
        return to_scores(found, len(view), name)

    def decision_function(self, view: View) -> Doubles:
        """The same as `scores`, under the name scikit-learn gives it."""
        return self.scores(view)

    def predict(self, view: View) -> NDArray[Any]:
        """The class of each item: of two the larger one where the score is positive, else that of the largest score."""
        scores = self.scores(view)
        places = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        unnamed = np.array([-1, 1]) if scores.ndim == 1 else np.arange(scores.shape[1])
        labels: NDArray[Any] = getattr(self, "classes_", unnamed)[places]
        return labels

    def predict_proba(self, view: View) -> Doubles:
        """Probabilities of the classes, shape (n, C), reading scores as log-odds or log-probabilities."""
        scores = self.scores(view)
        if scores.ndim == 2:
            return probabilities(scores)
        second = expit(scores)
        return np.column_stack([1 - second, second])

    def checked(self, view: Any) -> View:
        """The view as an array of numbers; what a transform is given may be anything."""
        try:
            array = np.asarray(view)
        except ValueError:
            raise ModelError("all items of a view must have the same shape") from None
        if array.ndim == 0:
            raise ModelError(f"a view is an array whose first axis is the items; got {view!r:.80}")
        if self.transform is None and array.dtype.kind not in "fiub":
            raise ModelError(f"{type(self).__name__} needs views of numbers, got {array.dtype}: give it a transform")
        return array

    def matching(self, view: Any) -> View:
        """A view of items like those that `fit` saw."""
        array = self.checked(view)
        expected = getattr(self, "input_shape_", None)
        if expected is not None and array.shape[1:] != tuple(expected):
            raise ModelError(
                f"{type(self).__name__} was fitted on items of shape {tuple(expected)}, got {array.shape[1:]}"
            )
        return array

    @contextmanager
    def explained(self, action: str, shape: tuple[int, ...]) -> Iterator[None]:
        """What goes wrong inside a user's module, in one sentence."""
        try:
            yield
        except (RuntimeError, TypeError, ValueError, AttributeError) as problem:
            if isinstance(problem, CollegiumError):
                raise
            reason = str(problem).strip().split("\n")[0]
            raise ModelError(f"{type(self).__name__} cannot {action} a view of shape {shape}: {reason}") from problem

    def _targets(self, labels: NDArray[Any], C: int) -> Tensor:
        """Signs as 0 and 1, places as they are."""
        return load_torch().from_numpy((labels > 0 if C == 2 else labels).astype(np.int64))  # type: ignore[no-any-return]

    def inputs(self, network: nn.Module, view: View) -> Tensor:
        """A view to learn from as the network takes it: finite numbers only."""
        torch = load_torch()
        x = self.prepare(network, view)
        if not torch.isfinite(x).all():
            raise ModelError(
                "the view holds NaN, infinite values, or values too large for 32 bits: nothing to learn from"
            )
        return x

    def new_network(self, view: View, classes: int = 2) -> nn.Module:
        """An untrained network for items like these and so many classes."""
        torch = load_torch()
        made = deepcopy(self.module) if isinstance(self.module, torch.nn.Module) else None
        if made is None and callable(self.module):
            made = self.module()
        if not isinstance(made, torch.nn.Module):
            raise ModelError(f"module must be a torch.nn.Module or make one; got {type(made).__name__}")
        network: nn.Module = made
        return network

    def prepare(self, network: nn.Module, view: View) -> Tensor:
        """A view as the network takes it."""
        torch = load_torch()
        if self.transform is None:
            return torch.tensor(np.ascontiguousarray(view), dtype=torch.float32)  # type: ignore[no-any-return]
        made = self.transform(view)
        if not isinstance(made, torch.Tensor) or len(made) != len(view):
            raise ModelError(
                f"transform must make a tensor with a row for each of the {len(view)} items; got {made!r:.80}"
            )
        prepared: Tensor = made
        return prepared

    def _fitted(self) -> nn.Module:
        torch = load_torch()
        fitted = getattr(self, "module_", self.module)
        if not isinstance(fitted, torch.nn.Module):
            raise ModelError(f"{type(self).__name__} is not fitted yet: call fit first")
        network: nn.Module = fitted
        return network


class _Family(TorchModel):
    """A family of the paper: builds its network for the images it is fitted on."""

    standardise: bool
    module: Any = None
    transform: Any = None
    kind: str = "score"

    def _network(self, size: tuple[int, int, int], outputs: int) -> nn.Module:
        raise NotImplementedError

    def build(self, shape: tuple[int, ...], classes: int = 2) -> nn.Module:
        """The untrained network for images of this shape, (height, width[, channels]), one output per class."""
        load_torch()
        from collegium.agents.torch_networks import images

        size = tuple(images(np.empty((0, *shape), np.float32)).shape[1:])
        return self._network(size, classes)  # type: ignore[arg-type]

    def new_network(self, view: View, classes: int = 2) -> nn.Module:
        """An untrained network that has observed these images."""
        network = self.build(view.shape[1:], classes)
        network.observe(view, self.standardise)  # type: ignore[operator]
        return network

    def prepare(self, network: nn.Module, view: View) -> Tensor:
        """Images as the network takes them."""
        prepared: Tensor = network.prepare(view)  # type: ignore[operator]
        return prepared


class PatchCNN(_Family):
    """Two 3×3 convolutions (stride 2, then maximum pooling), then two fully connected layers; any image size.

    The paper's CIFAR-10 agents, and, on the full image, its central oracle. Sizes are our choice.
    """

    def __init__(
        self,
        channels: tuple[int, int] = (32, 64),
        hidden: int = 128,
        dropout: float = 0.0,
        standardise: bool = True,
        training: Training = ADAM,
        random_state: int | None = None,
    ) -> None:
        self.channels = channels
        self.hidden = hidden
        self.dropout = dropout
        self.standardise = standardise
        self.training = training
        self.random_state = random_state

    def _network(self, size: tuple[int, int, int], outputs: int) -> nn.Module:
        from collegium.agents.torch_networks import PatchNetwork

        return PatchNetwork(size, self.channels, self.hidden, self.dropout, outputs)


class PixelLogistic(_Family):
    """Logistic regression on the pixels, trained like the networks."""

    def __init__(self, standardise: bool = True, training: Training = ADAM, random_state: int | None = None) -> None:
        self.standardise = standardise
        self.training = training
        self.random_state = random_state

    def _network(self, size: tuple[int, int, int], outputs: int) -> nn.Module:
        from collegium.agents.torch_networks import PixelNetwork

        return PixelNetwork(size, outputs)


class SmallResNet(_Family):
    """A small residual network with batch normalisation and adaptive average pooling [he2016]."""

    def __init__(
        self,
        channels: tuple[int, ...] = (16, 32),
        standardise: bool = True,
        training: Training = ADAM,
        random_state: int | None = None,
    ) -> None:
        self.channels = channels
        self.standardise = standardise
        self.training = training
        self.random_state = random_state

    def _network(self, size: tuple[int, int, int], outputs: int) -> nn.Module:
        from collegium.agents.torch_networks import ResidualNetwork

        return ResidualNetwork(size, self.channels, outputs)


class MicroCNN(_Family):
    """One 7×7 convolution with stride 4, ReLU, global average pooling, dropout, one layer: the ModelNet agents.

    The number of channels is our choice: the smallest validation loss of `benchmarks/agent_settings.py`.
    """

    def __init__(
        self,
        channels: int = 32,
        dropout: float = 0.0,
        standardise: bool = True,
        training: Training = SGD,
        random_state: int | None = None,
    ) -> None:
        self.channels = channels
        self.dropout = dropout
        self.standardise = standardise
        self.training = training
        self.random_state = random_state

    def _network(self, size: tuple[int, int, int], outputs: int) -> nn.Module:
        from collegium.agents.torch_networks import MicroNetwork

        return MicroNetwork(size, self.channels, self.dropout, outputs)
