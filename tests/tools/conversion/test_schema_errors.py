from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.conversion.arguments.validation_errors import MOST, schema_errors

SCHEMA: dict[str, Any] = {
    "properties": {
        "owner": {"type": "string"},
        "limit": {"type": "integer"},
        "labels": {"type": ["array", "null"]},
        "anything": {"$ref": "https://example.com/never-fetched"},
    },
    "required": ["owner"],
}


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"owner": "ann"}, []),
        ({"owner": "ann", "limit": 3.0, "labels": None, "anything": [1], "more": 1}, []),
        ({}, ["`owner` is missing."]),
        ({"ownr": "ann"}, ["`owner` is missing.", "`ownr` is unknown; did you mean `owner`?"]),
        ({"owner": 1}, ["`owner` must be of type string, not 1."]),
        (
            {"owner": "a", "limit": True, "labels": {}},
            [
                "`limit` must be of type integer, not True.",
                "`labels` must be of type array or null, not {}.",
            ],
        ),
    ],
)
def test_what_does_not_fit_is_told(arguments: dict[str, Any], lines: list[str]) -> None:
    assert schema_errors(SCHEMA, arguments) == lines


def test_a_closed_schema_knows_no_other_names() -> None:
    (line,) = schema_errors({**SCHEMA, "additionalProperties": False}, {"owner": "a", "zzz": 1})
    assert line.startswith("`zzz` is unknown; leave it out, or use one of")


@pytest.mark.parametrize("kinds", [[], [{}], ["string", {}], [None], "strange", {"a": 1}, 3])
def test_a_type_that_says_nothing_clear_is_no_misfit(kinds: object) -> None:
    assert schema_errors({"properties": {"a": {"type": kinds}}}, {"a": 1}) == []


WILD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
KEYS = st.sampled_from(["properties", "required", "additionalProperties", "type"])


@given(schema=st.dictionaries(KEYS, WILD), arguments=st.dictionaries(st.text(max_size=9), WILD))
def test_any_schema_can_be_held_against_any_arguments(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    assert len(schema_errors(schema, arguments)) <= MOST
