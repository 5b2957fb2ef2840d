"""Describes schemas and values in words, for the model that sent them."""

from __future__ import annotations

import reprlib

from tools.conversion.schema_reading import Schema, branches

FORMATS = {
    "date": "a date such as '2026-03-31'",
    "date-time": "a date and time such as '2026-03-31T12:00:00Z'",
    "duration": "a duration such as 'PT1H30M'",
    "email": "an e-mail address",
    "ipv4": "an IPv4 address such as '192.0.2.1'",
    "ipv6": "an IPv6 address such as '2001:db8::1'",
    "regex": "a regular expression",
    "time": "a time such as '12:00:00'",
    "uri": "a URL such as 'https://example.org/'",
    "uuid": "a UUID such as '3fa85f64-5717-4562-b3fc-2c963f66afa6'",
}
CONTENT = {"application/json": "JSON as text"}
PLAIN = {
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "string": "a string",
}
DEEPEST = 3
"""Levels of nested lists that a description covers; types may refer to themselves."""
LISTED = 12
"""Maximum values or names that a description lists."""
LONGEST = 80
"""Maximum characters of a value that are shown or compared."""


class _Shortener(reprlib.Repr):
    """A `repr` of bounded length and depth that no value can break."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = LONGEST

    def repr_int(self, value: int, level: int) -> str:
        try:
            return super().repr_int(value, level)
        except ValueError:  # Python refuses to write integers of thousands of digits
            return f"an integer of {value.bit_length()} bits"


def show(value: object) -> str:
    """Returns the value's `repr`, shortened."""
    return _Shortener().repr(value)


def describe_schema(schema: Schema, root: Schema, depth: int = 0) -> str:
    """Describes what a schema accepts, for example "an integer from 1 to 100"."""
    texts = [_expected(branch, root, depth) for branch in branches(schema, root)]
    *others, last = dict.fromkeys(texts)
    comma = "," if any(", " in each for each in others) else ""
    return f"{comma} or ".join([" or ".join(others), last]) if others else last


def _expected(schema: Schema, root: Schema, depth: int) -> str:
    if "const" in schema:
        return show(schema["const"])
    if "enum" in schema:
        choices = ["null" if value is None else show(value) for value in schema["enum"]]
        return f"one of {enumerate_some(choices)}" if len(choices) > 1 else choices[0]
    kind = schema.get("type")
    if kind == "array":
        return _expected_list(schema, root, depth)
    if kind == "object":
        names = [f"`{name}`" for name in schema.get("properties", ())]
        return f"an object with {enumerate_some(names)}" if names else "an object"
    if kind == "string":
        return _expected_string(schema)
    return PLAIN.get(str(kind), "a value") + _number_bounds(schema)


def _expected_list(schema: Schema, root: Schema, depth: int) -> str:
    count = _span(schema.get("minItems"), schema.get("maxItems"), "of")
    items = schema.get("items")
    different = " different" if schema.get("uniqueItems") else ""
    text = f"a list{count or ' of'}{different} items" if count or different else "a list"
    if not items or depth >= DEEPEST or any(each is schema for each in branches(items, root)):
        return text
    return f"{text}, each item {describe_schema(items, root, depth + 1)}"


def _expected_string(schema: Schema) -> str:
    form = schema.get("format") or schema.get("contentEncoding", "")
    text = FORMATS.get(form) or CONTENT.get(schema.get("contentMediaType", ""))
    text = text or (f"a string ({form})" if form else "a string")
    length = _span(schema.get("minLength"), schema.get("maxLength"), "of")
    pattern = f" matching {schema['pattern']}" if "pattern" in schema else ""
    ending = "" if length.endswith(" 1") else "s"
    return text + (f"{length} character{ending}" if length else "") + pattern


def _number_bounds(schema: Schema) -> str:
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


def enumerate_some(texts: list[str]) -> str:
    """Joins texts with commas; a long list is cut and ends with the number of omitted ones."""
    more = f" and {len(texts) - LISTED} more" if len(texts) > LISTED else ""
    return ", ".join(texts[:LISTED]) + more
