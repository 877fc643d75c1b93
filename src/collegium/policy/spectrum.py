r"""Perron vector, second eigenvalue and mixing of a primitive left-stochastic matrix.

All of mixing rests on $D = A - \pi\mathbb 1^\top$: since $A\pi = \pi$ and $\mathbb 1^\top A = \mathbb 1^\top$,
$A^t - \pi\mathbb 1^\top = D^t$ for $t \ge 1$, and $D$ has the eigenvalues of $A$ with the 1 replaced by 0.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse import linalg as splinalg

from collegium._util.arguments import real_number
from collegium.errors import AssumptionError, PolicyError
from collegium.topology.base import DENSE_LIMIT

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_RESIDUAL = 1e-14
_POWER_STEPS = 2_000
_FLOPS = 2e12  # about half a minute


def perron(A: "sparse.csc_array[Any]") -> Vector:
    """The right eigenvector of A for the eigenvalue 1, positive, summing to one.

    Small networks: elimination without subtraction (Grassmann, Taksar, Heyman), every entry to full relative
    precision. Large ones, in memory that grows with the links: detailed balance if A is reversible (every
    undirected graph with the rules of this package), else power iteration, else a sparse factorisation
    (networks that mix slowly usually factor well).
    """
    K = A.shape[0]
    if K <= DENSE_LIMIT:
        return _by_elimination(A.toarray())
    guess = _by_detailed_balance(A)
    if guess is not None and np.abs(A @ guess - guess).sum() <= 1e3 * _RESIDUAL:
        return guess
    if _hangs_by_a_thread(A):
        if K > 4 * DENSE_LIMIT:
            raise PolicyError(
                f"these {K} agents hang together only by weights below 1e-8: too little to find their Perron vector by"
            )
        return _by_elimination(A.toarray())
    x = np.full(K, 1 / K)
    for _ in range(_POWER_STEPS):
        y = A @ x
        y /= y.sum()
        moved, x = np.abs(y - x).sum(), y
        if moved <= _RESIDUAL:
            return np.asarray(x, np.float64)
    return _by_factorisation(A)


def _by_elimination(A: Matrix) -> Vector:
    P = A.T.copy()
    for n in range(len(P) - 1, 0, -1):  # leave out agent n: what passed through it goes on directly
        P[:n, n] /= P[n, :n].sum()
        P[:n, :n] += np.outer(P[:n, n], P[n, :n])
    x = np.ones(len(P))
    for n in range(1, len(P)):
        x[n] = x[:n] @ P[:n, n]
        x[: n + 1] /= x[: n + 1].max()
    return _positive(x)


def _hangs_by_a_thread(A: "sparse.csc_array[Any]") -> bool:
    """Whether the network falls apart without its tiniest weights: then power iteration stands still too early."""
    strong = sparse.csr_array(A >= 1e-8)
    return bool(csgraph.connected_components(strong, directed=True, connection="strong")[0] > 1)


def _by_factorisation(A: "sparse.csc_array[Any]") -> Vector:
    """With the last entry set to one, the other K-1 equations are a sparse M-matrix system."""
    K = A.shape[0]
    if K > 20_000 and A.nnz > 5 * K:
        raise PolicyError(
            f"the Perron vector of this directed network of {K} agents was not found: it mixes too slowly for power "
            "iteration and is too large to factor"
        )
    reduced = (sparse.eye_array(K, format="csc") - A)[: K - 1]
    solver = splinalg.splu(sparse.csc_array(reduced[:, : K - 1]), permc_spec="COLAMD")
    x = np.append(solver.solve(-reduced[:, [K - 1]].toarray().ravel()), 1.0)
    return _positive(x / x.sum())


def _by_detailed_balance(A: "sparse.csc_array[Any]") -> Vector | None:
    """What the Perron vector must be if A is reversible (a_lk π_k = a_kl π_l); None if it cannot be."""
    K = A.shape[0]
    forward, backward = sparse.csr_array(A), sparse.csr_array(A.T)
    forward.sort_indices()
    backward.sort_indices()
    if not (np.array_equal(forward.indptr, backward.indptr) and np.array_equal(forward.indices, backward.indices)):
        return None
    parent = csgraph.breadth_first_order(forward, 0, directed=True)[1]
    parent[0] = 0
    children = np.arange(1, K)
    heard, given = A[children, parent[1:]], A[parent[1:], children]
    log_pi = np.append(0.0, np.log(heard) - np.log(given))  # each agent against its parent in the tree …
    while parent.any():  # … then against its parent's parent, and so on up to agent 0
        log_pi += log_pi[parent]
        parent = parent[parent]
    pi: Vector = np.exp(log_pi - log_pi.max())
    pi /= pi.sum()
    return pi if (pi > 0).all() else None


def _positive(x: Vector) -> Vector:
    if not (np.isfinite(x).all() and (x > 0).all()):
        k = int(np.argmin(x))
        raise PolicyError(
            f"the Perron vector cannot be told apart from zero at agent {k}: its messages hardly ever reach the others"
        )
    return np.asarray(x / x.sum(), np.float64)


def slem(A: "sparse.csc_array[Any]", pi: Vector) -> float:
    """The second-largest eigenvalue modulus of A: the spectral radius of D.

    As exact as eigenvalues are: where D is close to a long Jordan block (agents in a row, each hearing only the one
    before and a common first), a rounding error of eps moves them by up to eps^(1/K).
    """
    K = A.shape[0]
    root = np.sqrt(pi)
    similar, symmetric = _similar(A, root)
    if K <= DENSE_LIMIT:
        D = similar.toarray() - np.outer(root, root)
        eigenvalues = np.linalg.eigvalsh((D + D.T) / 2) if symmetric else np.linalg.eigvals(D)
        largest = float(np.abs(eigenvalues).max())
        return largest if largest > 4 * K * np.finfo(float).eps else 0.0
    return _slem_symmetric(similar, root) if symmetric else _slem_general(similar, root)


def _similar(A: "sparse.csc_array[Any]", root: Vector) -> tuple["sparse.csc_array[Any]", bool]:
    """A reversible A is similar to a symmetric matrix, whose eigenvalues are found more surely; says whether it is."""
    similar = sparse.csc_array(sparse.diags_array(1 / root) @ A @ sparse.diags_array(root))
    return similar, bool(abs(similar - similar.T).max() <= 1e-12)


def _deflated(similar: "sparse.csc_array[Any]", root: Vector) -> splinalg.LinearOperator:
    return splinalg.LinearOperator(
        similar.shape, matvec=lambda x: similar @ np.ravel(x) - root * (root @ np.ravel(x)), dtype=np.float64
    )


def _slem_symmetric(similar: "sparse.csc_array[Any]", root: Vector) -> float:
    start = np.cos(np.arange(len(root)))
    try:
        found = splinalg.eigsh(
            _deflated(similar, root),
            k=1,
            which="LM",
            v0=start,
            maxiter=50,
            tol=1e-10,
            return_eigenvectors=False,
        )
        return float(abs(found[0]))
    except splinalg.ArpackNoConvergence:
        # Slow mixing: eigenvalues crowd near 1, and such a network factors well, so look there directly.
        upper = splinalg.eigsh(similar, k=2, sigma=1 + 1e-8, which="LM", v0=start, return_eigenvectors=False)
        second = float(np.sort(upper)[0])
        if 1 - 2 * similar.diagonal().min() > second:  # Gershgorin: no eigenvalue lies below 2 min a_kk - 1
            raise _not_found(len(root)) from None
        return second


def _slem_general(similar: "sparse.csc_array[Any]", root: Vector) -> float:
    """Found twice, from different starts: asked for only a few eigenvalues, ARPACK can miss the largest."""
    K = len(root)
    found = []
    for count, start in ((20, np.cos(np.arange(K))), (30, np.sin(np.arange(K) ** 2.0))):
        basis = min(6 * count if K <= 200_000 else 2 * count + 1, K - 1)
        try:
            largest = splinalg.eigs(
                _deflated(similar, root), k=count, ncv=basis, which="LM", v0=start, maxiter=300, tol=1e-10,
                return_eigenvectors=False,
            )  # fmt: skip
        except splinalg.ArpackNoConvergence:
            raise _not_found(K) from None
        found.append(float(np.abs(largest).max()))
    if abs(found[0] - found[1]) > 1e-8:
        raise _not_found(K)
    return max(found)


def _not_found(K: int) -> PolicyError:
    return PolicyError(
        f"sigma_A of this network of {K} agents was not found: its largest eigenvalues lie too close together"
    )


def mixing_constant(A: Matrix, pi: Vector, sigma_A: float, sigma: float) -> float:
    r"""The smallest C with $|[A^t]_{\ell k} - \pi_\ell| \le C\sigma^t$ for every $t \ge 0$.

    With $E = D/\sigma$ and $m_t = \max|E^t|$ (and $m_0 = \max|I - \pi\mathbb 1^\top|$), C is $\sup_t m_t$. Once
    $\|E^s\| \le 1$ in the maximum row sum or column sum norm, $m_{t+s} \le \|E^s\|\, m_t \le m_t$ for every t, so the
    tail from s on cannot exceed the maximum before s: the search ends there with the supremum itself. Such an s
    exists because the spectral radius of E is $\sigma_A/\sigma < 1$. If A is reversible, $D$ is similar to a symmetric
    matrix by $\mathrm{diag}(\sqrt\pi)$, so $m_t \le \sqrt{\max\pi/\min\pi}\,(\sigma_A/\sigma)^t$ ends it sooner.
    """
    sigma = real_number(sigma, "sigma", AssumptionError)
    if not sigma_A * (1 + len(A) * np.finfo(float).eps) < sigma < 1:
        raise AssumptionError(f"sigma must lie strictly between sigma_A = {sigma_A:.6g} and 1, got {sigma:.6g}")
    D = A - pi[:, None]
    D[np.abs(D) <= 4 * np.finfo(float).eps] = 0.0  # no smaller entry can be told from zero
    _, reversible = _similar(sparse.csc_array(A), np.sqrt(pi))
    envelope = math.sqrt(pi.max() / pi.min()) * (1 + 1e-9) if reversible else math.inf
    E = D / sigma
    largest = float(np.abs(np.eye(len(A)) - pi[:, None]).max())
    power = E
    for _ in range(min(_steps(len(A)), 100_000)):
        largest = max(largest, float(np.abs(power).max()))
        envelope *= sigma_A / sigma
        if _norm(power) <= 1 or envelope <= largest:
            return largest
        power = power @ E
    raise PolicyError(
        f"sigma = {sigma} is too close to sigma_A = {sigma_A:.6g}: the search for C(A, sigma) did not end. "
        "Take a larger sigma."
    )


def b_mix(A: Matrix, pi: Vector, sigma_A: float, tolerance: float = 1e-10) -> float:
    r"""$\max_k \sum_{i \ge 1} \|D^i e_k\|_1$, never too small.

    It is too large by at most `tolerance`, relative above 1 and absolute below. After n terms the rest of column
    k is at most $\|D^n e_k\|_1 \sum_{j \ge 1} \|D^j\|_1$, and once $q = \|D^s\|_1 < 1$ that sum is at most
    $\sum_{j \le s} \|D^j\|_1 / (1 - q)$.
    """
    D = A - pi[:, None]
    steps = _steps(len(A))
    if sigma_A >= 1 or (sigma_A > 0 and math.log(tolerance * (1 - sigma_A)) / math.log(sigma_A) > steps):
        raise PolicyError(
            f"B_mix of {len(A)} agents with sigma_A = {sigma_A:.8g} has too many terms to add up: "
            "bound it by K C(A, sigma) sigma / (1 - sigma), see mixing_constant"
        )
    sums, norms, tail = np.zeros(len(A)), 0.0, math.inf
    power = D
    for _ in range(steps):
        column = np.abs(power).sum(axis=0)
        sums += column
        if math.isinf(tail):
            norms += float(column.max())
            if column.max() < 0.5:
                tail = norms / (1 - float(column.max()))
        if math.isfinite(tail):
            most = float((sums + column * tail).max())
            if most - float(sums.max()) <= tolerance * max(1.0, most):
                return most
        power = power @ D
    raise PolicyError(f"B_mix did not reach its tolerance of {tolerance}: A mixes too slowly")


def mixing_time(A: Matrix, pi: Vector, distance: float = 0.25) -> int:
    """The first t at which every column of A^t is within `distance` of the Perron vector in total variation.

    That distance never grows with t, so powers of two bracket the answer and a descent finds it.
    """

    def far(power: Matrix) -> bool:
        return float(np.abs(power - pi[:, None]).sum(axis=0).max()) / 2 > distance

    if not far(np.eye(len(A))):
        return 0
    ladder = [np.asarray(A)]
    while far(ladder[-1]):
        ladder.append(ladder[-1] @ ladder[-1])
        if len(ladder) > 60:
            raise PolicyError("this network practically never mixes: its mixing time is above 2**60 rounds")
    t, power = 0, np.eye(len(A))
    for j in reversed(range(len(ladder) - 1)):  # A^t is far, A^(t + 2^(j+1)) is not
        further = power @ ladder[j]
        if far(further):
            t, power = t + 2**j, further
    return t + 1


def _norm(X: Matrix) -> float:
    size = np.abs(X)
    return float(min(size.sum(axis=0).max(), size.sum(axis=1).max()))


def _steps(K: int) -> int:
    return int(min(1_000_000, max(1_000, _FLOPS / (2.0 * K**3))))
