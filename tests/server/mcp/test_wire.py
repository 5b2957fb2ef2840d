import json
from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.mcp.wire import call_result, utf8_json
from tools.core.result import ToolResult
from tools.core.unicode_safety import encodable

texts = st.text(st.characters())  # lone surrogates included
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
)


@given(texts)
def test_any_text_can_be_encoded_and_a_sound_one_is_unchanged(text: str) -> None:
    sound = encodable(text)
    sound.encode()
    assert len(sound) == len(text)
    assert encodable(sound) == sound


@given(values)
def test_any_json_value_can_be_encoded_and_a_sound_one_is_unchanged(value: object) -> None:
    sound = utf8_json(value)
    json.dumps(sound, ensure_ascii=False).encode()
    assert utf8_json(sound) == sound


def test_what_is_no_text_is_left_alone() -> None:
    value = {"a": [1, 2.5, None, True, "é", {"b": "😀"}]}
    assert utf8_json(value) == value


@pytest.mark.parametrize(
    ("text", "structured", "read"),
    [
        ('{\n  "a": [1]\n}', {"a": [1]}, '{"a":[1]}'),
        ("[1, 2]", {"result": [1, 2]}, "[1,2]"),
        ("One line.", {"content": "One line."}, "One line."),
        ("Two found.", {"found": [1, 2]}, None),
        ("{", {}, None),
    ],
)
def test_text_and_structured_content_that_say_the_same_become_one_for_clients_that_read_one(
    text: str, structured: dict[str, Any], read: str | None
) -> None:
    theirs = types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=structured
    )
    result = ToolResult(structured, text, verbatim=theirs)
    assert call_result(result, "both") == theirs
    sent = call_result(result, "text")
    if read is None:
        assert sent == theirs
    else:
        assert sent == types.CallToolResult(content=[types.TextContent(text=read)])
