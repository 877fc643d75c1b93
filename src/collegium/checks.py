"""Conformance suites anybody can run on their own parts: `check_rule`, `check_policy`, `check_model`,
`check_transport`.

Each runs a list of small checks and raises `CheckError` with the first that fails, in words an outsider
understands; what passed is returned.
"""

import dataclasses
import math
import pickle
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium import kernels, topology
from collegium._util.labels import to_signs
from collegium.errors import CheckError, CollegiumError
from collegium.kernels.job import Job
from collegium.network import reference_run, validated
from collegium.policy import Policy, metropolis, uniform
from collegium.protocol import HoldLast, Mailbox, Renormalise, Rule

if TYPE_CHECKING:
    from collegium.live.transport import Place, Transport

_ROUNDS = 12
_ITEMS = 7
_EXAMPLES = 64
# A float32 network sums a thousand products or so per output, in an order that depends on the size of the batch.
_ROUNDING = 1024 * float(np.finfo(np.float32).eps)


def check_rule(rule: Rule, policy: Policy | None = None) -> list[str]:
    """Check that a rule keeps the promises `collaborate` and live networks rely on; returns what was checked.

    Above all: where the rule has an array path, it equals the agents' view number for number for the same seed.
    With a policy, the networks used are that one and a lonely agent; without, five of different shapes.

    >>> from collegium.protocol import DeGroot
    >>> check_rule(DeGroot())[-1]
    'array path equals agent view'
    """
    if not isinstance(rule, Rule):
        raise CheckError(f"{rule!r} is not a Rule: derive it from collegium.protocol.Rule")
    passed = []
    for check in (_is_frozen, _pickles, _first_round_speaks, _repeats, _follows_items, _leaves_scores_alone):
        _attempt(check, rule)
        passed.append(_title(check))
    if kernels.find(_job(rule, next(_networks(policy)), HoldLast()), rule) is None:
        passed.append("no array path: runs agent by agent")
        return passed
    for network in _networks(policy):
        for mailbox in (HoldLast(), Renormalise()):
            _attempt(_array_path_equals_agent_view, rule, network, mailbox)
    passed.append(_title(_array_path_equals_agent_view))
    return passed


def check_policy(policy: Policy) -> list[str]:
    """Check what everything downstream takes for granted of a policy; returns what was checked.

    Useful for a matrix that was computed, learned or read from a file.

    >>> check_policy(uniform(topology.ring(5)))
    ['columns sum to one', 'perron is fixed', 'rounds converge to the perron average', 'pickles']
    """
    if not isinstance(policy, Policy):
        raise CheckError(f"{type(policy).__name__} is not a Policy: wrap your matrix as Policy(A)")
    sums = np.asarray(policy.sparse.sum(axis=0)).ravel()
    worst = int(np.abs(sums - 1).argmax())
    _expect(abs(sums[worst] - 1) <= 1e-9, f"column {worst} of A sums to {sums[worst]:.12g}, not 1")
    pi = policy.perron
    # each entry is a sum of at most K products, each with a relative error of eps
    slack = 64 * policy.size * np.finfo(float).eps
    _expect(bool((pi > 0).all()) and abs(pi.sum() - 1) <= slack, "the Perron vector is not positive with sum 1")
    _expect(np.abs(policy.sparse @ pi - pi).sum() <= slack, "A does not keep its Perron vector fixed")
    x = np.cos(np.arange(policy.size))
    limit, widest = float(x @ pi), float(np.ptp(x))
    sigma = policy.slem
    enough = 0 if sigma == 0 else min(10_000, math.ceil(math.log(1e-12) / math.log(min(sigma, 1 - 1e-12))))
    for _ in range(enough + policy.size.bit_length()):
        x = policy.sparse.T @ x
    # non-normal matrices lag behind their eigenvalue by a factor that grows with K
    left = widest * max(policy.size**2 * sigma**enough, slack)
    _expect(np.abs(x - limit).max() <= left, "repeated rounds do not lead to the Perron-weighted average")
    _expect(pickle.loads(pickle.dumps(policy)) == policy, "the policy does not survive pickling")
    return ["columns sum to one", "perron is fixed", "rounds converge to the perron average", "pickles"]


