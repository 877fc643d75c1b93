"""What a guarantee gives back: the numbers, whether they say anything, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.arguments import whole_number
from collegium.errors import AssumptionError, PolicyError
from collegium.policy import Policy

Doubles = NDArray[np.float64]

BOUNDED = "scores are bounded: |f_k| ≤ β for every agent (Assumption 2)"
CONNECTED = "A is primitive: strongly connected, with a self-loop somewhere (Assumption 3)"
FOLLOWED = (
    "every statistic combines the scores with the weights that rule and schedule give: no message is lost (in place of "
    "Assumption 3)"
)
MARGIN = "the centred aggregate attains the margin: μ⁺ > δ and μ⁻ < -δ (the event C_δ)"
MARGIN_RAW = "the raw aggregate attains the margin: μ⁺ > δ and μ⁻ < -δ (the event C_δ^raw)"
TENSORISED = "views tensorise entropy approximately given the class, with factor τ (Assumption 5; 1 if independent)"
RIVALS = (
    "statistics of classes y and j stand for the score f: β, δ and ρ are of their difference, for every pair (y, j)"
)
ROUNDING = "messages are rounded to one of the two nearest levels, unbiased, with draws of their own"


def resting_on(raw: bool, classes: int = 2, *more: str, network: str = CONNECTED) -> tuple[str, ...]:
    """What the guarantees about deciding have in common."""
    return (BOUNDED, network, TENSORISED, MARGIN_RAW if raw else MARGIN, *of_classes(classes), *more)


def of_classes(classes: int) -> tuple[str, ...]:
    """What several classes add to the assumptions."""
    return (RIVALS,) if classes > 2 else ()


@dataclass(frozen=True, eq=False)
class Bound:
    """A guarantee in numbers."""

    value: Doubles
    """The bound; NaN where the theorem says nothing."""
    vacuous: NDArray[np.bool_]
    """Where it is true but says nothing: an error of at most 1, a probability of at least 0; or NaN."""
    assumptions: tuple[str, ...]
    """What it rests on; those that can be checked were checked, the others are the user's to know."""
    parts: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The quantities of the theorem it was computed from, by the paper's names."""

    @property
    def is_vacuous(self) -> bool:
        """Whether no entry says anything."""
        return bool(np.all(self.vacuous))


def upper(value: ArrayLike, assumptions: tuple[str, ...], **parts: Any) -> Bound:
    """An upper bound on an error probability."""
    x = np.asarray(value, np.float64)
    return Bound(x, ~(x < 1), assumptions, parts)


def lower(value: ArrayLike, assumptions: tuple[str, ...], **parts: Any) -> Bound:
    """A lower bound on a probability."""
    x = np.asarray(value, np.float64)
    return Bound(x, ~(x > 0), assumptions, parts)


# Validation of assumptions


def numbers(value: ArrayLike, name: str) -> Doubles:
    """Finite real numbers of any shape."""
    try:
        x = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise AssumptionError(f"{name} must be a number or an array of numbers; got {value!r:.60}") from None
    if not np.isfinite(x).all():
        raise AssumptionError(f"{name} must be finite; got {value!r:.60}")
    return x


def positive(value: ArrayLike, name: str) -> Doubles:
    """Numbers above 0."""
    x = numbers(value, name)
    if not (x > 0).all():
        raise AssumptionError(f"{name} must be positive; got {float(x.min()):g}")
    return x


def margin(delta: ArrayLike, *, above_zero: bool = False) -> Doubles:
    """A decision margin δ."""
    x = numbers(delta, "the margin δ")
    if not ((x > 0) if above_zero else (x >= 0)).all():
        limit = "positive" if above_zero else "0 or more"
        raise AssumptionError(f"the margin δ must be {limit}; got {float(x.min()):g}")
    return x


def dependence(tau: ArrayLike) -> Doubles:
    """A coefficient τ of approximate tensorisation."""
    x = numbers(tau, "the dependence factor τ")
    if not (x >= 1).all():
        raise AssumptionError(
            f"the dependence factor τ is at least 1, its value for independent views; got {x.min():g}"
        )
    return x


def several(classes: int) -> int:
    """A number of classes, C."""
    return whole_number(classes, "classes", AssumptionError, at_least=2)


def probability(epsilon: ArrayLike, name: str = "ε") -> Doubles:
    """Numbers strictly between 0 and 1."""
    x = numbers(epsilon, name)
    if not ((x > 0) & (x < 1)).all():
        raise AssumptionError(f"{name} must lie strictly between 0 and 1; got {epsilon!r:.60}")
    return x


def primitive(policy: Any) -> Policy:
    """A policy; that its matrix is primitive was checked when it was made, and a bare matrix is checked here."""
    if isinstance(policy, Policy):
        return policy
    try:
        return Policy(policy)
    except PolicyError as problem:
        raise AssumptionError(f"A is not a primitive combination matrix: {problem}") from None


def together(**arrays: Doubles) -> list[Doubles]:
    """Arrays broadcast against one another, by name in case they cannot be."""
    try:
        return list(np.broadcast_arrays(*arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in arrays.items())
        raise AssumptionError(f"these shapes cannot be broadcast against one another: {shapes}") from None
