"""Validates request bodies: items with their names and views or scores, or one sentence on what is wrong.

JSON for one item or many, NPY for arrays, NPZ for views of several arrays, PNG and JPEG for pictures. Nothing is
unpickled, no name is ever a path, and what a header claims is compared with the body before any of it is used.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
import zlib
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from typing import Annotated, Any, Generic, TypeVar
from urllib.parse import parse_qsl

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from numpy.typing import NDArray

from collegium._serving.limits import JPEG, JSON, NPY, NPZ, PNG, Limits, Refusal
from collegium._util.views import named_parts
from collegium.errors import DataError
from collegium.live.answers import Name

Doubles = NDArray[np.float64]

LARGEST_NUMBER = 2**64 - 1
LONGEST_NAME = 200
NO_NAME = "\x00-\x1f\x7f-\x9f\u2028\u2029"
"""Characters no name may have: control characters and line ends."""
_DEEPEST_VIEW = 4
_LONGEST_HEADER = 4096
_MOST_PARTS = 32
_UNPRINTED = re.compile(f"[{NO_NAME}\ud800-\udfff]")  # halves of characters cannot be written either
_OPENING = re.compile(rb"[ \t\r\n\[]*+")


class Batch(Struct, frozen=True):
    """Items of a request: scores, (n,) or (n, C) for C > 2 classes, or views, one per name."""

    names: list[Name]
    scores: Doubles | None = None
    views: NDArray[Any] | None = None
    trace: bool = False
    """Whether the answer should have the statistic of every round."""
    wait: bool = True
    """Whether the answer should wait for the decision."""
    alone: bool = False
    """One item, to be answered by one result and not a list."""


def parse(content_type: str, query: bytes, body: bytes, limits: Limits, classes: int = 2) -> Batch:
    """The items in a request, or `Refusal`; a score is one number for two classes, one for each class for more."""
    kind = check_kind(content_type)
    if kind == JSON:
        return _from_json(query, body, limits, classes)
    if kind in (NPY, NPZ):
        return _from_arrays(kind, query, body, limits, classes)
    return _from_image(kind, query, body, limits)


@lru_cache(8)
def check_kind(content_type: str) -> str:
    """The kind of body a Content-Type names, if it is one of ours."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in (JSON, NPY, NPZ, PNG, JPEG):
        given = f"got {ascii(kind)[:60]}" if kind else "none was given"
        raise Refusal(415, f"the Content-Type must be {JSON}, {NPY}, {NPZ}, {PNG} or {JPEG}; {given}")
    return kind


def parse_name(text: str) -> Name:
    """A name as it stands in an address: digits alone are a whole number, anything else is a string."""
    if not 1 <= len(text) <= LONGEST_NAME:
        raise Refusal(422, f"an id has 1 to {LONGEST_NAME} characters; this one has {len(text)}")
    if _UNPRINTED.search(text):
        raise Refusal(422, f"an id has no control characters, line ends or broken characters; got {ascii(text)[:80]}")
    return _normal(text)


# -- JSON

_Id = Annotated[int, Meta(ge=0)] | Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
_NOTHING = Raw()
_Score = TypeVar("_Score")  # a number, or a list of one for each class


class _Item(Struct, Generic[_Score], forbid_unknown_fields=True, gc=False):
    id: _Id
    score: _Score | UnsetType = UNSET
    view: Raw = _NOTHING


class _Body(Struct, Generic[_Score], forbid_unknown_fields=True):
    id: _Id | UnsetType = UNSET
    score: _Score | UnsetType = UNSET
    view: Raw = _NOTHING
    items: list[_Item[_Score]] | UnsetType = UNSET
    ids: list[_Id] | UnsetType = UNSET
    scores: list[_Score] | UnsetType = UNSET
    views: Raw = _NOTHING
    trace: bool = False
    wait: bool = True


@cache
def _body_decoder(classes: int) -> msgspec.json.Decoder[Any]:
    score: Any = float if classes <= 2 else Annotated[list[float], Meta(min_length=classes, max_length=classes)]
    return msgspec.json.Decoder(_Body[score])