def check_model(model: Any, view: ArrayLike | None = None, y: ArrayLike | None = None) -> list[str]:
    """Check that a model keeps the promises a `Team` relies on; returns what was checked.

    `model` is a `Model`, or anything `collegium.agents.as_model` takes; it is cloned, never fitted itself. With a
    view and its labels y it is fitted on these. With a view alone, or none, it is fitted on an easy problem made
    here, of the form of that view (its item shape and type; six numbers per item if there is none).
    A model that was fitted elsewhere needs a view to score, and its sign is checked only where y is given.

    >>> from sklearn.linear_model import LogisticRegression
    >>> check_model(LogisticRegression())[-1]
    'score is larger for +1'
    """
    from collegium.agents.adapt import as_model  # here, as it brings in scikit-learn
    from collegium.agents.base import Model

    model = as_model(model)
    prefit = getattr(type(model), "fit", None) is Model.fit
    view, y = _problem(model, view, y, prefit)
    _attempt(_clones, model)
    passed = [_title(_clones)]
    fitted = model if prefit else _fresh(model)
    if not prefit:
        _attempt(_fits, fitted, view, y)
        passed.append(_title(_fits))
    for check in (
        _gives_one_finite_number_per_item,
        _gives_the_same_scores_twice,
        _scores_each_item_by_itself,
        _scores_one_item_and_none,
    ):
        _attempt(check, fitted, view)
        passed.append(_title(check))
    if not prefit:
        _attempt(_learns_the_same_again, fitted, _fresh(model), view, y)
        passed.append(_title(_learns_the_same_again))
    if y is not None:
        _attempt(_score_points_to_plus_one, fitted, None if prefit else _fresh(model), view, y)
        reached = _gap(fitted, view, y) > 0
        passed.append("score is larger for +1" if reached else "score moves towards +1, too slowly to get there")
    return passed


def check_transport(make: "Callable[[Place], Transport]", endpoints: tuple[str, str, str] | None = None) -> list[str]:
    """Check that a transport carries frames as live agents rely on; returns what was checked.

    `make` gives a new transport for a place; three are made, 0 → 1 → 2 → 0, at these endpoints if they matter.

    >>> from collegium.live.transport.memory import Hub, MemoryTransport
    >>> hub = Hub()
    >>> check_transport(lambda place: MemoryTransport(place, hub))[0]
    'neighbours are reported'
    """
    from collegium.live.transport.check import run

    return run(make, endpoints or ("check/0", "check/1", "check/2"))


def _attempt(check: Callable[..., None], part: Any, *arguments: Any) -> None:
    """Run a check; whatever a stranger's part throws becomes a sentence that says during what."""
    try:
        check(part, *arguments)
    except CheckError:
        raise
    except Exception as problem:
        name = str(part) if isinstance(part, Rule) else type(part).__name__  # a broken model cannot even be written
        raise CheckError(f"{name} failed the check '{_title(check)}': {type(problem).__name__}: {problem}") from problem


def _is_frozen(rule: Rule) -> None:
    frozen = dataclasses.is_dataclass(rule) and getattr(rule, "__dataclass_params__").frozen  # noqa: B009
    _expect(
        frozen, f"{type(rule).__name__} must be a frozen dataclass: state goes in and comes out, never stays inside"
    )
    hash(rule)


def _pickles(rule: Rule) -> None:
    _expect(
        pickle.loads(pickle.dumps(rule)) == rule,
        f"{rule} does not equal itself after pickling: compare by value, keep only settings",
    )


def _first_round_speaks(rule: Rule) -> None:
    reference_run(_job(rule, uniform(topology.ring(3)), HoldLast(), rounds=1), rule)


def _repeats(rule: Rule) -> None:
    job = _job(rule, uniform(topology.ring(4)), HoldLast())
    _same(
        reference_run(job, rule),
        reference_run(job, rule),
        f"{rule} gives other numbers when run twice: draw only from rng",
    )


def _follows_items(rule: Rule) -> None:
    job = _job(rule, uniform(topology.ring(4)), HoldLast())
    backwards = job._replace(scores=job.scores[::-1].copy(), ids=job.ids[::-1].copy())
    there, back = reference_run(job, rule), reference_run(backwards, rule)
    _expect(
        np.array_equal(there.statistics, back.statistics[:, ::-1]),
        f"{rule} treats an item differently in another place of the batch: draw only from rng and keep nothing",
    )


def _leaves_scores_alone(rule: Rule) -> None:
    job = _job(rule, uniform(topology.ring(4)), HoldLast())
    before = job.scores.copy()
    reference_run(job, rule)
    _expect(np.array_equal(job.scores, before), f"{rule} changes the scores it is given")


