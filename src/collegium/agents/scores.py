"""The score record: what training leaves behind, and all that later studies read."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from collegium._util.files import atomic_write
from collegium._util.scores import check_scores_of_classes
from collegium.agents.base import Doubles, Model
from collegium.agents.calibration import temperatures
from collegium.agents.pipeline import ScorePipeline
from collegium.errors import InputFileError, ScoreError, brief

Part = Literal["train", "val", "test"]
_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Scores:
    """Raw scores of K agents on the items they were trained on, validated on and tested on.

    N is the number of training items after the split, M of validation and n of test items. The rows of a part are the
    same items for all agents. Scores of C > 2 classes are log-probabilities less their mean.
    """

    train: Doubles
    """Shape (N, K), or (N, K, C) of more than two classes."""
    val: Doubles
    """Shape (M, K) or (M, K, C)."""
    test: Doubles
    """Shape (n, K) or (n, K, C)."""
    y_train: NDArray[Any]
    """+1 for the first of two `class_names` and -1 for the second; of more, their places 0 … C-1."""
    y_val: NDArray[Any]
    y_test: NDArray[Any]
    temperature: Doubles = None  # type: ignore[assignment]
    """Each agent's temperature, shape (K,); fitted on its own validation scores if not given."""
    agent_names: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    """Two, the first being +1; or those of places 0 … C-1."""
    rows_train: NDArray[np.int64] | None = None
    """Which items of the training data set the rows of `train` are, shape (N,)."""
    rows_val: NDArray[np.int64] | None = None
    """The same for `val`, shape (M,)."""
    seed: str = ""
    """What the sample, the split and the agents' own seeds were drawn from."""
    epochs: NDArray[np.int64] | None = None
    """How many epochs each agent was trained for, shape (K,); 0 where a model does not count any."""
    description: str = ""
    """The models and the data, for people to read."""
    models: tuple[Model, ...] = field(default=(), repr=False)
    """The fitted models, agent by agent; not part of a saved record."""

    def __post_init__(self) -> None:
        shape = np.shape(self.train)
        K = shape[1] if len(shape) in (2, 3) else 0
        if K == 0:
            raise ScoreError(
                f"train must have shape (items, agents) or (items, agents, classes), at least one agent; got {shape}"
            )
        C = 2 if len(shape) == 2 else shape[2]
        for part in get_args(Part):
            scores = check_scores_of_classes(getattr(self, part), K)
            scores = scores[:, :, 0] if C == 2 and scores.shape[2] == 1 else scores
            if scores.shape[1:] != shape[1:]:
                wanted = ", ".join(["items", *map(str, shape[1:])])
                raise ScoreError(f"{part} must have shape ({wanted}), as train has; got {scores.shape}")
            object.__setattr__(self, part, scores)
            object.__setattr__(self, f"y_{part}", _labels(getattr(self, f"y_{part}"), len(scores), C, part))
        if not self.agent_names:
            object.__setattr__(self, "agent_names", tuple(f"agent {k}" for k in range(K)))
        T = np.asarray(temperatures(self.val, self.y_val) if self.temperature is None else self.temperature, np.float64)
        if T.shape != (K,) or not ((T > 0) & (np.inf > T)).all():
            raise ScoreError(f"temperature must be {K} positive numbers, one per agent; got {self.temperature!r:.80}")
        object.__setattr__(self, "temperature", T)
        for name, length in {
            "agent_names": K,
            "epochs": K,
            "rows_train": len(self.train),
            "rows_val": len(self.val),
        }.items():
            if getattr(self, name) is not None and len(getattr(self, name)) != length:
                raise ScoreError(f"{name} must have {length} entries, got {len(getattr(self, name))}")
        for name in ("rows_train", "rows_val"):
            rows = getattr(self, name)
            if rows is not None:
                rows = np.asarray(rows)
                if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iu") or (rows < 0).any():
                    raise ScoreError(f"{name} must be numbers of items, counted from 0")
                object.__setattr__(self, name, rows.astype(np.int64))
        if not self.class_names:
            object.__setattr__(self, "class_names", ("+1", "-1") if C == 2 else tuple(map(str, range(C))))
        if len(self.class_names) != C:
            raise ScoreError(f"class_names must name {'two' if C == 2 else C} classes; got {self.class_names!r}")

    @property
    def size(self) -> int:
        """The number of agents, K."""
        return int(self.train.shape[1])

    @property
    def classes(self) -> int:
        """The number of classes, C."""
        return 2 if self.train.ndim == 2 else int(self.train.shape[2])

    @property
    def center(self) -> Doubles:
        """The mean of each agent's training scores, shape (K,) or (K, C)."""
        return np.asarray(self.train.mean(axis=0))

    def statistics(
        self, part: Part = "test", center: bool = True, calibrate: bool = False, bounded: bool = False
    ) -> Doubles:
        """What enters the protocol, shape (items, K) or (items, K, C): the scores of a part through `pipeline`."""
        if part not in get_args(Part):
            raise ScoreError(f'part must be "train", "val" or "test"; got {part!r}')
        return self.pipeline(center, calibrate, bounded)(getattr(self, part))

    def pipeline(self, center: bool = True, calibrate: bool = False, bounded: bool = False) -> ScorePipeline:
        """From raw scores of these agents to statistics.

        The scores are divided by the temperature if `calibrate`, then squeezed (`agents.bounded`) if `bounded`, and
        then lose the mean of the training scores that went the same way if `center`, as in the paper.
        """
        T = self.temperature if calibrate else np.ones(self.size)
        start = ScorePipeline(T, bounded=bounded, classes=self.classes)
        return start.centred(self.train) if center else start

    def save(self, path: str | Path) -> None:
        """Write the record to an .npz file, whole or not at all."""
        with atomic_write(path) as file:
            np.savez_compressed(file, **self.arrays())

    def arrays(self) -> dict[str, Any]:
        """Everything a saved record holds."""
        about = {
            "format": _FORMAT,
            "agent_names": self.agent_names,
            "class_names": self.class_names,
            "description": self.description,
            "seed": self.seed,
        }
        named = {name: getattr(self, name) for name in _ARRAYS}
        named |= {name: getattr(self, name) for name in _OPTIONAL if getattr(self, name) is not None}
        return {"about": np.array(json.dumps(about)), **named}

    @classmethod
    def load(cls, path: str | Path | io.BytesIO) -> Scores:
        """Read a record back; a damaged or foreign file is refused.

        An .npz file of one's own making will do too, if it holds train, val, test, y_train, y_val and y_test, perhaps
        temperature and classes (the names), and nothing else. Two classes may have an entry each, as several do.
        """
        try:
            with (
                nullcontext(path) if isinstance(path, io.BytesIO) else Path(path).open("rb") as opened,
                np.load(opened, allow_pickle=False) as file,
            ):
                if set(_PARTS) <= set(file.files) <= {*_ARRAYS, *_OPTIONAL, "classes"}:
                    names = tuple(map(str, file["classes"].tolist())) if "classes" in file.files else ()
                    arrays = {name: file[name] for name in file.files if name != "classes"}
                    if arrays["train"].ndim == 3 and arrays["train"].shape[2] == 2:
                        arrays, names = _as_one_number(arrays), names[::-1]
                    return cls(**arrays, class_names=names)
                if "about" not in file.files:
                    extra = ", ".join((_ARRAYS[-1], *_OPTIONAL, "classes"))
                    raise InputFileError(
                        f"{path} is no score record: one of your own must hold {', '.join(_PARTS)}, perhaps "
                        f"{extra}, and nothing else; it holds {', '.join(file.files)}"
                    )
                about = json.loads(str(file["about"]))
                if about["format"] != _FORMAT:
                    raise InputFileError(
                        f"{path} is a score record of format {about['format']}; this version reads {_FORMAT}"
                    )
                return cls(
                    **{name: file[name] for name in (*_ARRAYS, *(name for name in _OPTIONAL if name in file))},
                    agent_names=tuple(about["agent_names"]),
                    class_names=tuple(about["class_names"]),
                    description=about["description"],
                    seed=about["seed"],
                )
        except FileNotFoundError:
            raise InputFileError(f"there is no file {path}") from None
        except InputFileError:
            raise
        except (
            Exception
        ) as refusal:  # zip, header, JSON, key or shape: the reader has one thing to do about all of them
            reason = brief(refusal) if zipfile.is_zipfile(path) else "it is no .npz file"
            raise InputFileError(f"{path} is not a score record, or is damaged: {reason}") from None

    def __repr__(self) -> str:
        parts = ", ".join(f"{len(getattr(self, part))} {part}" for part in get_args(Part))
        return f"Scores({self.size} agents; items: {parts})"


