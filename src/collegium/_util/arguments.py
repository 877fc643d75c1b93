"""Validation of settings: a number of the right kind within its limits, or an error on what it should be."""

import math
from typing import Any

import numpy as np

from collegium.errors import CollegiumError


def whole_number(
    value: Any, what: str, error: type[CollegiumError], *, at_least: int = 0, at_most: int | None = None
) -> int:
    """`value` as an int; True and 2.0 do not count."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not whole or value < at_least or (at_most is not None and value > at_most):
        distant = at_most is None or (at_most > 1_000_000 and not (whole and value > at_most))
        limits = f", at least {at_least}" if distant else f" between {at_least} and {at_most}"
        raise error(f"{what} must be a whole number{limits}; got {value!r}")
    return int(value)


def real_number(
    value: Any,
    what: str,
    error: type[CollegiumError],
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
) -> float:
    """`value` as a finite float within its limits."""
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, (bool, np.bool_))
    if (
        not real
        or not math.isfinite(value)
        or (at_least is not None and value < at_least)
        or (above is not None and value <= above)
        or (at_most is not None and value > at_most)
    ):
        lower = "" if at_least is None else f", at least {at_least:g}"
        lower = lower if above is None else f", above {above:g}"
        upper = "" if at_most is None else f" and at most {at_most:.6g}"
        raise error(f"{what} must be a finite number{lower}{upper}; got {value!r}")
    return float(value)
