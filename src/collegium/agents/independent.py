"""Train K agents, each alone on its own view of the same items."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import whole_number
from collegium._util.processes import follow_parent
from collegium._util.progress import progress
from collegium._util.views import rows
from collegium.agents._outputs import to_scores
from collegium.agents._seeding import descend, seed_sequence, seeded
from collegium.agents._splitting import balanced, split
from collegium.agents.base import Doubles, Model, View
from collegium.agents.classes import Places, known_classes, places_of, spread
from collegium.agents.scores import Scores
from collegium.errors import CollegiumError, DataError, ModelError

if TYPE_CHECKING:
    from collegium.data import Dataset

Rows = NDArray[np.int64]


def train(
    train: Dataset,
    test: Dataset,
    model: Any,
    n0: int | None = None,
    seed: int | np.random.Generator | np.random.SeedSequence | None = 0,
    workers: int | None = None,
    *,
    validation: float = 0.2,
    stratify: bool = True,
) -> Scores:
    """Train one model per agent, independently, and score everything.

    A sample of `n0` items of `train`, as many of each class (as many as there are, if None), the same for all agents,
    is split into a training part and a validation part; each agent fits its own copy of its model on its own view of
    the training part. `model` is one recipe for all agents or a list of K, each a `Model` or anything `as_model` takes.

    The sample and the split come from `seed`, and so does each agent's own random state, whatever `workers` is: the
    number of processes changes the time, not one number of the result.
    """
    K = train.size
    if test.size != K or test.class_names != train.class_names:
        raise DataError(f"training and test data must have the same agents and classes: {train!r} and {test!r}")
    models = recipes(model, K)
    root = seed_sequence(seed, "seed")
    rng = np.random.default_rng(descend(root, 0))
    chosen = balanced(train.y, n0, rng)
    inside, outside = split(train.y[chosen], validation, rng, stratify)
    parts = chosen[inside], chosen[outside]
    C = len(train.class_names)
    tasks = [
        Task(name, seeded(models[k], descend(root, 1, k)), train.views[k], train.y, *parts, test.views[k], classes=C)
        for k, name in enumerate(train.agent_names)
    ]
    fits = fit_side_by_side(tasks, workers)
    return Scores(
        train=np.stack([fit.train for fit in fits], axis=1),
        val=np.stack([fit.val for fit in fits], axis=1),
        test=np.stack([fit.test for fit in fits], axis=1),
        y_train=train.y[parts[0]],
        y_val=train.y[parts[1]],
        y_test=test.y,
        agent_names=train.agent_names,
        class_names=train.class_names,
        rows_train=parts[0],
        rows_val=parts[1],
        seed=f"{root.entropy}{f' {root.spawn_key}' if root.spawn_key else ''}",
        epochs=np.array([len(getattr(fit.model, "history_", ((),))[0]) for fit in fits]),
        description=f"{_describe(models)}; {train.source}",
        models=tuple(fit.model for fit in fits),
    )


class Task(NamedTuple):
    """One agent's training: everything it may see, and nothing else."""

    name: str
    model: Model
    view: View
    y: NDArray[Any]
    """+1 and -1, or places of more than two classes."""
    fitted_on: Rows
    held_out: Rows
    """Rows for early stopping, temperature and center; may be empty."""
    test: View | None = None
    classes: int = 2
    scores_training: bool = True
    """Whether the scores of the items it is fitted on are wanted too."""
    weights: Doubles | None = None
    """How much each item counts, shape (n,); None if all alike."""


class Fit(NamedTuple):
    """A fitted model and its scores on the rows it was fitted on, on those held out, and on the test view."""

    model: Model
    train: Doubles
    val: Doubles
    test: Doubles


