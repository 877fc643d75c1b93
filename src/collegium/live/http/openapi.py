"""The agent's HTTP interface as an OpenAPI 3.1 document; the schemas of its answers come from `live.answers`."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from typing import Any

import msgspec

from collegium._serving.limits import JPEG, JSON, NPY, NPZ, PNG, Limits
from collegium.live import answers
from collegium.live.http.items import LARGEST_NUMBER, LONGEST_NAME, NO_NAME
from collegium.live.http.tuning import LONGEST_SESSION, MOST_CONVERSATIONS, MOST_PASSES

Schema = dict[str, Any]
MOST_RECENT = 64
"""Most items in one answer of /v1/recent."""
_REFUSALS = {
    400: "The body is not of its Content-Type.",
    401: "The token is missing or wrong.",
    403: "The token is for reading only, or the privacy budget of the agent is spent.",
    404: "No such item or tuning is known here.",
    408: "The request arrived too slowly.",
    409: "An item was submitted before, with another score; or a tuning is in progress.",
    413: "Too many bytes, items or pixels.",
    415: "Unsupported Content-Type.",
    422: "Understood, but not possible: ids, shapes or numbers.",
    429: "Too much at once: retry after Retry-After seconds.",
    500: "Internal error of the agent.",
    503: "The agent is stopping, or the network did not decide in time.",
}
_WHOLE = {"type": "integer", "minimum": 0, "maximum": LARGEST_NUMBER}
_SWITCH = {"enum": ["0", "1", "true", "false"]}


@cache
def document(name: str, limits: Limits, classes: int, is_secured: bool) -> Schema:
    """The document of one agent."""
    refused = {f"E{status}": _answer(text, _ref("Error")) for status, text in _REFUSALS.items()}
    refused["E429"]["headers"] = {"Retry-After": {"required": True, "schema": {"type": "integer", "minimum": 1}}}
    about = "One agent of a network that decides together: it takes its own views or scores of items."
    return {
        "openapi": "3.1.0",
        "info": {"title": f"Collegium agent {name}", "version": collegium_version(), "description": about},
        "security": [{"token": []}] if is_secured else [],
        "paths": _paths(limits),
        "components": {
            "schemas": {**_bodies(limits, classes), **_answers()},
            "responses": refused,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}} if is_secured else {},
        },
    }


def collegium_version() -> str:
    """The installed version of Collegium, 0 if it is not installed."""
    try:
        return version("collegium")
    except PackageNotFoundError:
        return "0"


def _paths(limits: Limits) -> Schema:
    trace = _option("trace", "Return the statistic of every round.", _SWITCH)
    item = {"name": "id", "in": "path", "required": True, "schema": _ref("Name")}
    most = _option("items", "How many; 8 by default.", {"type": "integer", "minimum": 1, "maximum": MOST_RECENT})
    decided = {"anyOf": [_ref("ItemResult"), _ref("ItemResults")]}
    post = _operation(
        "Decide items, together with the network.",
        {"200": _answer("The result, or one per item.", decided), "202": _answer("Accepted.", _ref("Accepted"))},
        (400, 403, 408, 409, 413, 415, 422, 503),
        _option("id", "NPY: the array is the view of this one item. Pictures: the item.", _ref("Name")),
        _option("ids", "NPY: items such as a,b,c along the first axis; names without commas.", {"type": "string"}),
        _option("first", "NPY: items first, first + 1, … along the first axis.", _WHOLE),
        _option("scores", "NPY: 1 if the array holds scores, not views.", _SWITCH),
        trace,
        _option("wait", "0: do not wait for the decision.", _SWITCH),
    )
    post["description"] = (
        "Scores or views of one item or many. Sending an item again is harmless, unless its score is another. "
        f"At most {limits.items} items, {limits.bytes} bytes ({limits.of(JSON)} in JSON), {limits.pixels} pixels. "
        "The items of an NPY or NPZ body are named by one of id, ids and first, a picture by id. "
    )
    bodies = {JSON: {"schema": _ref("Items")}, **{kind: {"schema": {}} for kind in (NPY, NPZ, PNG, JPEG)}}
    post["requestBody"] = {"required": True, "content": bodies}
    found = {"200": _answer("Its result.", _ref("ItemResult")), "202": _answer("Not decided yet.", _ref("Pending"))}
    ready = {"200": _answer("They are.", _ref("Readiness")), "503": _answer("Some are not.", _ref("Readiness"))}
    alive = _object({"alive": {"const": True}})
    text = {"description": "Counters, gauges and a histogram.", "content": {"text/plain": {"schema": {}}}}
    gets = {
        "/v1/items/{id}": _operation("The result of an item still remembered.", found, (404, 422), item, trace),
        "/v1/recent": _get("The latest items, newest first, decided or not.", _ref("Recent"), most),
        "/v1/status": _get("The agent and its neighbours.", _ref("Status")),
        "/healthz": {**_operation("Whether the process runs.", {"200": _answer("It does.", alive)}), "security": []},
        "/readyz": _operation("Whether all neighbours are connected.", ready, (422,)),
        "/metrics": _operation("For Prometheus.", {"200": text}, (422,)),
        "/openapi.json": _get("This document.", {"type": "object"}),
    }
    tune = _operation(
        "One step of a tuning, which every agent of the network must be asked for.",
        {"200": _answer("How far the agent is.", _ref("TuningStep"))},
        (400, 403, 404, 408, 409, 413, 415, 422, 503),
    )
    tune["description"] = (
        "check: the labelled items, with this agent's scores of them unless it knows them; run: the agents exchange "
        "messages, and a gain is proposed; use: it counts from now on, times a factor; drop: it does not. "
    )
    tune["requestBody"] = {"required": True, "content": {JSON: {"schema": _ref("Tune")}}}
    label = _operation(
        "The label of a decided item; send it to all agents.",
        {"200": _answer("The agent's gain now.", _ref("Labelled"))},
        (400, 404, 408, 409, 413, 415, 422, 503),
        item,
    )
    label["description"] = "The agent moves its own gain, without any message. Sending it again changes nothing."
    label["requestBody"] = {"required": True, "content": {JSON: {"schema": _ref("Label")}}}
    posts = {"/v1/items": {"post": post}, "/v1/tune": {"post": tune}, "/v1/items/{id}/label": {"post": label}}
    return {**posts, **{path: {"get": get} for path, get in gets.items()}}


def _answers() -> Schema:
    """The schemas of all answers, with the description of each field."""
    structs = [one for one in vars(answers).values() if isinstance(one, type) and issubclass(one, msgspec.Struct)]
    structs.remove(msgspec.Struct)
    _, schemas = msgspec.json.schema_components(structs, ref_template="#/components/schemas/{name}")
    try:
        source = inspect.getsource(answers)
    except OSError:  # installed without sources
        source = ""
    for definition in ast.parse(source).body:
        if isinstance(definition, ast.ClassDef) and definition.name in schemas:
            fields = schemas[definition.name]["properties"]
            for field, text in pairwise(definition.body):
                match field, text:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(about))):
                        fields[name]["description"] = " ".join(about.split())
    return schemas


def _bodies(limits: Limits, classes: int) -> Schema:
    """What the POST requests take as JSON."""
    many = {"type": "array", "minItems": 1, "maxItems": limits.items}
    number = {"type": "number", "minimum": -1e300, "maximum": 1e300}
    each = {"minItems": classes, "maxItems": classes, "description": "One number for each class."}
    score = number if classes <= 2 else {"type": "array", "items": number, **each}
    name, view = _ref("Name"), _ref("View")
    items = {**many, "description": "All with scores or all with views, and all ids different."}
    forms: list[Schema] = [
        {"id": name, "score": score},
        {"id": name, "view": view},
        {"items": {**items, "items": _ref("Scored")}},
        {"items": {**items, "items": _ref("Seen")}},
        {"ids": {**many, "items": name, "uniqueItems": True}, "scores": {**many, "items": score}},
        {"ids": {**many, "items": name, "uniqueItems": True}, "views": {**many, "items": view}},
    ]
    options = {
        "trace": {"type": "boolean", "description": "Return the statistic of every round."},
        "wait": {"type": "boolean", "description": "Wait for the decision; if not, the answer is 202."},
    }
    no_name = "".join(f"\\u{ord(c):04x}" if c != "-" else c for c in NO_NAME)
    text = {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME, "pattern": f"^[^{no_name}]+$"}
    return {
        "Name": {
            "description": 'An item: a whole number or a string. Digits alone are a number, so "12" is 12. '
            f"At most {LONGEST_NAME} characters.",
            "anyOf": [_WHOLE, text],
        },
        "View": {
            "description": "What the agent's model takes for one item: numbers in lists, nested at most four deep; a "
            "text; or a record of named values. All of a request have the same shape.",
            "anyOf": [
                {"type": "array", "minItems": 1, "items": {"anyOf": [number, {"type": "array", "minItems": 1}]}},
                {"type": "string"},
                {"type": "object", "additionalProperties": {"type": ["number", "boolean", "string", "null"]}},
            ],
        },
        "Scored": _object(forms[0]),
        "Seen": _object(forms[1]),
        "Items": {"oneOf": [_object({**form, **options}, list(form)) for form in forms]},
        "Tune": {"oneOf": _steps(many, score)},
        "Label": _object(
            {
                "label": {"type": ["number", "boolean", "string"], "description": "One of the network's classes."},
                "rate": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "description": "0.05 by default."},
            },
            ["label"],
        ),
    }


def _steps(many: Schema, score: Schema) -> list[Schema]:
    session = {"type": "string", "maxLength": LONGEST_SESSION, "pattern": "^[A-Za-z0-9._-]+$"}
    check = {
        "session": session,
        "step": {"const": "check"},
        "ids": {**many, "items": _ref("Name"), "uniqueItems": True},
        "labels": {**many, "items": {"type": ["number", "boolean", "string"]}, "description": "A class of each item."},
    }
    settings = {
        "scores": {
            "anyOf": [{**many, "items": {"anyOf": [score, {"type": "null"}]}}, {"type": "null"}],
            "description": "Before the gain; null where there is no view. Without them, of items this agent knows.",
        },
        "fresh": {"type": "boolean", "description": "Whether all agents have gain 1."},
        "loss": {"type": "string", "description": "logistic or ridge."},
        "conversations": {
            "anyOf": [{"type": "integer", "minimum": 1, "maximum": MOST_CONVERSATIONS}, {"type": "null"}],
            "description": "Directions to go.",
        },
        "per_class": {"type": "boolean", "description": "A gain per agent and class."},
    }
    run = {"session": session, "step": {"const": "run"}}
    how = {
        "bounds": {
            "anyOf": [
                {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number", "exclusiveMinimum": 0}},
                {"type": "null"},
            ],
            "description": "The smallest and the largest bound of any agent; the same at every agent.",
        },
        "passes": {
            "type": "integer", "minimum": 1, "maximum": MOST_PASSES,
            "description": "How often received averages are averaged again.",
        },
        "verify": {"type": "boolean", "description": "Whether new gains are tried on the labelled items first."},
        "away": {"type": "array", "items": {"type": "string"}, "description": "Agents that take no part."},
    }  # fmt: skip
    use = {"session": session, "step": {"const": "use"}}
    scale = {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "description": "The same at every agent."}
    drop = {"session": session, "step": {"const": "drop"}}
    forms: list[tuple[Schema, Schema]] = [(check, settings), (run, how), (use, {"scale": scale}), (drop, {})]
    return [_object({**needed, **more}, list(needed)) for needed, more in forms]


def _object(properties: Schema, required: list[str] | None = None) -> Schema:
    needed = required or list(properties)
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _answer(text: str, schema: Schema) -> Schema:
    return {"description": text, "content": {JSON: {"schema": schema}}}


def _option(name: str, text: str, schema: Schema) -> Schema:
    return {"name": name, "in": "query", "description": text, "required": False, "schema": schema}


def _get(text: str, schema: Schema, *parameters: Schema) -> Schema:
    return _operation(text, {"200": _answer(text, schema)}, (422,), *parameters)


def _operation(text: str, found: Schema, refusals: tuple[int, ...] = (), *parameters: Schema) -> Schema:
    """An operation that may also be refused for its token, its number and by mistake, if at all."""
    statuses = sorted({*refusals, 401, 429, 500}) if refusals else ()
    refused = {str(status): {"$ref": f"#/components/responses/E{status}"} for status in statuses}
    return {"summary": text, "parameters": list(parameters), "responses": {**found, **refused}}
