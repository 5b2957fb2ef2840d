from __future__ import annotations

import json

import pytest

from tools.openapi.description import Description
from tools.openapi.operations import Operation, Selection, names_of, operations_of

PATHS = {
    "/pets": {
        "get": {"operationId": "pets/list", "tags": ["pets"]},
        "post": {"operationId": "createPet", "tags": ["pets", "admin"]},
        "x-other": {},
        "trace": {"operationId": "t"},
    },
    "/pets/{id}": {"delete": {}},
    "x-path": {"get": {}},
}


def _operations(paths: object = PATHS) -> list[Operation]:
    document = {"openapi": "3.0.0", "paths": paths}
    return operations_of(Description.parse(json.dumps(document).encode()))


def test_tools_are_called_by_their_operation_ids() -> None:
    assert list(names_of("shop", _operations())) == [
        "shop__pets_list",
        "shop__createPet",
        "shop__delete_pets_id",
    ]


def test_ids_that_would_be_one_name_stay_two() -> None:
    paths = {"/a": {"get": {"operationId": "a/b"}}, "/b": {"get": {"operationId": "a.b"}}}
    paths["/c"] = {"get": {"operationId": "a.b"}}
    names = list(names_of("x", _operations(paths)))
    assert len(set(names)) == 3
    assert all(name.startswith("x__a_b_") for name in names)


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("createPet", ["POST /pets"]),
        ("*", ["GET /pets", "POST /pets", "DELETE /pets/{id}"]),
        ("pets/*", ["GET /pets"]),
        ("tag:ad*", ["POST /pets"]),
        ("/pets", ["GET /pets", "POST /pets"]),
        ("/pets/*", ["DELETE /pets/{id}"]),
        ("GET,DELETE /pets*", ["GET /pets", "DELETE /pets/{id}"]),
        ("GET", ["GET /pets"]),
    ],
)
def test_operations_are_wanted_by_id_tag_method_and_path(pattern: str, wanted: list[str]) -> None:
    operations = _operations()
    included = [str(each) for each in operations if Selection((pattern,)).admits(each)]
    assert included == wanted
    left = [str(each) for each in operations if Selection(exclude=(pattern,)).admits(each)]
    assert sorted(included + left) == sorted(map(str, operations))


def test_a_pattern_that_means_nothing_is_told() -> None:
    assert list(Selection(("GET", "nothing"), ("tag:x",)).idle(_operations())) == [
        "nothing",
        "tag:x",
    ]
