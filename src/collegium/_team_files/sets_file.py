"""What a team remembers of held-out items for its prediction sets, as a file of plain arrays."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from collegium.errors import InputFileError
from collegium.theory.conformal import Conformal

NAME = "sets.npz"


def to_bytes(known: Mapping[str, Conformal]) -> bytes:
    """How far each class was behind, for the team and then for each agent, and the true classes."""
    found = list(known.values())
    buffer = io.BytesIO()
    np.savez(
        buffer, allow_pickle=False, behind=np.stack([one.behind for one in found]), places=found[0].places,
        per_class=np.array(found[0].per_class),
    )  # fmt: skip
    return buffer.getvalue()


def from_bytes(path: Path, data: bytes, names: Sequence[str], classes: int) -> dict[str, Conformal]:
    """The same again, by the team ("") and the agents' names."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            behind, places, per_class = arrays["behind"], arrays["places"], arrays["per_class"]
        fits = (
            behind.dtype == np.float64
            and np.issubdtype(places.dtype, np.integer)
            and behind.shape == (len(names) + 1, len(places), classes)
            and len(places) > 0
            and 0 <= places.min() <= places.max() < classes
            and per_class.dtype == np.bool_
            and per_class.shape == ()
        )
    except Exception as problem:  # zipfile, zlib and numpy each have their own
        raise InputFileError(f"{path} does not hold what prediction sets need: {problem}") from None
    if not fits:
        raise InputFileError(f"{path} is not of {len(names)} agents and {classes} classes: save the team again")
    return {
        name: Conformal(one, places.astype(np.intp), bool(per_class))
        for name, one in zip(("", *names), behind, strict=True)
    }