def _as_one_number(arrays: dict[str, Any]) -> dict[str, Any]:
    """Of two classes with an entry each, the second's lead and labels -1 and +1 in place of 0 and 1."""
    found = dict(arrays)
    for part in get_args(Part):
        scores, labels = np.asarray(arrays[part], np.float64), np.asarray(arrays[f"y_{part}"])
        if scores.ndim != 3 or scores.shape[2] != 2 or not np.isin(labels, (0, 1)).all():
            raise ScoreError(f"{part} must have an entry for each of two classes, as train has, and labels 0 and 1")
        found[part], found[f"y_{part}"] = scores[:, :, 1] - scores[:, :, 0], np.where(labels == 1, 1, -1)
    return found


def _labels(given: Any, n: int, C: int, part: str) -> NDArray[Any]:
    labels = np.asarray(given)
    allowed, said = ((-1, 1), "+1 or -1") if C == 2 else (range(C), f"a place from 0 to {C - 1}")
    if labels.shape != (n,) or not np.isin(labels, list(allowed)).all():
        raise ScoreError(f"y_{part} must hold {said} for each of the {n} {part} items")
    return labels.astype(np.int8 if C <= 128 else np.int64)


_PARTS = ("train", "val", "test", "y_train", "y_val", "y_test")
_ARRAYS = (*_PARTS, "temperature")
_OPTIONAL = ("epochs", "rows_train", "rows_val")
