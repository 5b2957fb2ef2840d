"""Describes argument errors, one line each: the place, the value, and what to send instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic_core import ErrorDetails, core_schema

from tools.conversion.arguments.descriptions import (
    FORMATS,
    LONGEST,
    describe_schema,
    enumerate_some,
    show,
)
from tools.conversion.schema_reading import (
    Schema,
    bears_secret,
    branches,
    child,
    resolve,
    subschemas,
    types,
    union,
)

REPORTED = 5
"""Maximum wrong values listed for one argument; a caller can send thousands."""
SCANNED = 200
"""Maximum errors of one argument that are examined."""
MISSING = {
    *("missing", "missing_argument"),
    *("missing_keyword_only_argument", "missing_positional_only_argument"),
}
UNKNOWN = {"extra_forbidden", "unexpected_keyword_argument"}
AUTHORS = {"assertion_error", "value_error"}
"""Error kinds whose text was written by the validator's author."""
UNEXPLAINED = {
    *("date_future", "date_past", "datetime_future", "datetime_past", "finite_number"),
    *("decimal_max_digits", "decimal_max_places", "decimal_whole_digits", "url_scheme"),
    *("timezone_aware", "timezone_naive", "timezone_offset"),
}
"""Error kinds that no schema can explain, but pydantic's message does."""
BOUNDS = {"greater_than", "greater_than_equal", "less_than", "less_than_equal"}
"""Error kinds that a schema explains for numbers only."""
TEXTUAL = ({"string"}, {"number", "string"})
"""The JSON types of dates and of decimals."""
FALSE_NUMBER = "bool_for_number"
UNFIT = "union"
"""Our own error kinds: a boolean sent as a number, and a value that fits no type of a union."""
KNOWN = {*get_args(core_schema.ErrorType), FALSE_NUMBER, "path_type", UNFIT}
DICT_KEY = "[key]"
"""The marker with which pydantic ends a location when the key is wrong."""
SYNONYMS = tuple(
    frozenset(group.split())
    for group in (
        "source from subject origin start src",
        "target to object destination dest end dst",
        "relation relationship predicate verb",
        "content text body fact message note",
        "query question search term keywords q",
        "path file filename",
        "command cmd script",
        "limit max count results top k n",
        "timeout seconds wait deadline",
        "description details comment",
    )
)
"""Words in names of arguments of which each group means the same."""
ARRAYS = ("deque", "frozenset", "list", "set", "tuple")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an error is: its path as shown to the caller, and the schema expected there."""

    path: str
    schema: Schema
    union: int | None  # how many keys lead to the outermost union on the way


def nearest(name: object, known: Collection[str]) -> str | None:
    """Returns the known name that was probably meant, if one is close enough."""
    matches = difflib.get_close_matches(str(name)[:LONGEST].lower(), known, n=1, cutoff=0.6)
    return matches[0] if matches else None


def synonym(name: str, known: Collection[str]) -> str | None:
    """Returns the only known name of which a word means the same as one of the name's words."""
    words = set(re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", name).lower().split("_"))
    wide = words.union(*(group for group in SYNONYMS if group & words))
    alike = [each for each in known if wide & set(each.split("_"))]
    return alike[0] if len(alike) == 1 else None


def unknown_name(path: str, name: object, known: Collection[str], meant: str | None = None) -> str:
    """Returns the error line for a name that an object at `path` does not accept.

    The path of the arguments object is "". Without a meant name, a similar one is suggested.
    """
    meant = meant or nearest(name, known)
    if meant:
        remedy = f"did you mean `{_join(path, meant)}`?"
    elif known:
        others = enumerate_some([f"`{each}`" for each in known])
        remedy = f"leave it out, or use one of {others}."
    else:
        remedy = "leave it out; there is nothing to give."
    return f"`{_join(path, show(str(name))[1:-1])}` is unknown; {remedy}"


def describe_errors(errors: Iterable[ErrorDetails], root: Schema) -> list[str]:
    """Describes each error in a line; of many in one argument, the first few and a count."""
    by_argument: dict[int | str, list[ErrorDetails]] = {}
    for each in errors:
        by_argument.setdefault(each["loc"][0] if each["loc"] else "", []).append(each)
    lines: list[str] = []
    for name, found in by_argument.items():
        looked_into = _without_branches(found[:SCANNED], root, 0)
        lines_of_name = list(dict.fromkeys(_line(each, root) for each in looked_into))
        lines += lines_of_name[:REPORTED]
        more = len(lines_of_name[REPORTED:]) + len(found[SCANNED:])
        if more:
            lines.append(f"`{name}` has {more} more wrong values.")
    return lines


def _without_branches(
    errors: Sequence[ErrorDetails], root: Schema, start: int
) -> list[ErrorDetails]:
    """Reduces the errors of each union to those of the type that was probably meant."""
    unions: dict[tuple[int | str, ...], list[ErrorDetails]] = {}
    for each in errors:
        depth = _locate(each["loc"], root, start).union
        place = each["loc"] if depth is None else each["loc"][:depth]
        unions.setdefault((depth is None, *place), []).append(each)
    kept: list[ErrorDetails] = []
    for (plain, *keys), found in unions.items():
        kept += found if plain else _of_likely_branch(found, root, len(keys))
    return kept


def _of_likely_branch(
    errors: Sequence[ErrorDetails], root: Schema, depth: int
) -> list[ErrorDetails]:
    """Returns the errors of the union branch that a value comes closest to.

    That is the branch with an error inside the value rather than in the value itself, and with the
    fewest errors. On a tie, one error represents all branches.
    """
    by_branch: dict[int | str, list[ErrorDetails]] = {}
    for each in errors:
        label = each["loc"][depth] if len(each["loc"]) > depth else ""
        by_branch.setdefault(label, []).append(each)
    if len(by_branch) == 1:
        return _without_branches(errors, root, depth + 1)
    outside = [found for found in by_branch.values() if len(found[0]["loc"]) <= depth + 1]
    inside = sorted((found for found in by_branch.values() if found not in outside), key=_distance)
    if inside and (len(inside) == 1 or _distance(inside[0]) < _distance(inside[1])):
        return _without_branches(inside[0], root, depth + 1)
    place = errors[0]["loc"][:depth]
    if outside:
        return [{**outside[0][0], "loc": place}]
    return [{**inside[0][0], "type": UNFIT, "loc": place, "input": None}]


def _distance(errors: Sequence[ErrorDetails]) -> tuple[int, int]:
    """Returns a sort key for how badly a value fits: missing fields first, then all errors."""
    return sum(each["type"] in MISSING for each in errors), len(errors)


def _line(error: ErrorDetails, root: Schema) -> str:
    place, kind = error["loc"], error["type"]
    if place and place[-1] == DICT_KEY:
        return _key_line(error, root)
    if kind in UNKNOWN:
        here = _locate(place[:-1], root)
        return unknown_name(here.path, place[-1], _inner(here.schema, root).get("properties", {}))
    here = _locate(place, root)
    path, schema, value = here.path, here.schema, error["input"]
    if kind.startswith("union_tag_"):
        return _tag_line(error, path, schema, root)
    if kind in MISSING:
        return _missing_line(path, schema, root)
    subject = _subject(path, value, schema, root) if path else "together they are wrong"
    if kind == UNFIT:
        subject = f"`{path}` fits nothing"
    text = _authors_text(error, schema, root)
    if text is not None:
        return f"{subject}; {text}"
    return f"{subject}; send {describe_schema(schema, root)}{_hint(value, schema, root)}."


def _subject(path: str, value: object, schema: Schema, root: Schema) -> str:
    """Names the wrong value, and shows it unless it may hold a secret.

    Text sent instead of a free-form object may hold one: it can be the arguments of another call.
    """
    is_untold = bears_secret(schema, root) or (
        isinstance(value, str)
        and any(
            part.get("type") == "object" and "properties" not in part
            for part in subschemas(schema, root)
        )
    )
    return f"`{path}` " + ("does not fit" if is_untold else f"is {show(value)}")


def _authors_text(error: ErrorDetails, schema: Schema, root: Schema) -> str | None:
    """Returns the message of the validator's author, or pydantic's where no schema explains it."""
    kind, form = error["type"], _inner(schema, root).get("format")
    if kind in AUTHORS:
        return str(error["ctx"].get("error", error["msg"]))
    is_bound_of_text = kind in BOUNDS and types(schema, root) - {"null"} in TEXTUAL
    if kind in UNEXPLAINED or is_bound_of_text or (kind not in KNOWN and form not in FORMATS):
        return error["msg"]
    return None


def _key_line(error: ErrorDetails, root: Schema) -> str:
    here = _locate(error["loc"], root)
    keys = _inner(here.schema, root).get("propertyNames", {})
    wanted = describe_schema({"type": "string", **keys}, root)
    return f"`{here.path}` has the name {show(error['input'])}; send {wanted}."


def _missing_line(path: str, schema: Schema, root: Schema) -> str:
    text = schema.get("description")
    return f"`{path}` is missing; add {describe_schema(schema, root)}{f': {text}' if text else '.'}"


def _tag_line(error: ErrorDetails, path: str, schema: Schema, root: Schema) -> str:
    """Returns the line for an object that does not identify its branch of a union."""
    value, name = error["input"], error["ctx"]["discriminator"].strip("'")
    named = [each.get("properties", {}).get(name, {}) for each in branches(schema, root)]
    tags = [
        value
        for tag in named
        for value in ([tag["const"]] if "const" in tag else tag.get("enum", ()))
    ]
    if not isinstance(value, Mapping) or not tags:
        return f"{_subject(path, value, schema, root)}; send {describe_schema(schema, root)}."
    choices: dict[str, Any] = {"enum": tags}
    if name not in value:
        return _missing_line(_join(path, name), choices, root)
    wanted = describe_schema(choices, root) + _hint(value[name], choices, root)
    return f"{_subject(_join(path, name), value[name], choices, root)}; send {wanted}."


def _hint(value: object, schema: Schema, root: Schema) -> str:
    if not isinstance(value, str):
        return ""
    choices = [
        choice
        for branch in branches(schema, root)
        for choice in branch.get("enum", ())
        if isinstance(choice, str)
    ]
    meant = nearest(value, choices)
    return f" (did you mean {meant!r}?)" if meant else ""


def _locate(place: Sequence[int | str], root: Schema, start: int = 0) -> _Place:
    """Returns where an error is; a union before `start` does not count.

    Pydantic also puts the names of union branches and validators into locations. Validators have no
    schema and are skipped.
    """
    path, schema, before = "", root, root
    first: int | None = None
    for depth, key in enumerate(place):
        if key == DICT_KEY:
            return _Place(path.removesuffix(f".{place[depth - 1]}"), before, first)
        schema = _besides_null(schema, root)
        if union(resolve(schema, root)):
            first = depth if first is None and depth >= start else first
            schema = _branch(schema, key, place[depth + 1 : depth + 2], root) or schema
            continue
        found = child(schema, key, root)
        if found is not None:
            before = schema
            path, schema = _join(path, key), found
    return _Place(path, schema, first)


def _besides_null(schema: Schema, root: Schema) -> Schema:
    """Unwraps a nullable type; pydantic treats "type or null" as no union and gives it no label."""
    others = [part for part in union(resolve(schema, root)) if part.get("type") != "null"]
    return _besides_null(others[0], root) if len(others) == 1 else schema


def _inner(schema: Schema, root: Schema) -> Schema:
    return resolve(_besides_null(schema, root), root)


def _branch(
    schema: Schema, label: int | str, inside: Sequence[int | str], root: Schema
) -> Schema | None:
    """Returns the union branch that pydantic labels by its class, its tag or its type.

    A tag that only a function computes is in no schema; then the keys inside identify the branch.
    """
    kind = "array" if str(label).startswith(ARRAYS) else "object"
    likely = None
    for branch in union(resolve(schema, root)):
        inner = resolve(branch, root)
        tags = [part.get("const") for part in inner.get("properties", {}).values()]
        if branch.get("$ref", "").endswith(f"/{label}") or label in tags:
            return branch
        holds = all(child(branch, key, root) for key in inside)
        if likely is None and inner.get("type") == kind and holds:
            likely = branch
    return likely


def _join(path: str, key: int | str) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


MOST = 5
"""Maximum number of lines."""

TYPES: Mapping[str, tuple[type, ...]] = {
    "array": (list, tuple),
    "boolean": (bool,),
    "integer": (int, float),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


def schema_errors(schema: Schema, arguments: Mapping[str, Any]) -> list[str]:
    """Explains where arguments do not match another server's JSON Schema, one line each.

    Other servers validate their own arguments, and some accept more than their schemas say. This
    explains a rejection and never causes one. It checks names and types only: foreign patterns
    could run forever, and references can point anywhere.
    """
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    names = [name for name in known if isinstance(name, str)]
    closed = schema.get("additionalProperties") is False
    required = schema.get("required")
    lines = [
        f"`{name}` is missing."
        for name in (required if isinstance(required, list | tuple) else ())
        if isinstance(name, str) and name not in arguments
    ]
    lines += [
        unknown_name("", name, names)
        for name in arguments
        if name not in known and (closed or nearest(name, names))
    ]
    for name, value in arguments.items():
        kinds = _listed_types(known.get(name))
        if kinds and not is_of_types(value, kinds):
            shown = "" if bears_secret(known[name], schema) else f", not {show(value)}"
            lines.append(f"`{name}` must be of type {' or '.join(kinds)}{shown}.")
    return lines[:MOST]


def _listed_types(schema: object) -> list[str]:
    """Returns the types that a value may have, or none if the schema does not list them all."""
    named = schema.get("type") if isinstance(schema, Mapping) else None
    kinds = named if isinstance(named, list | tuple) else [named]
    return [*kinds] if all(isinstance(kind, str) and kind in TYPES for kind in kinds) else []


def is_of_types(value: object, kinds: Iterable[str]) -> bool:
    """Returns whether a value has one of the given JSON types."""
    return any(_is(value, kind) for kind in kinds)


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES[kind])
