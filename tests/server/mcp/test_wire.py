import json

from hypothesis import given
from hypothesis import strategies as st

from server.mcp.wire import utf8_json
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