def _array_path_equals_agent_view(rule: Rule, network: Policy, mailbox: Mailbox) -> None:
    for rounds in (0, 1, _ROUNDS):
        job = _job(rule, network, mailbox, rounds)
        slow, kernel = reference_run(job, rule), kernels.find(job, rule)
        where = f"on {network} with {mailbox}, {rounds} rounds"
        if kernel is None:
            raise CheckError(f"{rule} has an array path for some jobs but not {where}")
        _same(slow, kernel(job), f"the array path of {rule} differs from the agents' view {where}")


def _same(one: Any, other: Any, complaint: str) -> None:
    differ = np.argwhere(one.statistics != other.statistics)
    if len(differ):
        t, i, k, j = differ[0]
        a, b = one.statistics[t, i, k, j], other.statistics[t, i, k, j]
        raise CheckError(f"{complaint}: round {t}, item {i}, agent {k} has {a!r} and {b!r}")
    if not np.array_equal(one.costs, other.costs):
        t, i = np.argwhere(one.costs != other.costs)[0]
        a, b = one.costs[t, i], other.costs[t, i]
        raise CheckError(f"{complaint}: item {i} costs {a} and {b} transmissions")


def _networks(policy: Policy | None) -> Iterator[Policy]:
    if policy is not None:
        yield policy
    else:
        yield uniform(topology.erdos_renyi(9, links=20, seed=3))
        yield metropolis(topology.grid(2, 3))
        yield metropolis(topology.star(5))
        yield Policy([[0.0, 0.5, 0.3], [1.0, 0.0, 0.7], [0.0, 0.5, 0.0]])  # nobody listens to itself
    yield uniform(topology.ring(1))


def _job(rule: Rule, policy: Policy, mailbox: Mailbox, rounds: int = _ROUNDS) -> Job:
    """Scores of both signs with ties and repetitions, small enough for the rule's range."""
    while rounds > 1 and rule.max_score(rounds) <= 0:
        rounds -= 1
    bound = min(1.0, rule.max_score(rounds))
    grid = np.sin(np.arange(_ITEMS * policy.size)).reshape(_ITEMS, policy.size)
    grid[1], grid[2] = 0.0, np.round(grid[2])
    try:
        return validated(bound * grid, policy, rounds, [rule], 5, mailbox=mailbox)
    except CollegiumError as refusal:
        raise CheckError(f"{rule} was refused at the door: {refusal}") from refusal


def _problem(
    model: Any, view: ArrayLike | None, y: ArrayLike | None, prefit: bool
) -> tuple[NDArray[Any], NDArray[np.int8] | None]:
    """The view and labels to try the model on, as given or made here."""
    if view is None and (prefit or y is not None):
        why = f"{type(model).__name__} was fitted elsewhere" if prefit else "labels alone say nothing"
        raise CheckError(f"{why}: pass a view with some items it can score")
    form = np.zeros((_EXAMPLES, 6)) if view is None else np.asarray(view)
    _expect(form.ndim > 0, "a view is an array whose first axis is the items; got a single value")
    if y is None and not prefit:
        return _easy_problem(form)
    _expect(len(form) >= 4, f"at least four items are needed to check a model, the view has {len(form)}")
    return form, None if y is None else to_signs(y, len(form))


def _easy_problem(form: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int8]]:
    """Two classes far apart in every number of an item, and more so in the first than in the last."""
    _expect(form.dtype.kind in "fiu", f"no easy problem can be made of type {form.dtype}: pass the labels y too")
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
    _expect(
        len(settings) != 1,
        f"{name} has {''.join(settings)} alone: derive it from collegium.agents.Model, which has get_params and "
        "set_params, with settings as arguments of __init__; or leave out both",
    )
    copy = _fresh(model)
    _expect(type(copy) is type(model), f"a clone of {name} is a {type(copy).__name__}")
    _expect(copy is not model, f"a clone of {name} must be another object: Team fits clones, never what it was given")