_TEXT = msgspec.json.Decoder(str)
_RECORD = msgspec.json.Decoder(dict[str, float | bool | str | list[float] | None])
_LISTED = msgspec.json.Decoder(list[Raw])
_TEXTS = re.compile(rb'[ \t\r\n]*\[[ \t\r\n]*["{]')
_FORMS = (
    'an item is {"id": …, "score": …} or {"id": …, "view": […]}, and many are {"items": […]}, '
    '{"ids": […], "scores": […]} or {"ids": […], "views": […]}'
)


def _from_json(query: bytes, body: bytes, limits: Limits, classes: int) -> Batch:
    options = options_of(query, ("trace", "wait"))
    given: _Body[Any] = decoded(_body_decoder(classes), body, "the body", classes)
    trace, wait = switch(options, "trace", given.trace), switch(options, "wait", given.wait)
    is_alone, is_list, is_columns = given.id is not UNSET, given.items is not UNSET, given.ids is not UNSET
    if is_alone + is_list + is_columns != 1:
        raise Refusal(422, _FORMS)
    has_single = given.score is not UNSET or given.view is not _NOTHING
    has_columns = given.scores is not UNSET or given.views is not _NOTHING
    if has_single > is_alone or has_columns > is_columns:
        raise Refusal(422, f"the body mixes two forms: {_FORMS}")
    if is_columns:
        names = check_names(given.ids, limits)  # type: ignore[arg-type]
        scores, views = _from_columns(given.scores, given.views, len(names))
    else:
        names, scores, views = _from_items([given] if is_alone else given.items, limits)  # type: ignore[arg-type, list-item]
    return Batch(names, scores, views, trace, wait, is_alone)


def _from_items(items: list[_Item[Any]], limits: Limits) -> tuple[list[Name], Doubles | None, NDArray[Any] | None]:
    names = check_names([item.id for item in items], limits)
    scores = [item.score for item in items]
    unseen = [item.view is _NOTHING for item in items]
    if UNSET not in scores and all(unseen):
        return names, np.array(scores, np.float64), None
    if all(score is UNSET for score in scores) and not any(unseen):
        return names, None, _stacked([_view(item.view, f"the view of item {item.id!r:.60}") for item in items])
    raise Refusal(422, "each item needs a score or a view, and all items of one request the same of the two")


def _from_columns(
    scores: list[Any] | UnsetType, views: Raw, n: int
) -> tuple[Doubles | None, NDArray[np.float64] | None]:
    if (scores is UNSET) == (views is _NOTHING):
        raise Refusal(422, '"ids" needs "scores" or "views" beside it, and not both')
    if not isinstance(scores, UnsetType):
        _check_count("scores", len(scores), n)
        return np.array(scores, np.float64), None
    if _TEXTS.match(bytes(views)):
        listed = decoded(_LISTED, bytes(views), "views")
        _check_count("views", len(listed), n)
        return None, _stacked([_view(view, f"view {i}") for i, view in enumerate(listed)])
    values = _numbers(views, "views", _DEEPEST_VIEW + 1)
    _check_count("views", len(values), n)
    if values.ndim < 2:
        raise Refusal(422, "views must be a list of lists: one list of numbers for each item")
    return None, values


def _view(raw: Raw, what: str) -> Any:
    """An item's view: nested lists of numbers, a text, or a record of named values."""
    kind = bytes(raw).lstrip(b" \t\r\n")[:1]
    if kind in (b'"', b"{"):
        return decoded(_TEXT if kind == b'"' else _RECORD, bytes(raw), what)
    return _numbers(raw, what, _DEEPEST_VIEW)


def _stacked(views: list[Any]) -> NDArray[Any]:
    """Views of many items as one array, of objects where they are texts or records; all alike."""
    forms = [_form(view) for view in views]
    other = next((k for k, form in enumerate(forms) if form != forms[0]), None)
    if other is not None:
        raise Refusal(422, f"all views must have the same shape: item 0 has {forms[0]}, item {other} {forms[other]}")
    if isinstance(views[0], np.ndarray):
        return np.stack(views)
    stacked = np.empty(len(views), object)
    stacked[:] = views
    return stacked


def _form(view: Any) -> str:
    if isinstance(view, str):
        return "a text"
    return f"the names {', '.join(sorted(view))[:200]}" if isinstance(view, dict) else str(view.shape)


