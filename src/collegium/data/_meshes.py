"""Meshes in OFF files: read whole or refused by name, brought to unit size, and rid of what stands twice."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputFileError

WELD = 1e-5
"""Vertices nearer than this are one, in a mesh that fills the unit sphere."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """Vertices and the polygons between them.

    >>> square = Mesh(np.eye(4, 3), np.array([0, 1, 2, 3]), np.array([4]))
    >>> [face.tolist() for face in square.faces]
    [[0, 1, 2, 3]]
    """

    vertices: NDArray[np.float64]
    """Shape (n, 3)."""
    corners: NDArray[np.int32]
    """The vertices of the first face, then those of the second, and so on."""
    sizes: NDArray[np.int32]
    """How many corners each face has."""

    @property
    def faces(self) -> list[NDArray[np.int32]]:
        """The corners of each face."""
        return np.split(self.corners, np.cumsum(self.sizes)[:-1]) if len(self.sizes) else []


def read_off(path: Path) -> Mesh:
    """A mesh from an OFF file. The header may be glued to the counts, as it is in some files of ModelNet."""
    try:
        text = path.read_bytes().decode("ascii")
    except OSError as problem:
        raise InputFileError(f"{path}: {problem.strerror or problem}") from None
    except UnicodeDecodeError:
        raise InputFileError(f"{path} is not an OFF file: it is no plain text") from None
    head = re.match(r"(?:\s|#.*\n)*OFF(?![A-Za-z])", text)
    if head is None:
        raise InputFileError(f"{path} is not an OFF file: it does not begin with OFF")
    first = text.count("\n", 0, head.end()) + 1
    lines = [(number, line.partition("#")[0]) for number, line in enumerate(text[head.end() :].split("\n"), first)]
    lines = [(number, line) for number, line in lines if line.strip()]
    vertices, faces = _counts(path, lines)
    if len(lines) != 1 + vertices + faces:
        raise InputFileError(
            f"{path} is truncated or damaged: it promises {vertices} vertices and {faces} faces, "
            f"but {len(lines) - 1} lines follow"
        )
    points = _vertices(path, lines[1 : 1 + vertices])
    return Mesh(points, *_faces(path, lines[1 + vertices :], vertices))


def prepare(mesh: Mesh) -> Mesh:
    """The mesh as it is rendered: in the unit sphere, without doubles. Raises a ValueError if nothing is left of it."""
    return weld(to_unit_sphere(mesh))


def to_unit_sphere(mesh: Mesh) -> Mesh:
    """The middle of the bounding box of what the faces use goes to the origin, the vertex furthest from it to 1."""
    used = mesh.vertices[np.unique(mesh.corners)]
    middle = used.min(axis=0) / 2 + used.max(axis=0) / 2
    with np.errstate(over="ignore"):
        radius = np.linalg.norm(used - middle, axis=1).max()
    if not radius > 0 or not np.isfinite(radius):
        raise ValueError("all its vertices stand in one place" if radius == 0 else "its vertices are too far apart")
    return Mesh((mesh.vertices - middle) / radius, mesh.corners, mesh.sizes)


def weld(mesh: Mesh, distance: float = WELD) -> Mesh:
    """Vertices nearer than `distance` become one, then faces with the same corners: two coincident walls would lie
    in each other's shadow and render black.

    >>> corner = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    >>> twice = Mesh(np.array(corner + corner[::-1], float), np.arange(6, dtype=np.int32), np.array([3, 3], np.int32))
    >>> len(weld(twice).sizes), len(weld(twice).vertices)
    (1, 3)
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import KDTree

    places, place = np.unique(mesh.vertices, axis=0, return_inverse=True)
    near = KDTree(places).query_pairs(distance, output_type="ndarray")
    links = coo_array((np.ones(len(near)), (near[:, 0], near[:, 1])), shape=(len(places),) * 2)
    group = connected_components(links, directed=False)[1]
    _, kept = np.unique(group, return_index=True)
    corners = group[place.ravel()][mesh.corners]
    faces: dict[frozenset[int], list[int]] = {}
    for face in np.split(corners, np.cumsum(mesh.sizes)[:-1]):
        around = _without_repeats(face.tolist())
        if len(set(around)) >= 3:
            faces.setdefault(frozenset(around), around)
    if not faces:
        raise ValueError("none of its faces has an area")
    flat = np.array([corner for face in faces.values() for corner in face], np.int32)
    return Mesh(places[kept], flat, np.array([len(face) for face in faces.values()], np.int32))


def _without_repeats(face: list[int]) -> list[int]:
    return [corner for i, corner in enumerate(face) if corner != face[i - 1]]


def _counts(path: Path, lines: list[tuple[int, str]]) -> tuple[int, int]:
    words = lines[0][1].split() if lines else []
    if len(words) not in (2, 3) or not all(re.fullmatch("[0-9]{1,9}", word) for word in words):
        raise InputFileError(f"{path}: the numbers of vertices, faces and edges must follow the line OFF")
    vertices, faces = int(words[0]), int(words[1])
    if not vertices or not faces:
        raise InputFileError(f"{path} is empty: it has {vertices} vertices and {faces} faces")
    return vertices, faces


def _vertices(path: Path, lines: list[tuple[int, str]]) -> NDArray[np.float64]:
    words = [line.split() for _, line in lines]
    bad = next((i for i, three in enumerate(words) if len(three) != 3), None)
    if bad is None:
        points = _numbers(words)
        if points is not None and np.isfinite(points).all():
            return points
        bad = next(i for i, three in enumerate(words) if (p := _numbers([three])) is None or not np.isfinite(p).all())
    raise InputFileError(f"{path}, line {lines[bad][0]}: a vertex is three finite numbers; got {_short(lines[bad][1])}")


def _faces(path: Path, lines: list[tuple[int, str]], vertices: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Colours after the corners are passed over."""
    corners: list[int] = []
    sizes: list[int] = []
    for number, line in lines:
        words = line.split()
        try:
            size = int(words[0])
            face = [int(word) for word in words[1 : 1 + size]]
        except ValueError:
            size, face = 0, []
        if size < 1 or len(face) < size:
            raise InputFileError(f"{path}, line {number}: a face is a count and that many corners; got {_short(line)}")
        wrong = next((corner for corner in face if not 0 <= corner < vertices), None)
        if wrong is not None:
            raise InputFileError(
                f"{path}, line {number}: there is no vertex {wrong}, the last of {vertices} is {vertices - 1}"
            )
        corners += face
        sizes.append(size)
    return np.array(corners, np.int32), np.array(sizes, np.int32)


def _numbers(words: list[list[str]]) -> NDArray[np.float64] | None:
    try:
        numbers: NDArray[Any] = np.array(words).astype(np.float64)
    except ValueError:
        return None
    return numbers


def _short(line: str) -> str:
    return repr(line.strip() if len(line.strip()) <= 60 else line.strip()[:60] + "…")
