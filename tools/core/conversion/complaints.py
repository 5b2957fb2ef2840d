"""What is wrong with an argument, in one line: its place, its value, and what to send instead."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Collection, Mapping
from typing import Any

from pydantic_core import ErrorDetails

from tools.core.conversion.schema import branches, child, resolve

__all__ = ["complaint", "expectation", "nearest", "show", "unknown"]

FORMATS = {
    "date": "a date such as '2026-03-31'",
    "date-time": "a date and time such as '2026-03-31T12:00:00Z'",
    "duration": "a duration such as 'PT1H30M'",
    "time": "a time such as '12:00:00'",
    "uuid": "a UUID such as '3fa85f64-5717-4562-b3fc-2c963f66afa6'",
}
PLAIN = {
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "string": "a string",
}
AUTHORS = {"assertion_error", "value_error"}
"""The kinds of error whose text the author of a validator wrote."""
DEEPEST = 3
"""Levels of lists inside lists that a text describes; types may refer to themselves."""
LISTED = 12
"""Values or names that a text lists."""
LONGEST = 80
"""Characters of a value that are shown or compared."""


class _Shortener(reprlib.Repr):
    """`repr` of bounded length and depth that no value can make fail."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = LONGEST

    def repr_int(self, value: int, level: int) -> str:
        try:
            return super().repr_int(value, level)
        except ValueError:  # Python refuses to write integers of thousands of digits
            return f"an integer of {value.bit_length()} bits"


def show(value: object) -> str:
    """The value as Python writes it, shortened."""
    return _Shortener().repr(value)


def nearest(name: object, known: Collection[str]) -> str | None:
    """The known name that was probably meant, if one is near."""
    matches = difflib.get_close_matches(str(name)[:LONGEST].lower(), known, n=1, cutoff=0.6)
    return matches[0] if matches else None


def unknown(path: str, name: object, known: Collection[str]) -> str:
    """The line for a name that nothing has.

    Args:
        path: The object that it stands in, empty for the arguments themselves.
        name: The unknown name.
        known: The names there are.
    """
    meant = nearest(name, known)
    if meant:
        remedy = f"did you mean `{_join(path, meant)}`?"
    elif known:
        remedy = f"leave it out; known are {_listed([f'`{each}`' for each in known])}."
    else:
        remedy = "leave it out; there is nothing to give."
    return f"`{_join(path, show(str(name))[1:-1])}` is unknown; {remedy}"


def complaint(error: ErrorDetails, root: Mapping[str, Any]) -> str:
    """The line for one error of pydantic's.

    Args:
        error: What pydantic found.
        root: The schema of the arguments, where the error's place is looked up.
    """
    place = error["loc"]
    if error["type"] == "extra_forbidden":
        path, schema = _locate(place[:-1], root)
        return unknown(path, place[-1], resolve(schema, root).get("properties", {}))
    path, schema = _locate(place, root)
    if error["type"] == "missing":
        text = schema.get("description")
        return f"`{path}` is missing; add {expectation(schema, root)}{f': {text}' if text else '.'}"
    if error["type"] in AUTHORS:
        return f"`{path}` is {show(error['input'])}; {error['ctx']['error']}"
    hint = _hint(error["input"], schema, root)
    return f"`{path}` is {show(error['input'])}; send {expectation(schema, root)}{hint}."


def expectation(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> str:
    """What a schema accepts, in words: "an integer from 1 to 100".

    Args:
        schema: The schema of one value.
        root: The schema whose `$defs` it may refer to.
        depth: Levels of lists that it stands in.
    """
    texts = [_expected(branch, root, depth) for branch in branches(schema, root)]
    return " or ".join(dict.fromkeys(texts))


def _expected(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if "const" in schema:
        return show(schema["const"])
    if "enum" in schema:
        return f"one of {_listed([show(value) for value in schema['enum']])}"
    kind = schema.get("type")
    if kind == "array":
        return _expected_list(schema, root, depth)
    if kind == "object":
        names = [f"`{name}`" for name in schema.get("properties", ())]
        return f"an object with {_listed(names)}" if names else "an object"
    if kind == "string":
        return _expected_string(schema)
    return PLAIN.get(str(kind), "a value") + _number_bounds(schema)


def _expected_list(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    count = _span(schema.get("minItems"), schema.get("maxItems"), "of")
    items = schema.get("items")
    if not items or depth >= DEEPEST:
        return f"a list{f'{count} items' if count else ''}"
    each = expectation(items, root, depth + 1)
    return f"a list{f'{count} items' if count else ''}, each item {each}"


def _expected_string(schema: Mapping[str, Any]) -> str:
    form = schema.get("format", "")
    text = FORMATS.get(form) or (f"a string ({form})" if form else "a string")
    length = _span(schema.get("minLength"), schema.get("maxLength"), "of")
    pattern = f" matching {schema['pattern']}" if "pattern" in schema else ""
    return text + (f"{length} characters" if length else "") + pattern


def _number_bounds(schema: Mapping[str, Any]) -> str:
    bounds = _span(schema.get("minimum"), schema.get("maximum"), "from")
    for key, words in (
        ("exclusiveMinimum", "greater than"),
        ("exclusiveMaximum", "less than"),
        ("multipleOf", "a multiple of"),
    ):
        if key in schema:
            bounds += f"{',' if bounds else ''} {words} {schema[key]}"
    return bounds


def _span(low: float | None, high: float | None, word: str) -> str:
    if low is None and high is None:
        return ""
    if high is None:
        return f" of at least {low}"
    if low is None:
        return f" of at most {high}"
    return f" of {low}" if low == high else f" {word} {low} to {high}"


def _hint(value: object, schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
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


def _locate(place: tuple[int | str, ...], root: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The path as people write it, and the schema there.

    Pydantic also puts names of union branches and validators into a place; these have no schema
    and are passed over.
    """
    path, schema = "", root
    for key in place:
        found = child(schema, key, root)
        if found is not None:
            path, schema = _join(path, key), found
    return path, schema


def _join(path: str, key: int | str) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _listed(texts: list[str]) -> str:
    more = f" and {len(texts) - LISTED} more" if len(texts) > LISTED else ""
    return ", ".join(texts[:LISTED]) + more
