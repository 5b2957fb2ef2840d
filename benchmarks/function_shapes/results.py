"""Results: what a function returns, as clients and models get it."""

import datetime as dt
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

import typing_extensions
from pydantic import BaseModel, Field, computed_field

from benchmarks.function_shapes.checks import answers, gets, outputs
from benchmarks.function_shapes.shape import Theme
from benchmarks.function_shapes.subjects import Colour

Function = Callable[..., Any]

BERN = {"name": "Bern", "people": 0}

RESULTS = Theme("results")


class Town(BaseModel):
    """A town."""

    name: str
    people: int = 0


class Capital(Town):
    """A town of towns."""

    land: str


class Tree(BaseModel):
    """A node and what hangs on it."""

    label: str
    children: "list[Tree]" = Field(default_factory=list)


class Bill(BaseModel):
    """Has a field by another name, and one that is computed."""

    net: int = Field(alias="netAmount")

    @computed_field  # type: ignore[prop-decorator]  # mypy does not support it on a property
    @property
    def gross(self) -> int:
        """With taxes."""
        return self.net * 2


@dataclass
class Point:
    """A place in the plane."""

    x: int
    day: dt.date = field(default_factory=lambda: dt.date(2026, 1, 1))


class Hit(typing.TypedDict):
    """As the standard library has it."""

    text: str
    score: typing.NotRequired[float]


class Wide(typing_extensions.TypedDict):
    """As typing_extensions has it."""

    text: str


class Pair(NamedTuple):
    """Two parts."""

    left: int
    right: str


@RESULTS.shape("a str", outputs("result"), gets({}, 'a "quoted" → line\n'))
def text() -> str:
    return 'a "quoted" → line\n'


@RESULTS.shape("an int, 31 digits long", outputs("result"), gets({}, 10**30 + 1))
def big_number() -> int:
    return 10**30 + 1


@RESULTS.shape("a model", outputs("name", "people"), gets({}, BERN))
def model() -> Town:
    return Town(name="Bern")


@RESULTS.shape(
    "a recursive model",
    gets({}, {"label": "a", "children": [{"label": "b", "children": []}]}),
    outputs("label", "children"),
)
def recursive_model() -> Tree:
    return Tree(label="a", children=[Tree(label="b")])


@RESULTS.shape(
    "a model with an alias and a computed field",
    outputs("gross"),
    gets({}, {"netAmount": 2, "gross": 4}, {"net": 2, "gross": 4}),
)
def computed() -> Bill:
    return Bill(netAmount=2)


@RESULTS.shape("a dataclass", outputs("x", "day"), gets({}, {"x": 1, "day": "2026-01-01"}))
def data_class() -> Point:
    return Point(1)


@RESULTS.shape("a typing.TypedDict", outputs("text", "score"), gets({}, {"text": "a"}))
def typed_dict() -> Hit:
    return {"text": "a"}


@RESULTS.shape("a typing_extensions.TypedDict", outputs("text"), gets({}, {"text": "a"}))
def typed_dict_extension() -> Wide:
    return {"text": "a"}


@RESULTS.shape("a NamedTuple", gets({}, [1, "b"], {"left": 1, "right": "b"}))
def named_tuple() -> Pair:
    return Pair(1, "b")


@RESULTS.shape(
    "an optional model",
    answers(lambda value: value == BERN, {"known": True}),
    answers(lambda value: value in (None, {}, [], ""), {"known": False}),
)
def optional_model(known: bool) -> Town | None:
    return Town(name="Bern") if known else None


@RESULTS.shape(
    "a union of models", gets({"town": True}, BERN), gets({"town": False}, {"text": "a"})
)
def union(town: bool) -> Town | Wide:
    return Town(name="Bern") if town else {"text": "a"}


@RESULTS.shape("a list of models", outputs("result"), gets({}, [BERN, BERN]))
def model_list() -> list[Town]:
    return [Town(name="Bern"), Town(name="Bern")]


@RESULTS.shape("an empty list", outputs("result"), gets({}, []))
def empty_list() -> list[Town]:
    return []


@RESULTS.shape("a dict of models", gets({}, {"a": BERN}))
def model_dict() -> dict[str, Town]:
    return {"a": Town(name="Bern")}


@RESULTS.shape("a list of typing.TypedDict", gets({}, [{"text": "a"}]))
def typed_dict_list() -> list[Hit]:
    return [{"text": "a"}]


@RESULTS.shape("None", answers(lambda value: value in (None, [], "", "null", {})))
def nothing() -> None:
    pass


@RESULTS.shape("sets and tuples", gets({}, {"a": [1], "b": [2], "c": [3, "x"]}))
def sets() -> dict[str, Any]:
    return {"a": {1}, "b": frozenset({2}), "c": (3, "x")}


@RESULTS.shape("a set", outputs("result"), gets({}, [1]))
def one_set() -> set[int]:
    return {1}


@RESULTS.shape("a date", outputs("result"), gets({}, "2026-03-31"))
def date() -> dt.date:
    return dt.date(2026, 3, 31)


@RESULTS.shape("an Enum", outputs("result"), gets({}, "#f00"))
def enumeration() -> Colour:
    return Colour.RED


@RESULTS.shape("None for an optional int", gets({}, None), outputs("result"))
def none_for_int() -> int | None:
    return None


@RESULTS.shape("int or str", gets({"number": True}, 1), gets({"number": False}, "a"))
def int_or_str(number: bool) -> int | str:
    return 1 if number else "a"


@RESULTS.shape(
    "a subclass of the promised model", answers(lambda value: {**value, **BERN} == value)
)
def subclass() -> Town:
    return Capital(name="Bern", land="CH")


@RESULTS.shape("a Decimal", gets({}, "0.10", 0.1), outputs("result"))
def one_decimal() -> Decimal:
    return Decimal("0.10")


@RESULTS.shape("a tuple", gets({}, [1, "x"]), outputs("result"))
def one_tuple() -> tuple[int, str]:
    return 1, "x"


@RESULTS.shape("a dict whose promised keys are numbers", gets({}, {"1": "a"}))
def number_keys() -> dict[int, str]:
    return {1: "a"}