def _fits(model: Any, view: NDArray[Any], y: NDArray[np.int8]) -> None:
    name, given, labels = type(model).__name__, view.copy(), y.copy()
    try:
        returned = model.fit(given, labels)
    except Exception as problem:
        raise CheckError(
            f"{name} cannot be fitted on a view of shape {view.shape}, type {view.dtype}: {type(problem).__name__}: "
            f"{problem}. If it wants another form, pass such a view to check_model"
        ) from problem
    _expect(returned is model, f"{name}.fit must return self, it returned {type(returned).__name__}")
    _expect(_equal(given, view), f"{name}.fit changes the view it is given: work on a copy")
    _expect(_equal(labels, y), f"{name}.fit changes the labels it is given: work on a copy")


def _gives_one_finite_number_per_item(model: Any, view: NDArray[Any]) -> None:
    name, given = type(model).__name__, view.copy()
    scores, n = model.scores(given), len(view)
    _expect(
        isinstance(scores, np.ndarray) and scores.dtype.kind == "f",
        f"{name}.scores must return a NumPy array of floats, it returned {_kind(scores)}",
    )
    _expect(scores.shape == (n,), f"{name}.scores must have shape ({n},) for {n} items, it has {scores.shape}")
    bad = np.flatnonzero(~np.isfinite(scores))
    first = int(bad[0]) if len(bad) else 0
    _expect(not len(bad), f"{name}.scores must be finite: {len(bad)} of {n} are not (first: item {first})")
    _expect(_equal(given, view), f"{name}.scores changes the view it is given: work on a copy")


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
        f"{type(model).__name__} scores an item differently in other company: learn nothing from the view it scores",
    )


def _scores_one_item_and_none(model: Any, view: NDArray[Any]) -> None:
    name = type(model).__name__
    alone = np.asarray(model.scores(view[:1]))
    _expect(alone.shape == (1,), f"{name}.scores must have shape (1,) for one item, it has {alone.shape}")
    _close(model.scores(view)[:1], alone, f"{name} scores an item differently when it comes alone")
    nothing = np.asarray(model.scores(view[:0]))
    _expect(nothing.shape == (0,), f"{name}.scores must have shape (0,) for zero items, it has {nothing.shape}")


def _learns_the_same_again(fitted: Any, unfitted: Any, view: NDArray[Any], y: NDArray[np.int8]) -> None:
    _close(
        fitted.scores(view),
        unfitted.fit(view.copy(), y.copy()).scores(view),
        f"{type(fitted).__name__} gives other scores when fitted again on the same: draw only from random_state",
    )


def _score_points_to_plus_one(fitted: Any, unfitted: Any, view: NDArray[Any], y: NDArray[np.int8]) -> None:
    """The score is larger for +1; or, for a slow learner, larger than had it been fitted on the opposite labels.

    The comparison with a twin fitted on the opposite also finds swapped outputs where luck hides them.
    """
    name, gap = type(fitted).__name__, _gap(fitted, view, y)
    opposite = gap if unfitted is None else _gap(unfitted.fit(view.copy(), -y), view, y)
    # rounding may move the score of a model that learns nothing
    slack = _ROUNDING * (1 + float(np.abs(fitted.scores(view)).max()))
    learned = abs(gap - opposite) > slack
    _expect(
        gap > opposite if learned else gap > 0,
        f"the mean score of {name} for +1 exceeds that for -1 by {gap:.4g}"
        + (f", and by {opposite:.4g} when it is fitted on the opposite labels" if unfitted is not None else "")
        + ": it must be the larger one, and positive where the model believes in it. "
        + (
            "Does it learn from its labels?" if unfitted is not None and not learned else "Are its two outputs swapped?"
        ),
    )


def _gap(model: Any, view: NDArray[Any], y: NDArray[np.int8]) -> float:
    """By how much the mean score of +1 exceeds that of -1."""
    scores = model.scores(view)
    return float(scores[y > 0].mean() - scores[y < 0].mean())


def _close(one: NDArray[Any], other: NDArray[Any], complaint: str) -> None:
    _expect(one.shape == other.shape, f"{complaint} (shapes {one.shape} and {other.shape})")
    apart = np.abs(one - other)
    worst = int(apart.argmax())
    allowed = _ROUNDING * (1 + float(np.abs(one).max()))
    _expect(apart[worst] <= allowed, f"{complaint} ({one[worst]:.6g} and {other[worst]:.6g})")


def _equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")


def _kind(value: Any) -> str:
    return f"an array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__


def _expect(condition: bool | np.bool, complaint: str) -> None:
    if not condition:
        raise CheckError(complaint)


def _title(check: Callable[..., None]) -> str:
    return check.__name__.strip("_").replace("_", " ")
