"""Edits of JSON keep every other character, whatever the file looks like."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.clients.json_text import JsonText

ENTRY = {"command": "/bin/x", "args": ["serve"]}

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=3), TREES, max_size=4)
NOISE = st.sampled_from(["", " ", "\n", "\t", "\r\n", "/* a, {b} */", '// "c": [\n', "\n  "])


@st.composite
def commented(draw: st.DrawFn, values: Any) -> str:
    """A document with comments, odd blanks and trailing commas between its tokens."""

    def shown(value: Any) -> str:
        if isinstance(value, dict):
            parts = [
                f"{json.dumps(k)}{draw(NOISE)}:{draw(NOISE)}{shown(v)}" for k, v in value.items()
            ]
            opened, closed = "{", "}"
        elif isinstance(value, list):
            parts, opened, closed = [shown(each) for each in value], "[", "]"
        else:
            return json.dumps(value)
        body = "".join(
            f"{draw(NOISE)}{part}{draw(NOISE)}{',' if more or draw(st.booleans()) else ''}"
            for part, more in zip(parts, [True] * (len(parts) - 1) + [False], strict=False)
        )
        return f"{opened}{body}{draw(NOISE)}{closed}"

    return draw(NOISE) + shown(values) + draw(NOISE)


@given(st.data(), OBJECTS)
def test_a_member_is_added_and_removed_in_any_document(data: st.DataObject, values: Any) -> None:
    text = data.draw(commented(values))
    made = JsonText(text).put(("new", "x"), ENTRY)
    assert JsonText(made).values == values | {"new": {"x": ENTRY}}
    gone = JsonText(made).remove(("new",))
    assert JsonText(gone).values == values
    assert "".join(gone.split()) == "".join(text.split())


@given(st.data(), OBJECTS, st.lists(TREES, max_size=3))
def test_an_item_is_appended_and_removed_in_any_document(
    data: st.DataObject, values: Any, items: list[Any]
) -> None:
    document = values | {"hooks": {"Stop": items}}
    text = data.draw(commented(document))
    made = JsonText(text).add(("hooks", "Stop"), ENTRY)
    assert JsonText(made).values == values | {"hooks": {"Stop": [*items, ENTRY]}}
    gone = JsonText(made).remove(("hooks", "Stop", len(items)))
    assert JsonText(gone).values == document
    assert "".join(gone.split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "a": {\n    "x": 1\n  }\n}\n'),
        ("{}", '{\n  "a": {\n    "x": 1\n  }\n}'),
        ('{"b":2}', '{"b":2,"a":{"x":1}}'),
        ('{"b": 2}\n', '{"b": 2, "a": {"x": 1}}\n'),
        ('{\n\t"b": 2 // two\n}\n', '{\n\t"b": 2, // two\n\t"a": {\n\t\t"x": 1\n\t}\n}\n'),
        ('{\n  "b": 2,\n}\n', '{\n  "b": 2,\n  "a": {\n    "x": 1\n  },\n}\n'),
        ('{\n    "a": {}\n}\n', '{\n    "a": {\n        "x": 1\n    }\n}\n'),
        ('{\r\n  "b": 2\r\n}\r\n', '{\r\n  "b": 2,\r\n  "a": {\r\n    "x": 1\r\n  }\r\n}\r\n'),
    ],
)
def test_new_text_has_the_style_of_the_file(before: str, after: str) -> None:
    made = JsonText(before).put(("a", "x"), 1)
    assert made == after
    whole = ("a",) if json.dumps("a") not in before else ("a", "x")
    gone = JsonText(made).remove(whole)
    assert JsonText(gone).values == JsonText(before).values


def test_a_value_is_replaced_in_its_place() -> None:
    text = '{\n  "a": [1, 2], // list\n  "b": {"c": "old"}\n}\n'
    assert JsonText(text).put(("b", "c"), "new") == text.replace("old", "new")
    assert JsonText(text).put(("a", 1), 3) == text.replace("2", "3")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1, "a": 2}', "it contains 'a' twice"),
        ('{"a": 1}', "not an object"),
        ('{"a": [1]}', "not an object"),
        ("[1]", "not an object"),
    ],
)
def test_a_path_that_is_not_one_of_objects_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        JsonText(text).put(("a", "x"), 1)
