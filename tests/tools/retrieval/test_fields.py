from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tools.retrieval.fields import brief_text, fields_of, full_text, spaced, terms_of
from tools.retrieval.models import ToolRecord

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["properties", "items", "anyOf", "$defs", "description", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


def test_a_name_weighs_more_than_a_description_and_that_more_than_a_parameters_text() -> None:
    record = ToolRecord(
        tool_id="1",
        name="sendMail",
        description="quickly",
        parameters={"properties": {"recipient": {"description": "somebody"}}},
    )
    terms = terms_of(fields_of(record))
    assert terms["mail"] > terms["quick"] == terms["recipi"] > terms["somebodi"] > 0


def test_nested_parameters_are_read_too() -> None:
    schema = {
        "properties": {"filter": {"anyOf": [{"properties": {"zebra": {}}}, {"type": "null"}]}},
        "$defs": {"Place": {"properties": {"meadow": {"description": "with flowers"}}}},
    }
    terms = terms_of(fields_of(ToolRecord(tool_id="1", name="a1", parameters=schema)))
    assert {"filter", "zebra", "meadow", "flower"} <= set(terms)


def test_a_servers_name_before_a_tools_counts_once() -> None:
    record = ToolRecord(tool_id="1", name="github__create_issue", server="github")
    assert terms_of(fields_of(record))["github"] == 1
    assert brief_text(record).startswith("create issue:")


def test_names_are_spaced() -> None:
    assert spaced("getHTTPResponse_v2.Now") == "get HTTP Response v2 Now"


def test_what_json_cannot_hold_is_no_record() -> None:
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"items": deep}
    for wrong in ({"parameters": deep}, {"description": "\ud800"}, {"tags": ("\ud800",)}):
        with pytest.raises(ValidationError, match="not what JSON can hold"):
            ToolRecord.model_validate({"tool_id": "1", "name": "a", **wrong})


@given(st.dictionaries(st.sampled_from(["properties", "items", "allOf"]), JSON), st.text())
def test_wild_records_are_read(schema: dict[str, Any], text: str) -> None:
    record = ToolRecord(tool_id="1", name="a", description=text, tags=(text,), parameters=schema)
    fields = fields_of(record)
    assert all(weight > 0 for weight in terms_of(fields).values())
    assert fields == fields_of(record.model_copy(deep=True))
    assert full_text(record).startswith(brief_text(record)[:5])
