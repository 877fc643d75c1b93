"""Columns of one table dealt out to K agents, to plan a network before the data are split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.arguments import real_number, whole_number
from collegium.data._splits import generator
from collegium.errors import DataError

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
_STARTS = 8, 500  # random assignments to begin with: at most so many, and so many columns in all of them


@dataclass(frozen=True, eq=False)
class Columns:
    """Which columns of a table each agent sees, and how correlated the views are."""

    columns: tuple[tuple[int, ...], ...]
    """Of each agent, ascending. Every column belongs to one agent."""
    correlation: float
    """Mean absolute rank correlation between columns of different agents."""
    lowest: float
    highest: float
    """The least and the most that were found for the same numbers of columns."""

    def views(self, X: ArrayLike) -> list[NDArray[Any]]:
        """The K views of a table with these columns, shape (n, p)."""
        table = np.asarray(X)
        if table.ndim != 2 or table.shape[1] != sum(map(len, self.columns)):
            raise DataError(f"the split is of {sum(map(len, self.columns))} columns, the table has shape {table.shape}")
        return [table[:, list(chosen)] for chosen in self.columns]


def split_columns(
    X: ArrayLike,
    agents: int,
    *,
    correlation: float = 0.5,
    balance: float = np.inf,
    seed: int | np.random.Generator = 0,
) -> Columns:
    r"""Deal the columns of a table out to K agents, with views as correlated as asked for.

    X: numbers, shape (n, p), with at least as many columns as agents.
    agents: K.
    correlation: between 0, where columns that resemble each other go to the same agent and views are as independent as
        they can be, and 1, where they are spread over all agents and every view tells much the same.
    balance: how equal the numbers of columns are, the concentration of a symmetric Dirichlet distribution: infinity
        gives equal numbers, 1 any numbers, below 1 a few agents with most columns. Everybody gets one at least.
    seed: the same one gives the same split.

    Rank correlations are Spearman's; a constant column resembles nothing. `correlation` says how far between the lowest
    and the highest value that exchanges of columns reach; these are found by steepest descent, from several starts
    where columns are few, so a large table may allow a little more.

    >>> rng = np.random.default_rng(0)
    >>> base = rng.normal(size=(200, 2))
    >>> X = np.repeat(base, 2, axis=1) + 0.1 * rng.normal(size=(200, 4))  # columns 0 and 1, 2 and 3 resemble each other
    >>> split_columns(X, 2, correlation=0.0).columns
    ((0, 1), (2, 3))
    """
    table = _checked(X, agents)
    wanted = real_number(correlation, "correlation", DataError, at_least=0, at_most=1)
    rng = generator(seed)
    p = table.shape[1]
    sizes = _sizes(p, agents, balance, rng)
    R = _rank_correlations(table)
    pairs = (p * p - sum(size * size for size in sizes)) / 2
    starts = [
        rng.permutation(np.repeat(np.arange(agents), sizes)) for _ in range(max(min(_STARTS[0], _STARTS[1] // p), 1))
    ]
    ends = {
        sign: max((_climb(R, start, agents, sign) for start in starts), key=lambda owner: sign * _across(R, owner))
        for sign in (-1, 1)
    }
    lowest, highest = _across(R, ends[-1]), _across(R, ends[1])
    owner = _approach(R, ends[-1 if wanted < 0.5 else 1], agents, lowest + wanted * (highest - lowest))
    order = sorted(tuple(np.flatnonzero(owner == agent).tolist()) for agent in range(agents))
    scale = 1 / pairs if pairs else 0.0
    return Columns(tuple(order), _across(R, owner) * scale, lowest * scale, highest * scale)


def _checked(X: ArrayLike, agents: int) -> Floats:
    try:
        table = np.asarray(X, np.float64)
    except (TypeError, ValueError) as problem:
        raise DataError(f"the table must hold numbers: {problem}") from None
    if table.ndim != 2 or not np.isfinite(table).all() or len(table) < 2:
        raise DataError(f"the table must be finite numbers of shape (n, p), n at least 2; got shape {table.shape}")
    whole_number(agents, "agents", DataError, at_least=1, at_most=table.shape[1])
    return table


def _sizes(p: int, K: int, balance: float, rng: np.random.Generator) -> list[int]:
    """How many columns each agent gets: one, and its share of the rest."""
    if balance == np.inf:
        return [p // K + (k < p % K) for k in range(K)]
    shares = rng.dirichlet(np.full(K, real_number(balance, "balance", DataError, above=0)))
    return list(1 + rng.multinomial(p - K, shares))


def _rank_correlations(table: Floats) -> Floats:
    """|Spearman's rho| of every two columns, 0 on the diagonal, shape (p, p)."""
    from scipy.stats import rankdata

    ranks = rankdata(table, axis=0)
    ranks -= ranks.mean(axis=0)
    length = np.sqrt((ranks**2).sum(axis=0))
    ranks /= np.where(length > 0, length, 1.0)
    R: Floats = np.abs(ranks.T @ ranks)
    np.fill_diagonal(R, 0.0)
    return R


def _across(R: Floats, owner: Places) -> float:
    """The correlations between columns of different agents, added up."""
    return float(R[owner[:, None] != owner].sum()) / 2


def _gains(R: Floats, owner: Places, K: int) -> Floats:
    """By how much `_across` grows if two columns change places, shape (p, p); 0 for two of one agent."""
    to = R @ np.eye(K)[owner]  # (p, K): a column's correlations with the columns of each agent
    with_own = to[np.arange(len(owner)), owner]
    with_other = to[:, owner]
    gain = with_own[:, None] + with_own - with_other - with_other.T + 2 * R
    return np.where(owner[:, None] == owner, 0.0, gain)


def _climb(R: Floats, owner: Places, K: int, sign: int) -> Places:
    """Exchange two columns, always the best two, as long as correlation across agents grows (sign 1) or falls (-1)."""
    owner = owner.copy()
    while True:
        gain = sign * _gains(R, owner, K)
        i, j = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[i, j] <= 1e-9:
            return owner
        owner[i], owner[j] = owner[j], owner[i]


def _approach(R: Floats, owner: Places, K: int, wanted: float) -> Places:
    """Exchange two columns, always those that bring it nearest to what is wanted, as long as that helps."""
    owner = owner.copy()
    while True:
        off = wanted - _across(R, owner)
        left = np.abs(off - _gains(R, owner, K))
        i, j = np.unravel_index(int(left.argmin()), left.shape)
        if left[i, j] >= abs(off) - 1e-9:
            return owner
        owner[i], owner[j] = owner[j], owner[i]
