"""The agent's HTTP interface as an OpenAPI 3.1 document."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from collegium.live.items import JPEG, JSON, LARGEST_NUMBER, LONGEST_NAME, NO_NAME, NPY, PNG, Limits

Schema = dict[str, Any]
MOST_RECENT = 64
"""Most items in one answer of /v1/recent."""
PATHS = frozenset({"/v1/items", "/v1/recent", "/v1/status", "/healthz", "/readyz", "/metrics", "/openapi.json"})
"""All paths that have no name of an item in them."""


def document(name: str, limits: Limits, is_secured: bool) -> Schema:
    """The document of one agent."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Collegium agent {name}",
            "version": _version(),
            "description": "One agent of a network that decides together: it takes its own views or scores of items.",
        },
        "security": [{"token": []}] if is_secured else [],
        "paths": {
            "/v1/items": {"post": _post(limits)},
            "/v1/items/{id}": {"get": _get_item()},
            "/v1/recent": {"get": _get_recent()},
            "/v1/status": {"get": _get("The agent and its neighbours.", {"$ref": "#/components/schemas/Status"})},
            "/healthz": {"get": _get("Whether the process runs.", _object({"alive": {"const": True}}), is_open=True)},
            "/readyz": {"get": _get_ready()},
            "/metrics": {"get": _get_metrics()},
            "/openapi.json": {"get": _get("This document.", {"type": "object"})},
        },
        "components": {
            "schemas": _schemas(limits),
            "responses": _refusals(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}} if is_secured else {},
        },
    }


def _version() -> str:
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


def _schemas(limits: Limits) -> Schema:
    many = {"minItems": 1, "maxItems": limits.items}
    options = {
        "trace": {"type": "boolean", "description": "Return the statistic of every round."},
        "wait": {"type": "boolean", "description": "Wait for the decision; if not, the answer is 202."},
    }
    number = {"type": "number", "minimum": -1e300, "maximum": 1e300}
    names = {"type": "array", "items": _ref("Name"), "uniqueItems": True, **many}
    views = {"type": "array", "items": _ref("View"), **many, "description": "All of the same shape."}
    scores = {"type": "array", "items": number, **many}
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
        "Scored": _object({"id": _ref("Name"), "score": number}, closed=True),
        "Seen": _object({"id": _ref("Name"), "view": _ref("View")}, closed=True),
        "Items": {
            "oneOf": [
                _object({"id": _ref("Name"), "score": number, **options}, ["id", "score"], closed=True),
                _object({"id": _ref("Name"), "view": _ref("View"), **options}, ["id", "view"], closed=True),
                _object({"items": {**items, "items": _ref("Scored")}, **options}, ["items"], closed=True),
                _object({"items": {**items, "items": _ref("Seen")}, **options}, ["items"], closed=True),
                _object({"ids": names, "scores": scores, **options}, ["ids", "scores"], closed=True),
                _object({"ids": names, "views": views, **options}, ["ids", "views"], closed=True),
            ]
        },
        "ItemResult": _object(
            {
                "id": _ref("Name"),
                "label": {"description": "One of the two classes."},
                "statistic": {"type": "number"},
                "score": {"type": "number", "description": "The agent's own local statistic; 0 if it had no view."},
                "settled": {"type": "boolean"},
                "rounds": {"type": "integer", "minimum": 0},
                "view": {"enum": ["given", "missing", "late"]},
                "heard": {"type": "array", "items": {"type": "string"}},
                "missed": {"type": "array", "items": {"type": "string"}},
                "latency_ms": {"type": "number", "minimum": 0},
                "trace": {"type": ["array", "null"], "items": {"type": ["number", "null"]}},
            }
        ),
        "ItemResults": _object({"items": {"type": "array", "items": _ref("ItemResult")}}),
        "RecentItem": _object(
            {
                "identity": {"type": "string", "description": "The item, as all agents know it: 16 digits."},
                "round": {"type": "integer", "minimum": 0},
                "decided": {"type": "boolean"},
                "view": {"enum": ["waiting", "given", "missing", "late"]},
                "score": {"type": ["number", "null"]},
                "statistic": {"type": ["number", "null"]},
                "trace": {"type": "array", "items": {"type": ["number", "null"]}},
                "settled": {"type": ["boolean", "null"]},
                "missed": {"type": "array", "items": {"type": "string"}},
                "age_ms": {"type": "number", "minimum": 0},
            }
        ),
        "Recent": _object(
            {
                "name": {"type": "string"},
                "number": {"type": "integer"},
                "rounds": {"type": "integer"},
                "items": {"type": "array", "items": _ref("RecentItem")},
            }
        ),
        "Status": _object(
            {
                "name": {"type": "string"},
                "number": {"type": "integer"},
                "network": {"type": "string"},
                "ready": {"type": "boolean"},
                "not_ready_reason": {"type": ["string", "null"]},
                "neighbours": {"type": "array", "items": {"type": "object"}},
                "items": {"type": "object"},
                "bytes": {"type": "object"},
            }
        ),
        "Error": _object({"error": {"type": "string"}, "retry_after": {"type": "number"}}, ["error"]),
    }


def _escaped() -> str:
    return "".join(f"\\u{ord(c):04x}" if c != "-" else c for c in NO_NAME)


def _refusals() -> Schema:
    texts = {
        "400": "The body is not of its Content-Type.",
        "401": "The token is missing or wrong.",
        "404": "No such item is known here.",
        "408": "The request arrived too slowly.",
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


def _and_refusals(answers: Schema, *statuses: int) -> Schema:
    always = () if not statuses else (401, 429, 500)
    return {
        **answers,
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
            "Scores or views of one item or many. Sending an item again is harmless: it keeps its first score. "
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
                "202": _answer("Accepted; the network decides.", _object({"accepted": {"type": "integer"}})),
            },
            400, 408, 413, 415, 422, 503,
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
                "202": _answer("Not decided yet.", _object({"id": _ref("Name"), "state": {"const": "pending"}})),
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
    ready = _object({"ready": {"const": True}})
    answers = {
        "200": _answer("All neighbours are connected.", ready),
        "503": _answer("Some are not.", _object({"ready": {"const": False}, "error": {"type": "string"}})),
    }
    return {"summary": "Whether all neighbours are connected.", "responses": _and_refusals(answers, 422)}


def _get_metrics() -> Schema:
    answer = {
        "description": "Counters, gauges and a histogram.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
    return {"summary": "For Prometheus.", "responses": _and_refusals({"200": answer}, 422)}
