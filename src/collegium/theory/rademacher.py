r"""Rademacher complexity of classes of functions on a sample; each figure says what kind it is.

$$ \widehat{\mathfrak R}(\mathcal G) = \mathbb E_r \sup_{g \in \mathcal G} \Bigl|\frac1m \sum_n r_n g(z_n)\Bigr| $$

with independent random signs r. What enters the guarantees is its mean over samples, ρ_k [hu2026, App. A]; the
figure for one sample is an unbiased estimate of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.arguments import real_number, whole_number
from collegium.errors import AssumptionError
from collegium.theory.bound import numbers

Doubles = NDArray[np.float64]
EXACT_LIMIT = 20
"""Items up to which all sign patterns are gone through."""


class Complexity(NamedTuple):
    """A complexity, and what kind of figure it is."""

    value: float
    kind: Literal["exact", "Monte Carlo", "upper bound"]
    error: float = 0.0
    """Standard error, of a Monte Carlo figure."""


def finite_class(outputs: ArrayLike, draws: int | None = None, seed: int = 0) -> Complexity:
    """Of finitely many functions, given their values on m items: shape (functions, m).

    Exact, by going through all sign patterns, for up to 20 items; otherwise say how many patterns to draw.

    >>> finite_class([[1.0, 1.0]]).value, finite_class([[1.0, 1.0], [1.0, -1.0]]).value
    (0.5, 1.0)
    """
    G = numbers(outputs, "the functions' values")
    if G.ndim != 2 or not G.size:
        raise AssumptionError(f"values must have shape (functions, items), at least one of each; got {G.shape}")
    return _mean_over_signs(G.shape[1], draws, seed, lambda signs: np.abs(signs @ G.T).max(axis=1) / G.shape[1])


def linear_class(X: ArrayLike, norm: float, draws: int | None = None, seed: int = 0) -> Complexity:
    """Of x ↦ w·x with ‖w‖₂ ≤ norm on m items X (m, d): norm/m · E‖Σ r_n x_n‖₂, exact or by Monte Carlo.

    >>> linear_class(np.eye(4), norm=1.0).value  # orthonormal items: √m/m
    0.5
    """
    x = _items(X)
    B = real_number(norm, "the norm", AssumptionError, at_least=0)
    return _mean_over_signs(len(x), draws, seed, lambda signs: B / len(x) * np.linalg.norm(signs @ x, axis=1))


def linear_bound(X: ArrayLike, norm: float) -> Complexity:
    """The closed form norm/m · √(Σ‖x_n‖²), never below `linear_class` and at most √2 times as large [bartlett2002]."""
    x = _items(X)
    B = real_number(norm, "the norm", AssumptionError, at_least=0)
    return Complexity(B / len(x) * float(np.linalg.norm(x)), "upper bound")


# Networks


@dataclass(frozen=True)
class Affine:
    """Units that add up what they hear with weights of 1-norm at most `norm`, plus a bias of at most `bias`."""

    norm: float
    bias: float = 0.0


@dataclass(frozen=True)
class Ramp:
    """max(0, ·) of each unit, or of the maximum over `pool` units. Averages over places need no layer."""

    pool: int = 1


@dataclass(frozen=True)
class Residual:
    """The sum of what `inner` and `shortcut` make of the same units, then the ramp; no shortcut layers: as it is."""

    inner: Sequence[Layer]
    shortcut: Sequence[Layer] = ()


Layer = Affine | Ramp | Residual


def network_class(X: ArrayLike, layers: Sequence[Layer]) -> Complexity:
    r"""An upper bound for networks of these layers with norms no larger than these, on m items X (m, d).

    It begins with the coordinates, $\max_j \|x_j\|_2 \sqrt{2 \log 2d} / m$ for a finite class [massart2000]. Weights of
    1-norm W multiply it by W, a bias b adds $b / \sqrt m$; the ramp and a maximum over s units multiply it by 2s
    [bartlett2002; mohri2018]; sums add up. Weights may be shared between places in any way. Norms must be fixed before
    the items are seen: taken from a trained network the figure is about the class that it happens to mark out.
    """
    x = _items(X)
    m, d = x.shape
    start = float(np.linalg.norm(x, axis=0).max()) * np.sqrt(2 * np.log(2 * d)) / m
    return Complexity(float(_through(layers, float(start), m)), "upper bound")


def _through(layers: Sequence[Layer], R: float, m: int) -> float:
    for layer in layers:
        if isinstance(layer, Affine):
            R = layer.norm * R + layer.bias / np.sqrt(m)
        elif isinstance(layer, Ramp):
            R = 2 * layer.pool * R
        else:
            R = 2 * (_through(layer.inner, R, m) + _through(layer.shortcut, R, m))
    return R


def _mean_over_signs(m: int, draws: int | None, seed: int, largest: Callable[[Doubles], Doubles]) -> Complexity:
    if draws is None:
        if m > EXACT_LIMIT:
            raise AssumptionError(
                f"{m} items have 2^{m} sign patterns: exact for at most {EXACT_LIMIT}, so say how many draws"
            )
        half = np.arange(2 ** (m - 1), dtype=np.int64)  # the other half are these with all signs changed
        chunks = np.array_split(half, max(1, len(half) // 4096))
        sums = [largest(_signs_of(chunk, m)).sum() for chunk in chunks]
        return Complexity(float(np.sum(sums) / len(half)), "exact")
    draws = whole_number(draws, "draws", AssumptionError, at_least=2)
    rng = np.random.default_rng(seed)
    values = np.concatenate(
        [largest(rng.choice([-1.0, 1.0], (min(4096, draws - i), m))) for i in range(0, draws, 4096)]
    )
    return Complexity(float(values.mean()), "Monte Carlo", float(values.std(ddof=1) / np.sqrt(draws)))


def _signs_of(numbers_: NDArray[np.int64], m: int) -> Doubles:
    return np.asarray(1.0 - 2.0 * ((numbers_[:, None] >> np.arange(m)) & 1), np.float64)


def _items(X: ArrayLike) -> Doubles:
    x = numbers(X, "the items")
    if x.ndim < 2 or not x.size:
        raise AssumptionError(f"items must have shape (m, d), at least one of each; got {x.shape}")
    return x.reshape(len(x), -1)
