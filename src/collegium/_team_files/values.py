"""Settings and labels as JSON and back, number for number and type for type; what has no such form is refused."""

from __future__ import annotations

import math
import re
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from collegium.agents.optimisation import History, Training
from collegium.errors import CollegiumError, ModelError, RuleError
from collegium.protocol import Rule, registry

RECORDS: dict[str, Any] = {kind.__name__: kind for kind in (Training, History)}
_DTYPE = re.compile(r"[<>|](b1|[iu][1248]|f[248]|U[0-9]{1,4})")
_OBJECTS = "|O"


class Malformed(ValueError):
    """JSON that is not the form of any value; the message is the short fact."""


def encode(value: Any, what: str) -> Any:
    """The JSON form of a value. What JSON lacks is a dictionary that names it: `{"slice": [0, 3, null]}`."""
    if value is None or isinstance(value, bool):
        return value
    for kind in (int, float, str):
        if isinstance(value, kind):
            if isinstance(value, float) and not math.isfinite(value):
                raise ModelError(f"{what} is {value}, and only finite numbers can be saved")
            return kind(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return _encode_array(value, what)
    if (
        hasattr(value, "to_numpy") and getattr(value, "ndim", 0) == 1
    ):  # names as pandas keeps them: a plain list will do
        value = value.tolist()
    if isinstance(value, list):
        return [encode(one, f"{what}[{i}]") for i, one in enumerate(value)]
    if type(value) is tuple:
        return {"tuple": encode(list(value), what)}
    if isinstance(value, (slice, range)):
        return {type(value).__name__: encode([value.start, value.stop, value.step], what)}
    if isinstance(value, Rule):
        try:
            return registry.to_data(value)
        except RuleError as problem:
            raise ModelError(f"{what} cannot be saved: {problem}") from None
    if type(value) in RECORDS.values():
        return {type(value).__name__: {name: encode(getattr(value, name), f"{what}.{name}") for name in _names(value)}}
    raise ModelError(f"{what} cannot be saved: {_reason(value)}")


def decode(form: Any) -> Any:
    """The value of a JSON form, or `Malformed`."""
    if form is None or isinstance(form, (bool, int, str)):
        return form
    if isinstance(form, float) and math.isfinite(form):
        return form
    if isinstance(form, list):
        return [decode(one) for one in form]
    if isinstance(form, dict) and set(form) == {"array", "dtype"}:
        return _decode_array(form["array"], form["dtype"])
    if isinstance(form, dict) and len(form) == 1:
        name, content = next(iter(form.items()))
        if name == "tuple" and isinstance(content, list):
            return tuple(decode(content))
        if name == "slice" and isinstance(content, list) and len(content) == 3:
            return slice(*decode(content))
        try:
            if name == "range" and isinstance(content, list):
                return range(*decode(content))
            if name in RECORDS and isinstance(content, dict):
                return RECORDS[name](**{key: decode(one) for key, one in content.items()})
            return registry.rule_from_data(form)
        except (CollegiumError, TypeError, ValueError) as problem:
            raise Malformed(f"{name}: {problem}") from None
    raise Malformed(f"{str(form)[:60]!r} is no value")


def decode_part(content: dict[str, Any], part: str) -> dict[str, Any]:
    """The values of a dictionary within a dictionary, by name."""
    forms = content.get(part)
    if not isinstance(forms, dict):
        raise Malformed(f"it has no {part}")
    return {name: decode(form) for name, form in forms.items()}


def _names(record: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(record)) if is_dataclass(record) else record._fields


def _encode_array(array: np.ndarray[Any, Any] | np.generic, what: str) -> dict[str, Any]:
    dtype = array.dtype.str
    if dtype == _OBJECTS and array.ndim == 1:
        return {"array": encode(array.tolist(), what), "dtype": dtype}
    if not _DTYPE.fullmatch(dtype):
        raise ModelError(f"{what} cannot be saved: it holds values of type {array.dtype}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ModelError(f"{what} holds NaN or infinity, and only finite numbers can be saved")
    return {"array": array.tolist(), "dtype": dtype}


def _decode_array(values: Any, dtype: Any) -> Any:
    if dtype == _OBJECTS and isinstance(values, list):
        array = np.empty(len(values), object)
        array[:] = decode(values)
        return array
    if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype):
        raise Malformed(f"{str(dtype)[:60]!r} is no type of an array")
    try:
        array = np.array(values, dtype)
    except (TypeError, ValueError, OverflowError):
        raise Malformed(f"values do not fit into an array of {dtype}") from None
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise Malformed("an array holds a number that is not finite")
    return array if array.ndim else array[()]


def _reason(value: Any) -> str:
    kind = type(value).__name__
    if callable(value):
        return f"a function ({getattr(value, '__name__', kind)}) is code, which no file can hold. Write the names out"
    return f"{kind} has no form in JSON. Use numbers, words, lists of them or slices"
