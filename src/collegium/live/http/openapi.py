"""The agent's HTTP interface as an OpenAPI 3.1 document."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from typing import Any

import msgspec

from collegium.live import answers
from collegium.live.http.items import LARGEST_NUMBER, LONGEST_NAME, NO_NAME
from collegium.live.http.limits import JPEG, JSON, NPY, PNG, Limits

Schema = dict[str, Any]
MOST_RECENT = 64
"""Most items in one answer of /v1/recent."""
_ANSWERS = (
    answers.ItemResults,
    answers.Accepted,
    answers.Pending,
    answers.Recent,
    answers.Status,
    answers.Readiness,
    answers.Error,
)


@cache
def document(name: str, limits: Limits, classes: int, is_secured: bool) -> Schema:
    """The document of one agent."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Collegium agent {name}",
            "version": collegium_version(),
            "description": "One agent of a network that decides together: it takes its own views or scores of items.",
        },
        "security": [{"token": []}] if is_secured else [],
        "paths": {
            "/v1/items": {"post": _post(limits)},
            "/v1/items/{id}": {"get": _get_item()},
            "/v1/recent": {"get": _get_recent()},
            "/v1/status": {"get": _get("The agent and its neighbours.", _ref("Status"))},
            "/healthz": {"get": _get("Whether the process runs.", _object({"alive": {"const": True}}), is_open=True)},
            "/readyz": {"get": _get_ready()},
            "/metrics": {"get": _get_metrics()},
            "/openapi.json": {"get": _get("This document.", {"type": "object"})},
        },
        "components": {
            "schemas": {**_bodies(limits, classes), **_answers()},
            "responses": _refusals(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}} if is_secured else {},
        },
    }


def collegium_version() -> str:
    """The installed version of Collegium, 0 if it is not installed."""
    try:
        return version("collegium")
    except PackageNotFoundError:
        return "0"


def _object(properties: Schema, required: list[str] | None = None, *, closed: bool = False) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "required": required or list(properties)}
    return {**schema, "additionalProperties": False} if closed else schema


def _whole() -> Schema:
    return {"type": "integer", "minimum": 0, "maximum": LARGEST_NUMBER}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _answer(text: str, schema: Schema) -> Schema:
    return {"description": text, "content": {JSON: {"schema": schema}}}


def _answers() -> Schema:
    """The schemas of all answers, with what their definition says about each field."""
    _, schemas = msgspec.json.schema_components(_ANSWERS, ref_template="#/components/schemas/{name}")
    try:
        source = inspect.getsource(answers)
    except OSError:  # installed without sources
        source = ""
    for definition in ast.parse(source).body:
        if isinstance(definition, ast.ClassDef) and definition.name in schemas:
            fields = schemas[definition.name]["properties"]
            for field, text in pairwise(definition.body):
                match field, text:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                        fields[name]["description"] = " ".join(said.split())
    return schemas


def _bodies(limits: Limits, classes: int) -> Schema:
    many = {"minItems": 1, "maxItems": limits.items}
    options = {
        "trace": {"type": "boolean", "description": "Return the statistic of every round."},
        "wait": {"type": "boolean", "description": "Wait for the decision; if not, the answer is 202."},
    }
    number = {"type": "number", "minimum": -1e300, "maximum": 1e300}
    names = {"type": "array", "items": _ref("Name"), "uniqueItems": True, **many}
    views = {"type": "array", "items": _ref("View"), **many, "description": "All of the same shape."}
    each = {"minItems": classes, "maxItems": classes, "description": "One number for each class."}
    score = number if classes <= 2 else {"type": "array", "items": number, **each}
    scores = {"type": "array", "items": score, **many}
    items = {"type": "array", **many, "description": "All with scores or all with views, and all ids different."}
    return {
        "Name": {
            "description": f'An item: a whole number or a string. Digits alone are a number, so "12" is 12. '
            f"At most {LONGEST_NAME} characters.",
            "anyOf": [
                _whole(),
                {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME, "pattern": f"^[^{_escaped()}]+$"},
            ],
        },
        "View": {
            "description": "What the agent's model takes for one item: numbers in lists, nested at most four deep.",
            "type": "array",
            "minItems": 1,
            "items": {"anyOf": [number, {"type": "array", "minItems": 1}]},
        },
        "Scored": _object({"id": _ref("Name"), "score": score}, closed=True),
        "Seen": _object({"id": _ref("Name"), "view": _ref("View")}, closed=True),
        "Items": {
            "oneOf": [
                _object({"id": _ref("Name"), "score": score, **options}, ["id", "score"], closed=True),
                _object({"id": _ref("Name"), "view": _ref("View"), **options}, ["id", "view"], closed=True),
                _object({"items": {**items, "items": _ref("Scored")}, **options}, ["items"], closed=True),
                _object({"items": {**items, "items": _ref("Seen")}, **options}, ["items"], closed=True),
                _object({"ids": names, "scores": scores, **options}, ["ids", "scores"], closed=True),
                _object({"ids": names, "views": views, **options}, ["ids", "views"], closed=True),
            ]
        },
    }


