"""`OnnxModel`: a model of any framework, fitted elsewhere and exported as an ONNX file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import whole_number
from collegium.agents._outputs import CLIP, numbers, probabilities_to_scores, to_scores
from collegium.agents.base import Doubles, Model, View
from collegium.errors import BackendError, InputFileError, ModelError, brief

KINDS = ("auto", "logits", "probabilities", "score")
_BATCH = 1024  # items at a time where the graph leaves it open, so that memory does not grow with the data
_LOGITS = re.compile(r"logit|log_?(soft|prob)", re.IGNORECASE)
_PROBABILITIES = re.compile(r"prob|softmax|sigmoid", re.IGNORECASE)
_TYPES = {"float": "float32", "double": "float64"} | {
    name: name for name in ("float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}


class _Graph(NamedTuple):
    """An opened file and what it declares."""

    path: str
    session: Any
    input: Any
    shape: list[Any]
    """The sizes of the input's axes, words where they are open; empty where the graph does not say."""
    outputs: dict[str, str]
    """The type of each output by its name."""

    def describe(self) -> str:
        sizes = ", ".join("n" if i == 0 and not isinstance(d, int) else str(d) for i, d in enumerate(self.shape))
        return f"({sizes}) of {self.input.type}"


class OnnxModel(Model):
    """An ONNX file run by onnxruntime on the CPU, with one thread, so that its scores depend on nothing else.

    The view is cast to the type the graph declares, never scaled, and made one row per item only where the graph
    wants two axes. A graph exported for a fixed number of items gets as many at a time.

    `output` names the output to use. Without it: the only one, or the one whose name speaks of probabilities, or
    the only one that does not hold whole numbers (those are classes). What it holds is its `kind`:

    - `"score"`: one column is the score; of two, column `positive` is (decision values as skl2onnx writes them).
    - `"logits"`: one column is the score; of two, column `positive` minus the other.
    - `"probabilities"`: log-odds, clipped to [clip, 1 - clip]; one column is the probability of +1.
      Of more columns, for C classes, all three become log-probabilities less their mean; decision values are taken for
      logits.
    - `"auto"`: probabilities if they come as dictionaries by class (ZipMap, keys in ascending order) or the name of
      the output contains prob, softmax or sigmoid, else logits; log-probabilities are logits. One column named as
      probabilities is refused, for skl2onnx gives this name to the decision values of LinearSVC too.

    `classes` says which classes the columns are of, where they are not those of the team in the same order.
    """

    def __init__(
        self,
        path: str | Path,
        output: str | None = None,
        kind: str = "auto",
        positive: int = 1,
        clip: float = CLIP,
        classes: Sequence[Any] | None = None,
    ) -> None:
        self.path = path
        self.output = output
        self.kind = kind
        self.positive = positive
        self.clip = clip
        self.classes = classes

    def scores(self, view: View) -> Doubles:
        """The graph's answer for each item as one number, positive for +1, or one per class."""
        if self.kind not in KINDS:
            raise ModelError(f"kind must be one of {', '.join(KINDS)}; got {self.kind!r}")
        positive = whole_number(self.positive, "positive, the column of +1,", ModelError, at_most=1)
        graph = self._open()
        name = _chosen(graph, self.output, self.kind)
        items = _admit(graph, view)
        n, what = len(items), f"output {name!r} of {self.path}"
        if n == 0:
            return np.empty(0)
        outputs = _run(graph, name, items, what)
        kind = self.kind if self.kind != "auto" else _guess(name, graph.outputs[name], outputs, what)
        if kind == "probabilities":
            return probabilities_to_scores(outputs, n, f"{what} (kind={kind!r})", self.clip, positive)
        if kind == "score" and outputs.shape == (n, 2):
            outputs = outputs[:, positive]
        return to_scores(outputs, n, what, positive)

    @property
    def digest(self) -> str:
        """The sha256 of the file, in hexadecimal. Weights the graph keeps in files beside it do not count."""
        try:
            with _existing(self.path).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as problem:
            raise InputFileError(f"{self.path}: {problem.strerror or problem}") from None

    def _open(self) -> _Graph:
        """The graph, opened at its first use and whenever the path was changed."""
        graph: _Graph | None = self.__dict__.get("_graph")
        if graph is None or graph.path != str(self.path):
            graph = self._graph = _opened(_existing(self.path))
            path, digest = self.__dict__.setdefault("_seen", (str(self.path), self.digest))
            if path == str(self.path) and digest != self.digest:
                raise InputFileError(f"{path} was changed since it was first read by this model")
        return graph

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_graph"}  # a session stays in its process

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _existing(path: Any) -> Path:
    if not isinstance(path, (str, Path)):
        raise ModelError(f"an OnnxModel is made from the name of a file, got {type(path).__name__}")
    if not Path(path).is_file():
        raise InputFileError(f"{path}: {'not a file' if Path(path).exists() else 'no such file'}")
    return Path(path)


