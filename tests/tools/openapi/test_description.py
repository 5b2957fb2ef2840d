import json
import tracemalloc

import pytest

from tools.core.errors import InvalidArgumentsError
from tools.openapi import description
from tools.openapi.description import (
    Description,
    Operation,
    Selection,
    UnusableError,
    names_of,
    operations_of,
)


def test_yaml_is_read_as_json_has_it() -> None:
    text = """
openapi: 3.1.0
x: {day: 2026-03-31, answer: yes, on: 0o7, big: 1e3, nothing: ~, 200: 1.5}
"""
    document = Description.parse(text.encode()).document
    assert document["x"] == {
        "day": "2026-03-31",
        "answer": "yes",
        "on": "0o7",
        "big": 1000.0,
        "nothing": None,
        "200": 1.5,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"swagger": "2.0"}', "Swagger 2.0"),
        ('{"openapi": "4.0.0"}', "OpenAPI 4.0.0"),
        ("<html></html>", "no OpenAPI version"),
        ("[" * 100_000, "neither JSON nor YAML"),
        ("a: [1", "neither JSON nor YAML"),
        ("\0", "neither JSON nor YAML"),
        ("!!python/object/apply:os.system [id]", "neither JSON nor YAML"),
    ],
)
def test_what_is_no_description_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=said) as raised:
        Description.parse(text.encode())
    assert raised.value.next_actions


def test_a_wide_circle_of_aliases_is_refused_before_it_takes_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(description, "MOST_VALUES", 1_000)
    text = f"openapi: 3.0.0\na: &a [{', '.join(['*a'] * 900)}]"
    tracemalloc.start()
    try:
        with pytest.raises(InvalidArgumentsError, match="more than 1,000 values"):
            Description.parse(text.encode())
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_aliases_that_grow_without_end_are_refused() -> None:
    lines = ["openapi: 3.0.0", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]
    with pytest.raises(InvalidArgumentsError, match="more than"):
        Description.parse("\n".join(lines).encode())


def _described(**parts: object) -> Description:
    return Description.parse(json.dumps({"openapi": "3.1.0", **parts}).encode())


def test_a_reference_is_followed_within_the_description_alone() -> None:
    description = _described(
        a={"$ref": "#/b~1c/0"}, **{"b/c": [{"type": "x"}]}, loop={"$ref": "#/loop"}
    )
    assert description.follow({"$ref": "#/a"}) == {"type": "x"}
    for reference in ("other.yaml#/a", "https://h.example/a", "#/nowhere", "#/loop"):
        with pytest.raises(UnusableError):
            description.follow({"$ref": reference})


@pytest.mark.parametrize(
    ("server", "address", "url"),
    [
        ({"url": "https://h.example/v1/"}, "", "https://h.example/v1"),
        ({"url": "/v1"}, "https://d.example/spec/openapi.json", "https://d.example/v1"),
        ({"url": "v1"}, "https://d.example/spec/openapi.json", "https://d.example/spec/v1"),
        (
            {"url": "https://{r}.h.example", "variables": {"r": {"default": "eu"}}},
            "",
            "https://eu.h.example",
        ),
    ],
)
def test_the_api_is_where_the_description_says(
    server: dict[str, object], address: str, url: str
) -> None:
    assert _described(servers=[server]).base_url(address) == url
    other = {"servers": [{"url": "https://other.example"}]}
    assert _described(servers=[server]).base_url(address, {}, other) == "https://other.example"


def test_a_file_that_names_no_host_says_what_to_set() -> None:
    for server in ({"url": "/v1"}, {"url": "https://{unknown}.example"}):
        with pytest.raises(UnusableError, match="the setting url"):
            _described(servers=[server]).base_url("")


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
