"""The JSON form of values of which no type is known."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from array import array
from collections import UserDict, UserList, UserString, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum, StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tools.conversion.results.jsonable import to_jsonable
from tools.core.errors import UnsendableError


class Colour(Enum):
    RED = "red"


class Name(StrEnum):
    ANN = "ann"


class Point(NamedTuple):
    x: int


class Aliased(BaseModel):
    first: int = Field(1, serialization_alias="1st")
    hidden: int = Field(2, exclude=True)


@dataclass
class Pair:
    left: object
    right: object = None


class Public:
    def __init__(self) -> None:
        self.size = 1
        self.parts = [Pair(1)]
        self._secret = 2


class Slotted:
    __slots__ = ("_secret", "size")

    def __init__(self) -> None:
        self.size = 1


class Grown(Slotted):
    def __init__(self) -> None:
        super().__init__()
        self.more = 2


@attrs.define
class Attrs:
    size: int


class Spoken:
    def __str__(self) -> str:
        return "spoken"


class Addressed:
    def __repr__(self) -> str:
        return f"<Addressed to you at {id(self):#x}>"


class Mute:
    pass


class Failing:
    def __str__(self) -> str:
        raise RuntimeError


class Countable:
    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Any:
        return iter((1, 2))

    def __contains__(self, item: object) -> bool:
        return item in {1, 2}


FORMS: list[tuple[Any, Any]] = [
    ({Colour.RED: Colour.RED, Name.ANN: Name.ANN}, {"red": "red", "ann": "ann"}),
    ({None: 1, True: 2, 3: 4, 1.5: 6}, {"None": 1, "true": 2, "3": 4, "1.5": 6}),
    ({(1, "a"): 1, date(2026, 1, 2): 2, Path("a"): 3}, {"1,a": 1, "2026-01-02": 2, "a": 3}),
    ({frozenset({2, 1}): 1, Point(1): 2}, {"[1,2]": 1, "1": 2}),
    ("a\udc80", "a?"),
    ({"k\udc80": ["é\udc80"]}, {"k?": ["é?"]}),
    ([1.5, float("nan"), None], [1.5, None, None]),
    (deque([1]), [1]),
    (UserList([1]), [1]),
    (UserDict(a=1), {"a": 1}),
    (UserString("a"), "a"),
    (array("d", [1.5, float("inf")]), [1.5, None]),
    ({"b": 1}.keys(), ["b"]),
    ({"b": 1}.values(), [1]),
    ({"b": 1}.items(), [["b", 1]]),
    ({3, 1, 2}, [1, 2, 3]),
    ({"a", 1, None}, [None, "a", 1]),
    ({frozenset({2}), frozenset({1})}, [[1], [2]]),
    (Countable(), [1, 2]),
    ((n for n in (1, 2)), [1, 2]),
    (map(str, [1]), ["1"]),
    (memoryview(b"\xff\x00")[::-1], "AP8="),
    (Point(1), [1]),
    (Aliased(), {"1st": 1}),
    (Pair(Pair(1), Aliased()), {"left": {"left": 1, "right": None}, "right": {"1st": 1}}),
    (Pair(Public()), {"left": {"size": 1, "parts": [{"left": 1, "right": None}]}, "right": None}),
    (Slotted(), {"size": 1}),
    (Grown(), {"size": 1, "more": 2}),
    (Attrs(1), {"size": 1}),
    (SimpleNamespace(a=1), {"a": 1}),
    (Spoken(), "spoken"),
    (Addressed(), "<Addressed to you>"),
    (Mute(), f"{__name__}.Mute"),
    (Failing(), f"{__name__}.Failing"),
    (object(), "object"),
    (ValueError("no"), "ValueError: no"),
    (ValueError(), "ValueError"),
    (len, "len"),
    (Spoken.__str__, f"{__name__}.Spoken.__str__"),
    (json, "json"),
    (Colour, f"{__name__}.Colour"),
    (re.compile("a"), "a"),
]


@pytest.mark.parametrize(("value", "form"), FORMS, ids=lambda each: type(each).__name__)
def test_every_value_has_a_form(value: object, form: object) -> None:
    assert to_jsonable(value) == form


@pytest.mark.parametrize(
    "value", [threading.Lock(), lambda: 1, Addressed(), object(), [Mute()], iter, sqlite3.Row]
)
def test_no_form_has_an_address(value: object) -> None:
    assert "0x" not in json.dumps(to_jsonable(value))


def test_the_order_of_a_set_does_not_depend_on_the_order_of_adding() -> None:
    items = [f"{n}é" for n in range(50)]
    backwards = items[::-1]
    assert to_jsonable(set(items)) == to_jsonable(set(backwards)) == sorted(items)


def test_a_copy_comes_out_and_the_value_is_not_changed() -> None:
    value = {"a": [1, float("nan")], "b": {1, 2}}
    form = to_jsonable(value)
    form["a"].append(3)
    assert len(value["a"]) == 2
    assert value["b"] == {1, 2}


async def _asynchronous() -> None: ...


async def _stream() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("make", "reason"),
    [(_asynchronous, "a coroutine inside"), (_stream, "a async_generator inside")],
)
def test_what_only_an_event_loop_can_read_is_refused(
    make: Callable[[], object], reason: str
) -> None:
    with pytest.raises(UnsendableError, match=reason):
        to_jsonable([make()])


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.datetimes()
    | st.timedeltas()
    | st.decimals()
    | st.uuids()
    | st.complex_numbers()
    | st.fractions()
    | st.sampled_from([Colour.RED, Name.ANN, Mute(), Public(), Spoken(), len])
)
KEYS = st.text(max_size=3) | st.integers() | st.none() | st.tuples(st.integers(), st.booleans())


@given(
    st.recursive(
        LEAVES,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(KEYS, inner, max_size=3)
            | st.builds(Pair, inner, inner)
            | st.lists(inner, max_size=3).map(iter)
        ),
    )
    | st.sets(st.none() | st.integers() | st.floats() | st.text(st.characters()), max_size=4)
)
def test_any_value_becomes_json_that_every_encoder_takes(value: object) -> None:
    try:
        form = to_jsonable(value)
    except UnsendableError as error:
        assert "two keys have the same text" in str(error)  # noqa: PT017  # the one good reason
        return
    json.dumps(form, allow_nan=False, ensure_ascii=False).encode()
    assert to_jsonable(form) == form
