"""`OnnxModel`: a model of any framework, fitted elsewhere and exported as an ONNX file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import whole_number
from collegium._util.views import named_parts
from collegium.agents._outputs import CLIP, numbers, probabilities_to_scores, to_scores, warn_of_probabilities
from collegium.agents.base import Doubles, Model, View
from collegium.errors import BackendError, InputFileError, ModelError, brief

_CPU = "CPUExecutionProvider"
KINDS = ("auto", "logits", "probabilities", "score")
_BATCH = 1024  # items at a time where the graph leaves it open, so that memory does not grow with the data
_LOGITS = re.compile(r"logit|log_?(soft|prob)", re.IGNORECASE)
_PROBABILITIES = re.compile(r"prob|softmax|sigmoid", re.IGNORECASE)
_TYPES = {"float": "float32", "double": "float64"} | {
    name: name for name in ("float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}


class _Input(NamedTuple):
    """One input, as the graph declares it."""

    type: str
    shape: list[Any]
    """The sizes of its axes, words where they are open; empty where the graph does not say."""

    def describe(self) -> str:
        sizes = ", ".join("n" if i == 0 and not isinstance(d, int) else str(d) for i, d in enumerate(self.shape))
        return f"({sizes}) of {self.type}"


class _Graph(NamedTuple):
    """An opened file and what it declares."""

    path: str
    opened_as: tuple[Any, ...]
    """The path and the settings of the session."""
    session: Any
    inputs: dict[str, _Input]
    outputs: dict[str, str]
    """The type of each output by its name."""

    def describe(self) -> str:
        if len(self.inputs) == 1:
            return next(iter(self.inputs.values())).describe()
        return ", ".join(f"{name} {one.describe()}" for name, one in self.inputs.items())


class OnnxModel(Model):
    """An ONNX file run by onnxruntime on the CPU, with one thread, so that its scores depend on nothing else.

    The view is cast to the type the graph declares, never scaled, and made one row per item only where the graph
    wants two axes. A graph exported for a fixed number of items gets as many at a time. A graph with several inputs,
    such as token ids and their attention mask, takes a view of named parts: a dictionary of arrays, or a NumPy array
    with fields, of the inputs' names.

    `providers` are onnxruntime's, in the order they are to be tried; `threads` is how many one score may use. With
    others than the CPU and 1, scores may differ in their last digits from machine to machine.

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
        providers: Sequence[str] = (_CPU,),
        threads: int = 1,
    ) -> None:
        self.providers = providers
        self.threads = threads
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
        n, what = len(next(iter(items.values()))), f"output {name!r} of {self.path}"
        if n == 0:
            return np.empty(0)
        outputs = _run(graph, name, items, what)
        kind = self.kind if self.kind != "auto" else _guess(name, graph.outputs[name], outputs, what)
        if kind == "probabilities":
            return probabilities_to_scores(outputs, n, f"{what} (kind={kind!r})", self.clip, positive)
        if self.kind == "auto":
            warn_of_probabilities(outputs, what, 'if they are probabilities, say OnnxModel(path, kind="probabilities")')
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
        opened_as = (str(self.path), tuple(self.providers), self.threads)
        if graph is None or graph.opened_as != opened_as:
            graph = self._graph = _opened(_existing(self.path), opened_as)
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


def _opened(path: Path, opened_as: tuple[Any, ...]) -> _Graph:
    try:
        import onnxruntime
    except ImportError:
        raise BackendError("running an ONNX file needs the extra: pip install 'collegium[onnx]'") from None
    _, providers, threads = opened_as
    there = onnxruntime.get_available_providers()
    for name in providers or ("",):
        if name not in there:
            raise ModelError(f"onnxruntime has no provider {name!r} on this machine; it has {', '.join(there)}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = whole_number(threads, "threads", ModelError, at_least=1)
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised below
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=list(providers))
    except Exception as problem:  # onnxruntime's errors have no common parent
        raise InputFileError(f"{path} is not a whole ONNX file that onnxruntime can run: {brief(problem)}") from None
    inputs = {one.name: _Input(one.type, one.shape or []) for one in session.get_inputs()}
    if not inputs:
        raise ModelError(f"{path} must have an input, the view; it has none")
    outputs = {one.name: one.type for one in session.get_outputs()}
    return _Graph(str(path), opened_as, session, inputs, outputs)


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


def _admit(graph: _Graph, view: View) -> dict[str, NDArray[Any]]:
    """What goes into each input, in the shape and type the graph declares, or what it expects and what came."""
    given = named_parts(view) if isinstance(view, Mapping) else np.asarray(view)
    fields = given.dtype.names
    if len(graph.inputs) == 1 and fields is None:
        ((name, wanted),) = graph.inputs.items()
        return {name: _cast(graph, wanted, given)}
    if set(fields or ()) != set(graph.inputs):
        came = f"a view with the parts {', '.join(fields)}" if fields else "one array"
        raise ModelError(
            f"{graph.path} has the inputs {', '.join(graph.inputs)}, so its view is a dictionary of arrays with these "
            f"names; got {came}"
        )
    items = {name: _cast(graph, wanted, given[name]) for name, wanted in graph.inputs.items()}
    sizes: dict[str, int] = {}
    for name, declared in graph.inputs.items():
        for axis, size in zip(declared.shape, items[name].shape, strict=bool(declared.shape)):
            if (
                isinstance(axis, str) and sizes.setdefault(axis, size) != size
            ):  # which onnxruntime may stretch in silence
                raise ModelError(
                    f"{graph.path} has the axis {axis} twice, but here it is {sizes[axis]} and {size} long"
                )
    return items


def _cast(graph: _Graph, declared: _Input, given: NDArray[Any]) -> NDArray[Any]:
    shape = declared.shape
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
    wanted = _TYPES.get(declared.type.removeprefix("tensor(").removesuffix(")"))
    if wanted is None or items.dtype.kind not in "fiub":
        raise ModelError(f"{graph.path} expects {graph.describe()}, got a view of type {items.dtype}")
    with np.errstate(over="ignore", invalid="ignore"):
        cast = np.ascontiguousarray(items, wanted)
    if cast.dtype.kind in "iu" and not np.array_equal(cast, items):
        raise ModelError(f"{graph.path} expects {graph.describe()}, got {items.dtype} values that do not fit into it")
    return cast


def _run(graph: _Graph, name: str, items: dict[str, NDArray[Any]], what: str) -> Doubles:
    """One row of numbers per item, a batch at a time."""
    fixed = [one.shape[0] for one in graph.inputs.values() if one.shape and isinstance(one.shape[0], int)]
    size = next((number for number in fixed if number > 0), None)
    n, parts = len(next(iter(items.values()))), []
    for start in range(0, n, size or _BATCH):
        length = min(size or _BATCH, n - start)
        # a graph for a fixed number gets the last item again
        chosen = np.minimum(np.arange(start, start + (size or length)), n - 1)
        try:
            (answer,) = graph.session.run([name], {key: array[chosen] for key, array in items.items()})
        except Exception as problem:
            shapes = ", ".join(str(array.shape) for array in items.values())
            raise ModelError(
                f"{graph.path}, which expects {graph.describe()}, failed on {shapes}: {brief(problem)}"
            ) from None
        values = numbers(_rows(answer, what) if isinstance(answer, list) else answer, what)
        if len(chosen) == 1 and values.shape[:1] != (1,):  # exported for one item, without an axis of items
            values = values.reshape(1, -1)
        if values.shape[:1] != chosen.shape:
            raise ModelError(f"{what} must have one row per item; for {len(chosen)} items it has shape {values.shape}")
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