def _opened(path: Path) -> _Graph:
    try:
        import onnxruntime
    except ImportError:
        raise BackendError("running an ONNX file needs the extra: pip install 'collegium[onnx]'") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised below
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as problem:  # onnxruntime's errors have no common parent
        raise InputFileError(f"{path} is not a whole ONNX file that onnxruntime can run: {brief(problem)}") from None
    inputs = session.get_inputs()
    if len(inputs) != 1:
        names = ", ".join(one.name for one in inputs)
        raise ModelError(f"{path} must have one input, the view; it has {len(inputs)}: {names}")
    outputs = {one.name: one.type for one in session.get_outputs()}
    return _Graph(str(path), session, inputs[0], inputs[0].shape or [], outputs)


def _chosen(graph: _Graph, output: str | None, kind: str) -> str:
    names = list(graph.outputs)
    if output is not None:
        if output not in names:
            raise ModelError(f"{graph.path} has no output {output!r}; its outputs are {', '.join(names)}")
        return output
    named = [name for name in names if _PROBABILITIES.search(name)]
    other = [name for name in names if not re.search(r"tensor\((u?int|string|bool)", graph.outputs[name])]
    candidates = next((some for some in (names, named, other) if len(some) == 1), [])
    if not candidates:
        raise ModelError(f"{graph.path} has the outputs {', '.join(names)}: name one with output=")
    if kind == "auto" and candidates[0] not in other and "seq(" not in graph.outputs[candidates[0]]:
        raise ModelError(
            f"output {candidates[0]!r} of {graph.path} holds {graph.outputs[candidates[0]]}: classes rather than "
            "scores. Export the probabilities too, or set kind='score' if they are scores"
        )
    return candidates[0]


def _admit(graph: _Graph, view: View) -> NDArray[Any]:
    """The view in the shape and type the graph declares, or what it expects and what came."""
    given = np.asarray(view)
    shape = graph.shape
    items = given
    if len(shape) == 2 and given.ndim not in (0, 2):
        items = given.reshape(len(given), int(np.prod(given.shape[1:])))
    fits = items.ndim == len(shape) and all(
        not isinstance(wanted, int) or wanted == came for wanted, came in zip(shape[1:], items.shape[1:], strict=True)
    )
    if not given.ndim or (shape and not fits):
        moved = items.ndim == len(shape) == 4 and sorted(map(str, shape[1:])) == sorted(map(str, items.shape[1:]))
        advice = " Its axes are in another order: are the channels first in one, last in the other?" if moved else ""
        raise ModelError(f"{graph.path} expects {graph.describe()}, got a view of shape {given.shape}.{advice}")
    wanted = _TYPES.get(graph.input.type.removeprefix("tensor(").removesuffix(")"))
    if wanted is None or items.dtype.kind not in "fiub":
        raise ModelError(f"{graph.path} expects {graph.describe()}, got a view of type {items.dtype}")
    with np.errstate(over="ignore", invalid="ignore"):
        cast = np.ascontiguousarray(items, wanted)
    if cast.dtype.kind in "iu" and not np.array_equal(cast, items):
        raise ModelError(f"{graph.path} expects {graph.describe()}, got {items.dtype} values that do not fit into it")
    return cast


def _run(graph: _Graph, name: str, items: NDArray[Any], what: str) -> Doubles:
    """One row of numbers per item, a batch at a time."""
    declared = graph.shape[0] if graph.shape else None
    size = declared if isinstance(declared, int) and declared > 0 else None
    parts = []
    for start in range(0, len(items), size or _BATCH):
        part = items[start : start + (size or _BATCH)]
        length = len(part)
        if size is not None and length < size:  # a graph for a fixed number gets the last item again
            part = np.concatenate([part, np.repeat(part[-1:], size - length, axis=0)])
        try:
            (answer,) = graph.session.run([name], {graph.input.name: part})
        except Exception as problem:
            raise ModelError(
                f"{graph.path}, which expects {graph.describe()}, failed on {items.shape}: {brief(problem)}"
            ) from None
        values = numbers(_rows(answer, what) if isinstance(answer, list) else answer, what)
        if len(part) == 1 and values.shape[:1] != (1,):  # exported for one item, without an axis of items
            values = values.reshape(1, -1)
        if values.shape[:1] != part.shape[:1]:
            raise ModelError(f"{what} must have one row per item; for {len(part)} items it has shape {values.shape}")
        parts.append(values[:length])
    return np.concatenate(parts)


def _rows(answer: list[Any], what: str) -> list[list[float]]:
    """ZipMap's list of dictionaries, one per item, as rows in the order of the classes."""
    if not all(isinstance(row, dict) and len(row) > 1 and row.keys() == answer[0].keys() for row in answer):
        raise ModelError(f"{what} must know two classes or more, the same for each item")
    return [[row[key] for key in sorted(row)] for row in answer]


def _guess(name: str, declared: str, outputs: Doubles, what: str) -> str:
    if "map(" in declared:
        return "probabilities"
    if _LOGITS.search(name) or not _PROBABILITIES.search(name):
        return "logits"
    if outputs.shape in ((len(outputs),), (len(outputs), 1)):
        raise ModelError(
            f"{what} has one column, which may be the probability of +1 or, in spite of its name, a decision value: "
            "set kind='probabilities' or kind='score'"
        )
    return "probabilities"