@cache
def _nested(depth: int) -> msgspec.json.Decoder[Any]:
    kind: Any = float
    for _ in range(depth):
        kind = list[kind]
    return msgspec.json.Decoder(kind)


def _numbers(raw: Raw, what: str, deepest: int) -> Doubles:
    """Nested lists of numbers as an array; how deep they are nested is read from how they begin."""
    text = bytes(raw)
    depth = _OPENING.match(text)[0].count(b"[")  # type: ignore[index]
    if not 1 <= depth <= deepest:
        raise Refusal(422, f"{what} must be a list of numbers, nested at most {deepest} deep")
    try:
        values = np.array(decoded(_nested(depth), text, what), np.float64)
    except (ValueError, TypeError):  # a Refusal is neither
        raise Refusal(422, f"{what}: all lists at one depth must have the same length") from None
    if not values.size:
        raise Refusal(422, f"{what} must not be empty")
    return values


def decoded(decoder: msgspec.json.Decoder[Any], text: bytes, what: str, classes: int = 2, forms: str = _FORMS) -> Any:
    """A text read as JSON, or `Refusal` with what is wrong in it. forms: which objects there are."""
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as problem:
        raise Refusal(422, _sentence(str(problem), what, classes, forms)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise Refusal(400, f"{what} is not JSON: {problem}") from None
    except RecursionError:
        raise Refusal(400, f"{what} is nested too deep") from None


def _sentence(message: str, what: str, classes: int, forms: str) -> str:
    """Rewrites a message of msgspec, such as "Expected `float`, got `str` - at `$.items[3].score`"."""
    fact, _, place = message.partition(" - at ")
    place = place.strip("`").removeprefix("$").removeprefix(".")
    fact = fact[:1].lower() + fact[1:].replace("`", "").replace(" | ", " or ")
    hint = ""
    if place.endswith("id") or place.startswith("ids"):
        hint = f": an id is a whole number from 0 to {LARGEST_NUMBER} or a string of 1 to {LONGEST_NAME} characters"
    elif place.partition("[")[0] in ("score", "scores") or ".score" in place:
        hint = f": {_score_form(classes)}"
    elif "unknown field" in fact or "missing" in fact:
        hint = f": {forms}"
    return f"{f'{what}, at {place}' if place else what}: {fact}{hint}"


def _score_form(classes: int) -> str:
    if classes <= 2:
        return "in a network of two classes a score is one number"
    return f"in a network of {classes} classes a score is a list of {classes} numbers"


# -- NPY

_PAIR = r"'(?P<{0}>descr|fortran_order|shape)'\s*+:\s*+(?P<{0}_is>'[^'\\]{{1,16}}'|True|False|\([0-9,\s]{{0,200}}+\))"
_HEADER = re.compile(
    r"\{\s*+" + r"\s*+,\s*+".join(_PAIR.format(name) for name in "abc") + r"\s*+(?:,\s*+)?\}\s*+", re.ASCII
)
_DTYPE = re.compile(r"'(?:[<>=]?(f[248]|[iu][248])|[|<>=]?(b1|i1|u1))'")
_SHAPE = re.compile(r"\(\s*+(?:[0-9]{1,12}\s*+(?:,\s*+|(?=\)))){0,8}\)")


def _from_arrays(kind: str, query: bytes, body: bytes, limits: Limits, classes: int) -> Batch:
    options = options_of(query, ("id", "ids", "first", "scores", "trace", "wait"))
    given = [key for key in ("id", "ids", "first") if key in options]
    if len(given) != 1:
        raise Refusal(422, "name the items of arrays by one of ?id=…, ?ids=a,b,c and ?first=100 in the address")
    values = _npy(body) if kind == NPY else _npz(body, limits)
    scored = switch(options, "scores", False)
    alone = given == ["id"]
    one_score = () if classes <= 2 else (classes,)
    if alone and values.dtype.names is None:
        values = values.reshape(1) if scored and values.size == 1 and not one_score else values[None]
    elif not values.ndim:
        raise Refusal(422, "the array's first axis must be the items; this array is a single number")
    names = check_names(_query_names(options, len(values), limits), limits)
    _check_count("the array's first axis", len(values), len(names))
    trace, wait = switch(options, "trace", False), switch(options, "wait", True)
    if scored:
        if values.shape[1:] != one_score or values.dtype.names is not None:
            raise Refusal(422, f"{_score_form(classes)}; the array has shape {values.shape}")
        return Batch(names, values.astype(np.float64), None, trace, wait, alone)
    if values.ndim < 2 and values.dtype.names is None:
        raise Refusal(422, "a view is more than one number; for scores already computed, add &scores=1 to the address")
    return Batch(names, None, values, trace, wait, alone)


def _query_names(options: dict[str, str], n: int, limits: Limits) -> Sequence[Name]:
    if "id" in options:
        return [parse_name(options["id"])]
    if "ids" in options:
        if options["ids"].count(",") >= limits.items:
            raise _too_many(options["ids"].count(",") + 1, limits)
        return [parse_name(text) for text in options["ids"].split(",")]
    first = parse_name(options["first"])
    if isinstance(first, str):
        raise Refusal(422, f"first must be a whole number from 0 to {LARGEST_NUMBER}; got {first[:60]!r}")
    return range(first, first + n)


def _npy(body: bytes) -> NDArray[Any]:
    """The array in an NPY file, if its header agrees with its length; never an object, so never pickle."""
    if body[:6] != b"\x93NUMPY" or len(body) < 10 or body[6:8] not in (b"\x01\x00", b"\x02\x00", b"\x03\x00"):
        raise Refusal(400, "the body is not an NPY file: it must begin as numpy.save writes it")
    width = 2 if body[6] == 1 else 4
    start = 8 + width
    stop = start + int.from_bytes(body[8:start], "little")
    if stop - start > _LONGEST_HEADER or stop > len(body):
        raise Refusal(400, "the NPY header is cut off or longer than any that numpy.save writes for numbers")
    header = _HEADER.fullmatch(body[start:stop].decode("latin-1"))
    fields = {header[key]: header[f"{key}_is"] for key in "abc"} if header else {}
    kind = fields.get("descr", "")
    size = fields.get("shape", "")
    order = fields.get("fortran_order", "")
    if len(fields) != 3 or not kind.startswith("'") or not _SHAPE.fullmatch(size) or order not in ("True", "False"):
        raise Refusal(400, "the NPY header does not name a type, an order and a shape of at most 8 axes")
    if not _DTYPE.fullmatch(kind):
        raise Refusal(422, f"the array must hold real numbers (float, int, uint or bool), not {kind}: convert it first")
    dtype = np.dtype(kind.strip("'"))
    shape = tuple(int(axis) for axis in re.findall(r"[0-9]+", size))
    count = math.prod(shape)
    if len(body) - stop != count * dtype.itemsize:
        raise Refusal(
            400, f"the NPY header claims {count * dtype.itemsize} bytes of numbers, but there are {len(body) - stop}"
        )
    if not count:
        raise Refusal(422, f"the array is empty: its shape is {shape}")
    flat = np.frombuffer(body, dtype, count, stop).astype(dtype.newbyteorder("="))
    if dtype.kind == "b":  # any byte may be there; only 0 is False
        flat = flat.view(np.uint8) != 0
    if dtype.kind == "f" and not bool(np.isfinite(flat).all()):
        raise Refusal(422, "the array has NaN or infinite numbers: leave out what an agent has not seen")
    return flat.reshape(shape, order="F" if order == "True" else "C")


def _npz(body: bytes, limits: Limits) -> NDArray[Any]:
    """The arrays of an NPZ file as one, with a field for each; what its directory claims is looked at first."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as file:
            if sum(one.file_size for one in file.infolist()) > limits.bytes:
                raise Refusal(413, f"the arrays are larger than {limits.bytes} bytes: send fewer items at a time")
            if any(one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for one in file.infolist()):
                raise zipfile.BadZipFile
            parts = {one.filename.removesuffix(".npy"): _npy(file.read(one)) for one in file.infolist()[:_MOST_PARTS]}
    except Refusal:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, OSError, ValueError):
        raise Refusal(400, "the body is not an NPZ file: it must be as numpy.savez writes it") from None
    if len(parts) == 1:
        return next(iter(parts.values()))
    try:
        return named_parts(parts)
    except (DataError, TypeError) as mistake:
        raise Refusal(422, f"the arrays of an NPZ file are parts of one view: {mistake}") from None


# -- pictures


def _from_image(kind: str, query: bytes, body: bytes, limits: Limits) -> Batch:
    options = options_of(query, ("id", "trace", "wait"))
    if "id" not in options:
        raise Refusal(422, "name the item of a picture by ?id=… in the address")
    name = parse_name(options["id"])
    trace, wait = switch(options, "trace", False), switch(options, "wait", True)
    return Batch([name], None, _picture(kind, body, limits)[None], trace, wait, alone=True)


def _picture(kind: str, body: bytes, limits: Limits) -> NDArray[Any]:
    """Grey as (height, width), colour as (height, width, 3); the size is looked at before any pixel is decoded."""
    from PIL import Image

    form = "PNG" if kind == PNG else "JPEG"
    try:
        with Image.open(io.BytesIO(body), formats=[form]) as image:
            if image.width * image.height > limits.pixels:
                raise _too_large(f"{image.width} × {image.height}", limits)
            if image.mode in ("I;16", "I"):  # a PNG of 16 bits a pixel
                return np.array(image).astype(np.uint16)
            return np.array(image.convert("L" if image.mode in ("1", "L", "LA") else "RGB"))
    except Refusal:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _too_large("many more", limits) from None
    except Exception:  # a decoder fed with damaged bytes may raise nearly anything
        raise Refusal(400, f"the picture cannot be read: it is damaged, or no {form}") from None


def _too_large(size: str, limits: Limits) -> Refusal:
    return Refusal(413, f"the picture has {size} pixels; it may have {limits.pixels}: make it smaller")


# -- names and options


def check_names(names: Sequence[Name], limits: Limits) -> list[Name]:
    """All names, whole numbers where they are digits alone, if they are allowed and different."""
    if not names:
        raise Refusal(422, "there are no items in the request")
    if len(names) > limits.items:
        raise _too_many(len(names), limits)
    listed = list(names)
    texts = [name for name in listed if type(name) is str]
    if texts:
        if _UNPRINTED.search("".join(texts)):
            for text in texts:
                parse_name(text)
        listed = [_normal(name) if isinstance(name, str) else name for name in listed]
    largest = max((name for name in listed if type(name) is int), default=0) if texts else max(listed)
    if largest > LARGEST_NUMBER:  # type: ignore[operator]
        raise Refusal(422, f"an id that is a number is at most {LARGEST_NUMBER}; got {largest}")
    if len(set(listed)) != len(listed):
        seen: set[Name] = set()
        twice = next(name for name in listed if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Refusal(422, f"the ids of one request must all be different; {twice!r:.80} is there twice")
    return listed


def _normal(name: str) -> Name:
    """ "12" is the item 12, however it is sent: an address cannot tell the two apart."""
    if name.isdecimal() and name.isascii() and (name[0] != "0" or name == "0") and int(name) <= LARGEST_NUMBER:
        return int(name)
    return name


def _too_many(n: int, limits: Limits) -> Refusal:
    return Refusal(413, f"{n} items are too many for one request; send at most {limits.items} at a time")


def _check_count(what: str, came: int, n: int) -> None:
    if came != n:
        raise Refusal(422, f"there are {n} ids, but the length of {what} is {came}: one for each item")


def options_of(query: bytes, allowed: Collection[str]) -> dict[str, str]:
    """What stands behind the question mark of an address, each option at most once and only those allowed."""
    if not query:
        return {}
    try:
        text = query.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=20)
    except ValueError:
        raise Refusal(422, "the options in the address must have the form ?name=value&name=value") from None
    options = dict(pairs)
    if len(options) < len(pairs):
        raise Refusal(422, "an option stands twice in the address")
    for name in options:
        if name not in allowed:
            raise Refusal(
                422, f"unknown option {ascii(name)[:60]} in the address; possible: {', '.join(allowed) or 'none'}"
            )
    return options


def switch(options: dict[str, str], name: str, default: bool) -> bool:
    """An option that is on or off."""
    given = options.get(name)
    if given is None:
        return default
    if given in ("1", "true"):
        return True
    if given in ("0", "false"):
        return False
    raise Refusal(422, f"{name} in the address must be 1 or 0 (or true or false); got {ascii(given)[:60]}")
