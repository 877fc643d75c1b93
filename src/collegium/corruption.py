r"""What goes wrong with local statistics before the first round: noise, faults, adversaries, common disturbance.

Every function takes clean scores of shape (n, K), or (n, K, C) of C > 2 classes, and returns new ones. Sizes are
relative: `eta` multiplies $\hat s$, the median over agents (and classes) of each one's sample standard deviation.
[hu2026, App. H.3 and H.2]
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.arguments import real_number, whole_number
from collegium._util.randomness import Seed, distinct, seed64
from collegium._util.scores import check_scores_of_classes
from collegium.errors import ScoreError

Doubles = NDArray[np.float64]
Agents = Sequence[int] | NDArray[np.integer[Any]]


def draw_agents(K: int, m: int, rng: Seed = 0) -> NDArray[np.int64]:
    """m of K agents, uniformly without replacement, ascending: who is corrupted throughout a repetition.

    >>> len(set(draw_agents(12, 5, rng=1)))
    5
    """
    K = whole_number(K, "the number of agents", ScoreError, at_least=1)
    m = whole_number(m, "m, how many agents are corrupted,", ScoreError, at_most=K)
    return distinct(seed64(rng), K, m)


def scale(scores: ArrayLike) -> float:
    r"""$\hat s$: the median over agents of the sample standard deviation of each agent's scores.

    >>> scale([[0.0, 0.0, 1.0], [2.0, 4.0, 1.0]])  # standard deviations √2, √8 and 0
    1.4142135623730951
    """
    values = _scores(scores)
    if len(values) < 2:
        raise ScoreError(f"a standard deviation needs at least 2 items, got {len(values)}")
    return float(np.median(values.std(axis=0, ddof=1)))


def noise(scores: ArrayLike, agents: Agents, eta: float, rng: Seed = 0, unit: float | None = None) -> Doubles:
    r"""Benign noise: $x_{i,k} + \eta \hat s\, \zeta_{i,k}$ with independent Gaussian $\zeta$ at the given agents.

    The noise of an agent does not depend on which others are corrupted too. unit: instead of $\hat s$.
    """
    corrupted, chosen = _chosen(scores, agents)
    zeta = _centred(_generator(rng).standard_normal(corrupted.shape))
    corrupted[:, chosen] += _size(eta, "eta") * _unit(scores, unit) * zeta[:, chosen]
    return corrupted


def stuck(scores: ArrayLike, agents: Agents) -> Doubles:
    """Stuck at zero: the given agents report 0 for every item.

    >>> stuck([[1.0, 2.0], [3.0, 4.0]], [1])
    array([[1., 0.],
           [3., 0.]])
    """
    corrupted, chosen = _chosen(scores, agents)
    corrupted[:, chosen] = 0.0
    return corrupted


def bias(scores: ArrayLike, agents: Agents, eta: float, unit: float | None = None) -> Doubles:
    r"""Constant bias: $x_{i,k} + \eta \hat s$ at the given agents; eta may be negative. unit: instead of $\hat s$."""
    corrupted, chosen = _chosen(scores, agents)
    if corrupted.ndim == 3:
        raise ScoreError("a bias favours one of two classes; added to all entries of several it changes no decision")
    corrupted[:, chosen] += real_number(eta, "eta", ScoreError) * _unit(scores, unit)
    return corrupted


def sign_flip(scores: ArrayLike, agents: Agents, eta: float = 1.0) -> Doubles:
    r"""Adversarial reports: $-\eta x_{i,k}$ at the given agents; 0 silences, 1 flips, more shouts the wrong way.

    >>> sign_flip([[1.0, 2.0]], [0], eta=3)
    array([[-3.,  2.]])
    """
    corrupted, chosen = _chosen(scores, agents)
    corrupted[:, chosen] *= -_size(eta, "eta")
    return corrupted


def common_mode(scores: ArrayLike, r: float, sigma: float, rng: Seed = 0) -> Doubles:
    r"""The correlation stress test: a disturbance shared by all agents mixed with one of each agent's own.

    $$ x'_{i,k} = x_{i,k} + \sigma\Bigl(\frac{r}{\sqrt{1+r^2}} u_i + \frac{1}{\sqrt{1+r^2}} e_{i,k}\Bigr) $$

    with standard Gaussian $u_i$ and $e_{i,k}$: r moves variance from the own to the shared part, the total stays
    $\sigma^2$. The draws do not depend on r or sigma. [hu2026, App. H.2]
    """
    values = _scores(scores)
    generator = _generator(rng)
    shared = _centred(generator.standard_normal((len(values), 1, *values.shape[2:])))
    own = _centred(generator.standard_normal(values.shape))
    share = 1.0 if r == math.inf else _size(r, "r") / math.hypot(1.0, r)  # infinity: nothing of one's own
    return values + _size(sigma, "sigma") * (share * shared + math.sqrt(1.0 - share * share) * own)


def _scores(scores: ArrayLike) -> Doubles:
    array = np.asarray(scores)
    if array.ndim not in (2, 3):
        raise ScoreError(
            f"scores must have shape (items, agents) or (items, agents, classes), got an array of shape {array.shape}"
        )
    values = check_scores_of_classes(array, array.shape[1])
    return values[:, :, 0] if array.ndim == 2 else values


def _centred(drawn: Doubles) -> Doubles:
    """Draws for entries of several classes, which must go on summing to zero."""
    return drawn if drawn.ndim == 2 else drawn - drawn.mean(axis=2, keepdims=True)


def _chosen(scores: ArrayLike, agents: Agents) -> tuple[Doubles, NDArray[np.int64]]:
    values = _scores(scores).copy()
    chosen = np.asarray(agents)
    if chosen.dtype == np.bool_ and chosen.shape == (values.shape[1],):
        chosen = np.flatnonzero(chosen)  # a mask over the agents
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise ScoreError(f"agents must be a list of agent numbers, or a mask over all of them; got {agents!r}")
    chosen = chosen.astype(np.int64)
    unknown = chosen[(chosen < 0) | (chosen >= values.shape[1])]
    if len(unknown):
        raise ScoreError(f"there is no agent {unknown[0]}: agents are 0 to {values.shape[1] - 1}")
    if len(np.unique(chosen)) < len(chosen):
        raise ScoreError(f"an agent can be corrupted only once, got {chosen.tolist()}")
    return values, chosen


def _unit(scores: ArrayLike, unit: float | None) -> float:
    return scale(scores) if unit is None else _size(unit, "the unit")


def _size(value: float, name: str) -> float:
    return real_number(value, name, ScoreError, at_least=0)


def _generator(rng: Seed) -> np.random.Generator:
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(seed64(rng))
