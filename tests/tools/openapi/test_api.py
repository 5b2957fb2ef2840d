"""Descriptions that are broken or hostile: what of them can be a tool is one, and no more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.core.errors import InvalidArgumentsError, ToolError
from tools.openapi import api, schemas
from tools.openapi.api import Api, ApiOptions
from tools.openapi.description import Description

PETSTORE: Any = Description.parse(
    Path(__file__).with_name("descriptions").joinpath("petstore.yaml").read_bytes()
).document
KEYS = ["allOf", "anyOf", "content", "enum", "in", "items", "properties", "required", "type"]
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 5, "", "\ud800", [], {}, [5], [{}], [[]], {"a": 5}, {"$ref": "#/paths"}]
)


def _api(description: object) -> Api:
    return Api(
        ApiOptions(name="shop", address="f", base_url="https://h.example"),
        json.dumps(description).encode(),
    )


def _described(**parts: Any) -> dict[str, Any]:
    return {"openapi": "3.0.0", **parts}


def _posting(schema: Any, **components: Any) -> Api:
    """An API with three operations that take a body."""
    body = {"content": {"application/json": {"schema": schema}}}
    paths = {f"/{number}": {"post": {"requestBody": body}} for number in range(3)}
    return _api(_described(paths=paths, components={"schemas": components}))


def _owners(value: Any) -> Iterator[Any]:
    """Every object and list in a description."""
    if isinstance(value, dict | list):
        yield value
        for each in value.values() if isinstance(value, dict) else value:
            yield from _owners(each)


@given(data=st.data())
def test_a_part_that_is_something_else_breaks_nothing(data: st.DataObject) -> None:
    description = deepcopy(PETSTORE)
    for _ in range(3):
        owner = data.draw(st.sampled_from(list(_owners(description["paths"]))), "where")
        keys = [*owner, *KEYS] if isinstance(owner, dict) else range(len(owner))
        if keys:
            owner[data.draw(st.sampled_from(list(keys)), "key")] = deepcopy(data.draw(ODD, "value"))
    try:
        made = _api(description)
    except ToolError:
        return
    assert len(made.tools) + len(made.problems) == len(made.operations)


def test_a_body_that_is_put_together_in_a_circle_has_its_properties() -> None:
    pet = {
        "type": "object",
        "properties": {"name": {}},
        "allOf": [{"$ref": "#/components/schemas/Pet"}],
    }
    [tool, *_] = _posting({"$ref": "#/components/schemas/Pet"}, Pet=pet).tools
    assert list(tool.input_schema["properties"]) == ["name", "fields"]


def test_schemas_that_grow_without_end_leave_operations_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schemas, "MOST_PARTS", 250)
    large = {
        "type": "object",
        "properties": {f"p{number}": {"type": "string"} for number in range(100)},
    }
    made = _posting({"$ref": "#/components/schemas/Large"}, Large=large)
    assert len(made.tools) == 2
    assert made.problems == [
        "POST /2 is skipped: the description has schemas of more than 250 parts"
    ]


def test_references_that_grow_without_end_leave_operations_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schemas, "MOST_PARTS", 600)
    root = {"anyOf": [{"$ref": f"#/components/schemas/S{number}"} for number in range(100)]}
    small = {f"S{number}": {"type": "string"} for number in range(100)}
    made = _posting({"$ref": "#/components/schemas/Root"}, Root=root, **small)
    assert len(made.tools) == 2
    assert len(made.problems) == 1


def test_very_many_operations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "MOST_OPERATIONS", 2)
    with pytest.raises(InvalidArgumentsError, match="more than 2 operations"):
        _posting({})


def test_very_many_parameters_that_would_be_one_name_stay_as_many() -> None:
    parameters = [{"name": f"a{'!' * number}", "in": "query"} for number in range(1_200)]
    [tool] = _api(_described(paths={"/": {"get": {"parameters": parameters}}})).tools
    names = tool.input_schema["properties"]
    assert len(names) == 1_201
    assert max(map(len, names)) <= 64
