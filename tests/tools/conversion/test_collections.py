"""Parameters that are collections: schema, received type, refusal."""

from __future__ import annotations

import collections
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import pytest

from tools.conversion.function_to_mcp import FunctionToMCP

INTEGER = {"type": "integer"}
INTEGERS = {"type": "array", "items": INTEGER}

COLLECTIONS: dict[str, Any] = {
    "list": (list, {"type": "array", "items": {}}, [([1], [1])], 5, "send a list."),
    "list of": (list[int], INTEGERS, [([1], [1]), ("[1]", [1])], [1, "b"], "`x[1]` is 'b'"),
    "nested list": (
        list[list[int]],
        {"type": "array", "items": INTEGERS},
        [("[[1]]", [[1]]), (["[1]"], [[1]])],
        [["b"]],
        "`x[0][0]` is 'b'",
    ),
    "dict": (dict, {"type": "object"}, [({"a": 1}, {"a": 1})], [], "is []; send an object."),
    "dict of": (
        dict[str, int],
        {"type": "object", "additionalProperties": INTEGER},
        [({"a": 1}, {"a": 1}), ('{"a": 1}', {"a": 1})],
        {"a": "b"},
        "`x.a` is 'b'; send an integer.",
    ),
    "dict by number": (
        dict[int, str],
        {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "propertyNames": {"pattern": "^-?[0-9]+$"},
        },
        [({"1": "a"}, {1: "a"})],
        {"z": "a"},
        "`x` has the name 'z'; send a string matching ^-?[0-9]+$.",
    ),
    "tuple": (
        tuple[int, str],
        {
            "type": "array",
            "prefixItems": [INTEGER, {"type": "string"}],
            "minItems": 2,
            "maxItems": 2,
        },
        [([1, "a"], (1, "a"))],
        [1],
        "`x[1]` is missing; add a string.",
    ),
    "tuple of": (tuple[int, ...], INTEGERS, [([1, 2], (1, 2))], ["b"], "`x[0]` is 'b'"),
    "set": (set[int], {**INTEGERS, "uniqueItems": True}, [([1, 1], {1})], 3, "send a list"),
    "frozenset": (
        frozenset[int],
        {**INTEGERS, "uniqueItems": True},
        [([1], frozenset({1}))],
        3,
        "send a list",
    ),
    "sequence": (Sequence[int], INTEGERS, [([1], [1])], "ab", "is 'ab'; send a list"),
    "iterable": (Iterable[int], INTEGERS, [([1], [1])], ["b"], "`x[0]` is 'b'"),
    "collection": (Collection[int], INTEGERS, [([1], [1])], ["b"], "`x[0]` is 'b'"),
    "abstract set": (
        AbstractSet[int],
        {**INTEGERS, "uniqueItems": True},
        [([1], frozenset({1}))],
        1,
        "send a list",
    ),
    "deque": (collections.deque[int], INTEGERS, [([1], collections.deque([1]))], 1, "send a list"),
    "mapping": (
        Mapping[str, int],
        {"type": "object", "additionalProperties": INTEGER},
        [({"a": 1}, {"a": 1})],
        {"a": "b"},
        "`x.a` is 'b'",
    ),
    "counter": (
        collections.Counter[str],
        {"type": "object", "additionalProperties": INTEGER},
        [({"a": 1}, collections.Counter("a"))],
        1,
        "send an object.",
    ),
    "defaultdict": (
        collections.defaultdict[str, int],
        {"type": "object", "additionalProperties": INTEGER},
        [({"a": 1}, {"a": 1})],
        1,
        "send an object.",
    ),
}


@pytest.mark.parametrize("case", COLLECTIONS.values(), ids=COLLECTIONS)
def test_a_collection_has_its_schema_and_takes_and_refuses_what_it_says(
    case: Any, examine: Callable[[Any], None]
) -> None:
    examine(case)


def test_an_iterator_is_one(taking: Callable[[Any], Any]) -> None:
    values = FunctionToMCP.convert(taking(Iterator[int])).validate({"x": [1, 2]})
    assert next(values["x"]) == 1