def _escaped() -> str:
    return "".join(f"\\u{ord(c):04x}" if c != "-" else c for c in NO_NAME)


def _refusals() -> Schema:
    texts = {
        "400": "The body is not of its Content-Type.",
        "401": "The token is missing or wrong.",
        "404": "No such item is known here.",
        "408": "The request arrived too slowly.",
        "409": "An item was submitted before, with another score.",
        "413": "Too many bytes, items or pixels.",
        "415": "Unsupported Content-Type.",
        "422": "Understood, but not possible: ids, shapes or numbers.",
        "500": "Internal error of the agent.",
        "503": "The agent is stopping, or the network did not decide in time.",
    }
    responses = {f"E{status}": _answer(text, _ref("Error")) for status, text in texts.items()}
    header = {"Retry-After": {"required": True, "schema": {"type": "integer", "minimum": 1}}}
    responses["E429"] = {
        **_answer("Too much at once: retry after Retry-After seconds.", _ref("Error")),
        "headers": header,
    }
    return responses


def _and_refusals(found: Schema, *statuses: int) -> Schema:
    always = () if not statuses else (401, 429, 500)
    return {
        **found,
        **{str(s): {"$ref": f"#/components/responses/E{s}"} for s in sorted({*statuses, *always})},
    }


def _option(name: str, text: str, schema: Schema) -> Schema:
    return {"name": name, "in": "query", "description": text, "required": False, "schema": schema}


_SWITCH = {"enum": ["0", "1", "true", "false"]}


def _post(limits: Limits) -> Schema:
    return {
        "summary": "Decide items, together with the network.",
        "operationId": "decide",
        "description": (
            "Scores or views of one item or many. Sending an item again is harmless, unless its score is another. "
            f"At most {limits.items} items, {limits.bytes} bytes ({limits.of(JSON)} in JSON), {limits.pixels} pixels. "
            "The items of an NPY body are named by one of id, ids and first, a picture by id. "
        ),
        "parameters": [
            _option("id", "NPY: the array is the view of this one item. Pictures: the item.", _ref("Name")),
            _option("ids", "NPY: items such as a,b,c along the first axis; names without commas.", {"type": "string"}),
            _option("first", "NPY: items first, first + 1, … along the first axis.", _whole()),
            _option("scores", "NPY: 1 if the array holds scores, not views.", _SWITCH),
            _option("trace", "Return the statistic of every round.", _SWITCH),
            _option("wait", "0: do not wait for the decision.", _SWITCH),
        ],
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": _ref("Items")}, **{kind: {"schema": {}} for kind in (NPY, PNG, JPEG)}},
        },
        "responses": _and_refusals(
            {
                "200": _answer("The result, or one per item.", {"anyOf": [_ref("ItemResult"), _ref("ItemResults")]}),
                "202": _answer("Accepted; the network decides.", _ref("Accepted")),
            },
            400, 408, 409, 413, 415, 422, 503,
        ),
    }  # fmt: skip


def _get_item() -> Schema:
    return {
        "summary": "The result of an item that is still remembered.",
        "operationId": "result",
        "parameters": [
            {"name": "id", "in": "path", "required": True, "schema": _ref("Name")},
            _option("trace", "Return the statistic of every round.", _SWITCH),
        ],
        "responses": _and_refusals(
            {
                "200": _answer("Its result.", _ref("ItemResult")),
                "202": _answer("Not decided yet.", _ref("Pending")),
            },
            404, 422,
        ),
    }  # fmt: skip


def _get(text: str, schema: Schema, *, is_open: bool = False) -> Schema:
    open_to_all: Schema = {"security": []} if is_open else {}
    statuses = () if is_open else (422,)
    return {"summary": text, "responses": _and_refusals({"200": _answer(text, schema)}, *statuses), **open_to_all}


def _get_recent() -> Schema:
    text = "The latest items, newest first, decided or not."
    number = {"type": "integer", "minimum": 1, "maximum": MOST_RECENT}
    return {**_get(text, _ref("Recent")), "parameters": [_option("items", "How many of them; 8 by default.", number)]}


def _get_ready() -> Schema:
    text = "Whether all neighbours are connected."
    found = {
        "200": _answer("All neighbours are connected.", _ref("Readiness")),
        "503": _answer("Some are not.", _ref("Readiness")),
    }
    return {"summary": text, "responses": _and_refusals(found, 422)}


def _get_metrics() -> Schema:
    answer = {
        "description": "Counters, gauges and a histogram.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
    return {"summary": "For Prometheus.", "responses": _and_refusals({"200": answer}, 422)}
