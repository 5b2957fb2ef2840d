"""What a schema says, however its definitions name each other."""

from __future__ import annotations

from typing import Any

from tools.conversion.schemas.reading import branches


def test_each_alternative_is_told_once_however_many_ways_lead_to_it() -> None:
    definitions: dict[str, Any] = {
        str(level): {"anyOf": [{"$ref": f"#/$defs/{level + 1}"}] * 2} for level in range(60)
    }
    last = {"type": "integer"}
    root = {"$defs": {**definitions, "60": last}}
    assert list(branches({"$ref": "#/$defs/0"}, root)) == [last]


def test_a_union_that_contains_itself_ends() -> None:
    one, other = {"type": "string"}, {"type": "null"}
    root = {"$defs": {"text": {"anyOf": [one, {"$ref": "#/$defs/text"}, other]}}}
    assert list(branches({"$ref": "#/$defs/text"}, root)) == [one, other]