def fit_side_by_side(tasks: Sequence[Task], workers: int | None) -> list[Fit]:
    """Fit every task's model, `workers` at a time (as many as there are cores, if None).

    PyTorch models run in processes, since their seed and their threads belong to a process; others in threads.
    Whatever the number of workers, linear algebra inside a model uses one thread: its sums depend on that number.
    """
    from joblib import Parallel, cpu_count, delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool
    from threadpoolctl import threadpool_limits

    workers = cpu_count() if workers is None else whole_number(workers, "workers", ModelError, at_least=1)
    alone = any(getattr(task.model, "needs_process", False) for task in tasks)
    if alone and _is_worker():
        workers = 1  # whoever runs many teams at a time has no processes left for each
    backend = "loky" if alone else "threading"
    jobs = Parallel(n_jobs=min(workers, len(tasks)), backend=backend, mmap_mode="r")
    with TemporaryDirectory(prefix="collegium-") as folder, threadpool_limits(1):
        done = np.memmap(Path(folder) / "done", np.float64, "w+", shape=(len(tasks),))
        with _watched(done):
            fit = delayed(_fit_in_process if alone else _fit)
            try:
                return list(jobs(fit(task, k, done) for k, task in enumerate(tasks)))
            except BrokenProcessPool as end:
                raise ModelError(
                    f"a process that was training agents ended by itself (no memory left?): {end}"
                ) from None


def _is_worker() -> bool:
    """Whether this runs in another's process or thread, where joblib cannot start processes of its own."""
    return (
        multiprocessing.current_process().name != "MainProcess"
        or threading.current_thread() is not threading.main_thread()
    )


def _fit_in_process(task: Task, k: int, done: NDArray[np.float64]) -> Fit:
    from threadpoolctl import threadpool_limits

    follow_parent()
    with threadpool_limits(1):
        return _fit(task, k, done)


def _fit(task: Task, k: int, done: NDArray[np.float64]) -> Fit:
    model, view, inside, outside = task.model, task.view, task.fitted_on, task.held_out
    settings: dict[str, Any] = {}
    if len(outside) and getattr(model, "uses_validation", False):
        settings["validation"] = (rows(view, outside), task.y[outside])
    if task.weights is not None:
        settings["sample_weight"] = task.weights[inside]
    if getattr(model, "reports_progress", False):
        settings["progress"] = lambda part: done.__setitem__(k, part)
    try:
        own = rows(view, inside)
        fitted = model.fit(own, task.y[inside], **settings)
        model = model if fitted is None else fitted
        C = task.classes
        nothing = np.empty(0 if C == 2 else (0, C))
        places = None if C == 2 else places_of(known_classes(model), range(C))
        fit = Fit(
            model,
            *(
                checked_scores(model, part, places, C) if wanted else nothing
                for part, wanted in (
                    (own, task.scores_training),
                    (rows(view, outside), len(outside)),
                    (task.test, task.test is not None),
                )
            ),
        )
    except CollegiumError as mistake:
        raise type(mistake)(f"agent {task.name!r}: {mistake}") from None
    except Exception as failure:
        failure.add_note(f"while training agent {task.name!r}")
        raise
    done[k] = 1
    return fit


@contextmanager
def _watched(done: NDArray[np.float64]) -> Iterator[None]:
    """A progress bar fed from an array that other processes write to."""
    over = threading.Event()
    with progress("training agents", len(done)) as bar:

        def look() -> None:
            while not over.wait(0.2):
                bar.move_to(float(done.sum()))

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()


def checked_scores(model: Any, view: Any, places: Places | None = None, classes: int = 2) -> Doubles:
    """A model's scores of n items, finite numbers, whoever wrote the model: (n,) of two classes, else (n, C).

    `places` are where the model's classes are among all; by itself it knows all of them.
    """
    scores = to_scores(model.scores(view), len(view), type(model).__name__)
    return spread(scores, np.arange(classes) if places is None else places, classes)


def recipes(model: Any, K: int) -> list[Any]:
    """One model per agent: the same for all, or as listed."""
    if isinstance(model, (list, tuple)):
        if len(model) != K:
            raise ModelError(f"there are {K} agents but {len(model)} models: give one for all, or one per agent")
        return list(model)
    return [model] * K


def _describe(models: Iterable[Any]) -> str:
    kinds: dict[str, int] = {}
    for model in models:
        kinds[repr(model)] = kinds.get(repr(model), 0) + 1
    return ", ".join(f"{count} × {kind}" for kind, count in kinds.items())
