"""What a model promises to a `Team`: finite scores, larger for the class they speak for, learned the same way again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any
from unittest import SkipTest

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.labels import to_places, to_signs
from collegium.checks import base
from collegium.checks.base import Check, expect, listed
from collegium.errors import CheckError

PLUS_ONE = "score is larger for +1"
TRUE_CLASS = "score is largest for the true class"
_EXAMPLES = 64
# A float32 network sums a thousand products or so per output, in an order that depends on the size of the batch.
_ROUNDING = 1024 * float(np.finfo(np.float32).eps)


def check_model(model: Any, view: ArrayLike | None = None, y: ArrayLike | None = None) -> list[str]:
    """Check that a model keeps the promises a `Team` relies on; returns what held and what was skipped.

    `model` is a `Model`, or anything `collegium.agents.as_model` takes; it is cloned, never fitted itself. With a
    view and its labels y, of two classes or more, it is fitted on these. With a view alone, or none, it is fitted on an
    easy problem made here, of the form of that view (its item shape and type; six numbers per item if there is none).
    A model that was fitted elsewhere needs a view to score, and its sign is checked only where y is given.

    >>> from sklearn.linear_model import LogisticRegression
    >>> check_model(LogisticRegression())[-1]
    'score is larger for +1'
    """
    from collegium.agents.adapt import as_model  # here, as it brings in scikit-learn

    adapted = as_model(model)
    return base.run(type(adapted).__name__, model_checks(adapted, view, y))


@listed
def model_checks(model: Any, view: ArrayLike | None = None, y: ArrayLike | None = None) -> Iterator[Check]:
    """The checks of `check_model`, one by one."""
    from collegium.agents.adapt import as_model
    from collegium.agents.base import Model

    model = as_model(model)
    prefit = getattr(type(model), "fit", None) is Model.fit
    items, labels = _problem(model, view, y, prefit)
    C = None if labels is None else max(len(np.unique(labels)), 2)

    @cache
    def fitted() -> tuple[Any, Exception | None]:
        """The model, fitted once for all checks; or why it cannot be."""
        try:
            return (model if prefit else _fitted(_fresh(model), items, labels)), None
        except Exception as problem:
            return None, problem

    def fits() -> None:
        problem = fitted()[1]
        if problem is not None:
            raise problem

    def once_fitted(check: Callable[..., str | None], *arguments: Any) -> Callable[[], str | None]:
        def tried() -> str | None:
            ready, problem = fitted()
            if problem is not None:
                raise SkipTest("the model cannot be fitted as it must be")
            return check(ready, items.copy(), *arguments)  # a copy, as a broken model may write into it

        return tried

    yield Check("clones", partial(_clones, model))
    if not prefit:
        yield Check("fits", fits)
    if C is None or C == 2:
        yield Check("gives one finite number per item", once_fitted(_gives_finite_numbers, C))
    else:
        yield Check("gives one finite number per item and class", once_fitted(_gives_finite_numbers, C))
    for name, check in (
        ("gives the same scores twice", _gives_the_same_scores_twice),
        ("scores each item by itself", _scores_each_item_by_itself),
        ("scores one item and none", _scores_one_item_and_none),
    ):
        yield Check(name, once_fitted(check))
    if not prefit:
        yield Check("learns the same again", once_fitted(_learns_the_same_again, labels, model))
    if labels is not None:
        points = _score_points_to_plus_one if C == 2 else _score_points_to_the_true_class
        yield Check(PLUS_ONE if C == 2 else TRUE_CLASS, once_fitted(points, labels, None if prefit else model))


def _problem(
    model: Any, view: ArrayLike | None, y: ArrayLike | None, prefit: bool
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """The view and labels, +1 and -1 or places, to try the model on, as given or made here."""
    if view is None and (prefit or y is not None):
        why = f"{type(model).__name__} was fitted elsewhere" if prefit else "labels are of use only with a view"
        raise CheckError(f"{why}: pass a view with some items it can score")
    form = np.zeros((_EXAMPLES, 6)) if view is None else np.asarray(view)
    expect(form.ndim > 0, "a view is an array whose first axis is the items; got a single value")
    if y is None and not prefit:
        return _easy_problem(form)
    expect(len(form) >= 4, f"at least four items are needed to check a model, the view has {len(form)}")
    if y is None:
        return form, None
    from collegium.agents.classes import targets

    classes = targets(y, len(form))[1]
    return form, to_signs(y, len(form)) if len(classes) == 2 else to_places(y, len(form), len(classes), list(classes))


def _easy_problem(form: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int8]]:
    """Two classes far apart in every number of an item, and more so in the first than in the last."""
    expect(form.dtype.kind in "fiu", f"no easy problem can be made of type {form.dtype}: pass the labels y too")
    shape = form.shape[1:]
    y = np.where(np.arange(_EXAMPLES) % 2, 1, -1).astype(np.int8)
    strength = np.linspace(1.5, 0.5, math.prod(shape)).reshape(shape)
    noise = np.random.default_rng(0).normal(size=(_EXAMPLES, *shape))
    values = np.multiply.outer(y, strength) + noise / 2
    if form.dtype.kind != "f":  # brightness: such numbers fit into any whole type
        values = np.clip(64 + 24 * values, 0, 127)
    return values.astype(form.dtype), y


def _fresh(model: Any) -> Any:
    """A clone whose every random_state that was left open is 0."""
    from sklearn.base import clone

    copy = clone(model, safe=False)  # as Team does: what has no settings to clone by is copied
    if not hasattr(copy, "get_params"):
        return copy
    seeds = [name for name, value in copy.get_params().items() if name.endswith("random_state") and value is None]
    return copy.set_params(**dict.fromkeys(seeds, 0)) if seeds else copy


def _clones(model: Any) -> None:
    name = type(model).__name__
    settings = [method for method in ("get_params", "set_params") if callable(getattr(model, method, None))]
    expect(
        len(settings) != 1,
        f"{name} has {''.join(settings)} alone: derive it from collegium.agents.Model, which has get_params and "
        "set_params, with settings as arguments of __init__; or leave out both",
    )
    copy = _fresh(model)
    expect(type(copy) is type(model), f"a clone of {name} is a {type(copy).__name__}")
    expect(copy is not model, f"a clone of {name} must be another object: Team fits clones, never what it was given")


def _fitted(model: Any, view: NDArray[Any], y: NDArray[Any] | None) -> Any:
    """The model, fitted as a team would."""
    assert y is not None
    name, given, labels = type(model).__name__, view.copy(), y.copy()
    try:
        returned = model.fit(given, labels)
    except Exception as problem:
        raise CheckError(
            f"{name} cannot be fitted on a view of shape {view.shape}, type {view.dtype}: {type(problem).__name__}: "
            f"{problem}. If it wants another form, pass such a view to check_model"
        ) from problem
    expect(returned is model, f"{name}.fit must return self, it returned {type(returned).__name__}")
    expect(_equal(given, view), f"{name}.fit changes the view it is given: work on a copy")
    expect(_equal(labels, y), f"{name}.fit changes the labels it is given: work on a copy")
    return model


def _gives_finite_numbers(model: Any, view: NDArray[Any], C: int | None) -> None:
    name, given = type(model).__name__, view.copy()
    scores, n = model.scores(given), len(view)
    expect(
        isinstance(scores, np.ndarray) and scores.dtype.kind == "f",
        f"{name}.scores must return a NumPy array of floats, it returned {_kind(scores)}",
    )
    if C is None and scores.ndim == 2 and scores.shape[1] > 2:
        C = scores.shape[1]  # fitted elsewhere, of classes that only it knows
    form = (n,) if C is None or C == 2 else (n, C)
    expect(scores.shape == form, f"{name}.scores must have shape {form} for {n} items, it has {scores.shape}")
    bad = np.flatnonzero(~np.isfinite(scores).reshape(n, -1).all(axis=1))
    first = int(bad[0]) if len(bad) else 0
    expect(not len(bad), f"{name}.scores must be finite: {len(bad)} of {n} are not (first: item {first})")
    if scores.ndim == 2:
        off = np.abs(scores.sum(axis=1)) > _ROUNDING * (1 + np.abs(scores).max())
        expect(not off.any(), f"{name}.scores of {C} classes must sum to 0 for each item: take away their mean")
    expect(_equal(given, view), f"{name}.scores changes the view it is given: work on a copy")


def _gives_the_same_scores_twice(model: Any, view: NDArray[Any]) -> None:
    _close(
        model.scores(view),
        model.scores(view),
        f"{type(model).__name__} gives other scores when asked twice: is it in training mode, or drawing numbers?",
    )


def _scores_each_item_by_itself(model: Any, view: NDArray[Any]) -> None:
    some = np.arange(len(view))[::-3]
    _close(
        model.scores(view)[some],
        model.scores(view[some]),
        f"{type(model).__name__} scores an item by the rest of the batch too: learn nothing from the view it scores",
    )


def _scores_one_item_and_none(model: Any, view: NDArray[Any]) -> None:
    name = type(model).__name__
    alone = np.asarray(model.scores(view[:1]))
    all_of_them = model.scores(view)
    form = (1, *all_of_them.shape[1:])
    expect(alone.shape == form, f"{name}.scores must have shape {form} for one item, it has {alone.shape}")
    _close(all_of_them[:1], alone, f"{name} scores an item differently when it comes alone")
    nothing, form = np.asarray(model.scores(view[:0])), (0, *all_of_them.shape[1:])
    # A model that was fitted elsewhere need not know how many classes it has before it sees an item.
    expect(
        nothing.shape in (form, (0,)), f"{name}.scores must have shape {form} for zero items, it has {nothing.shape}"
    )


def _learns_the_same_again(fitted: Any, view: NDArray[Any], y: NDArray[Any], unfitted: Any) -> None:
    _close(
        fitted.scores(view),
        _fresh(unfitted).fit(view.copy(), y.copy()).scores(view),
        f"{type(fitted).__name__} gives other scores when fitted again on the same: draw only from random_state",
    )


def _score_points_to_plus_one(fitted: Any, view: NDArray[Any], y: NDArray[np.int8], unfitted: Any) -> str:
    """The score is larger for +1; or, for a slow learner, larger than had it been fitted on the opposite labels.

    The comparison with a twin fitted on the opposite also finds swapped outputs where luck hides them.
    """
    name, gap = type(fitted).__name__, _gap(fitted, view, y)
    opposite = gap if unfitted is None else _gap(_fresh(unfitted).fit(view.copy(), -y), view, y)
    # rounding may move the score of a model that learns nothing
    slack = _ROUNDING * (1 + float(np.abs(fitted.scores(view)).max()))
    learned = abs(gap - opposite) > slack
    expect(
        gap > opposite if learned else gap > 0,
        f"the mean score of {name} for +1 exceeds that for -1 by {gap:.4g}"
        + (f", and by {opposite:.4g} when it is fitted on the opposite labels" if unfitted is not None else "")
        + ": it must be the larger one, and positive where the model believes in it. "
        + (
            "Does it learn from its labels?" if unfitted is not None and not learned else "Are its two outputs swapped?"
        ),
    )
    return PLUS_ONE if gap > 0 else "score moves towards +1, too slowly to get there"


def _score_points_to_the_true_class(fitted: Any, view: NDArray[Any], y: NDArray[Any], unfitted: Any) -> str:
    """The mean score of the true class is positive, and larger than had each class been taken for the next."""
    name, C = type(fitted).__name__, int(y.max()) + 1

    def own(model: Any) -> float:
        return float(model.scores(view)[np.arange(len(y)), y].mean())

    gap = own(fitted)
    other = -gap if unfitted is None else own(_fresh(unfitted).fit(view.copy(), (y + 1) % C))
    expect(
        gap > other and gap > 0,
        f"the mean score of {name} for the true class is {gap:.4g}"
        + (f", and {other:.4g} when it is fitted on other labels" if unfitted is not None else "")
        + ": it must be the larger one, and positive. Are its outputs in the order of the classes?",
    )
    return TRUE_CLASS


def _gap(model: Any, view: NDArray[Any], y: NDArray[np.int8]) -> float:
    """By how much the mean score of +1 exceeds that of -1."""
    scores = model.scores(view)
    return float(scores[y > 0].mean() - scores[y < 0].mean())


def _close(one: NDArray[Any], other: NDArray[Any], complaint: str) -> None:
    expect(one.shape == other.shape, f"{complaint} (shapes {one.shape} and {other.shape})")
    apart = np.abs(one - other).ravel()
    worst = int(apart.argmax())
    allowed = _ROUNDING * (1 + float(np.abs(one).max()))
    expect(apart[worst] <= allowed, f"{complaint} ({one.ravel()[worst]:.6g} and {other.ravel()[worst]:.6g})")


def _equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")


def _kind(value: Any) -> str:
    return f"an array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
