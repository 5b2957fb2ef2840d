"""Results: what a function returns, as clients get it, and what JSON cannot say."""

import datetime as dt
import math
import typing
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import typing_extensions
from pydantic import BaseModel, Field, computed_field

from benchmarks.function_shapes.checks import answers, gets, outputs, refuses
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


ODD_RESULTS = Theme("results")


class Reading(BaseModel):
    """What an instrument said."""

    degrees: float


class Opaque:
    """Pydantic knows nothing of it."""

    def __init__(self) -> None:
        self.name = "opaque"


def _no_number(value: object) -> bool:
    return value is None or str(value).lower().lstrip("+-") in {"nan", "inf", "infinity"}


@ODD_RESULTS.shape("a bare list", gets({}, [1, "a", {"b": None}]))
def bare_list() -> list:  # type: ignore[type-arg]  # the shape
    return [1, "a", {"b": None}]


@ODD_RESULTS.shape("a bare dict", gets({}, {"a": [1], "day": "2026-01-01"}))
def bare_dict() -> dict:  # type: ignore[type-arg]  # the shape
    return {"a": [1], "day": dt.date(2026, 1, 1)}


@ODD_RESULTS.shape("a dict whose keys are no texts", gets({}, {"1": "a", "2026-01-01": "b"}))
def odd_keys() -> dict:  # type: ignore[type-arg]  # the shape
    return {1: "a", dt.date(2026, 1, 1): "b"}


@ODD_RESULTS.shape("a dict called result", gets({}, {"result": 1, "more": 2}))
def called_result() -> dict[str, int]:
    return {"result": 1, "more": 2}


@ODD_RESULTS.shape(
    "datetime, time, timedelta, UUID, Path and Decimal without an annotation",
    answers(
        lambda value: (
            value["values"][0] in {"2026-03-31T12:00:00Z", "2026-03-31T12:00:00+00:00"}
            and value["values"][1:2] == ["12:30:00"]
            and value["values"][3:5] == ["3fa85f64-5717-4562-b3fc-2c963f66afa6", "a/b.txt"]
            and float(value["values"][5]) == 0.1  # noqa: PLR2004  # what it returns
        )
    ),
)
def odd_scalars():  # type: ignore[no-untyped-def]  # the shape
    return {
        "values": [
            dt.datetime(2026, 3, 31, 12, tzinfo=dt.UTC),
            dt.time(12, 30),
            dt.timedelta(hours=1.5),
            uuid.UUID("3fa85f64-5717-4562-b3fc-2c963f66afa6"),
            Path("a/b.txt"),
            Decimal("0.10"),
        ]
    }


@ODD_RESULTS.shape(
    "NaN and infinity",
    # JSON has neither: null, or a text that names it.
    answers(lambda value: value[0] == 1.5 and all(_no_number(each) for each in value[1:])),  # noqa: PLR2004  # what it returns
)
def not_a_number() -> list[float]:
    return [1.5, math.nan, math.inf]


@ODD_RESULTS.shape("NaN alone", answers(_no_number))
def nan_alone() -> float:
    return math.nan


@ODD_RESULTS.shape("bytes that are UTF-8", gets({}, "hi", "aGk="))
def utf8_bytes() -> bytes:
    return b"hi"


@ODD_RESULTS.shape("bytes that are not UTF-8", gets({}, "//4A+w==", "__4A-w=="))
def other_bytes() -> bytes:
    return b"\xff\xfe\x00\xfb"


@ODD_RESULTS.shape(
    "bytes in a dict", answers(lambda value: value["data"] in {"//4A+w==", "__4A-w=="})
)
def bytes_in_dict() -> dict[str, Any]:
    return {"data": b"\xff\xfe\x00\xfb"}


@ODD_RESULTS.shape(
    "half of a surrogate pair", answers(lambda value: value[:1] + value[-1:] == "ab")
)
def surrogate() -> str:
    return "a\ud800b"


@ODD_RESULTS.shape("an opaque object", answers(lambda _value: True))
def opaque() -> Opaque:
    return Opaque()


@ODD_RESULTS.shape("an opaque object in a dict", answers(lambda value: value["size"] == 1))
def opaque_in_dict() -> dict[str, Any]:
    return {"size": 1, "owner": Opaque()}


@ODD_RESULTS.shape("a value that contains itself", refuses({}))
def circular() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@ODD_RESULTS.shape("a result without an annotation", gets({}, {"a": 1}))
def unannotated():  # type: ignore[no-untyped-def]  # the shape
    return {"a": 1}


@ODD_RESULTS.shape("a wrong type", refuses({}, "return|result|output"))
def wrong_type() -> int:
    return "many"  # type: ignore[return-value]  # the shape


@ODD_RESULTS.shape("a model with a wrong field", refuses({}, "return|result|output"))
def wrong_field() -> Wide:
    return {"score": 1.0}  # type: ignore[typeddict-item]  # the shape


@ODD_RESULTS.shape("a dict for a promised model", gets({}, BERN, {"name": "Bern"}))
def dict_for_model() -> Town:
    return {"name": "Bern"}  # type: ignore[return-value]  # the shape


@ODD_RESULTS.shape("a text that looks like JSON", gets({}, "[1, 2]"), outputs("result"))
def json_text() -> str:
    return "[1, 2]"


@ODD_RESULTS.shape("NaN in a model", answers(lambda value: _no_number(value["degrees"])))
def nan_in_model() -> Reading:
    return Reading(degrees=math.nan)


@ODD_RESULTS.shape(
    "dataclasses and models in a bare dict",
    gets({}, {"a": [{"x": 1, "day": "2026-01-01"}], "b": BERN}),
)
def models_in_bare_dict() -> dict:  # type: ignore[type-arg]  # the shape
    return {"a": [Point(1)], "b": Town(name="Bern")}


@ODD_RESULTS.shape("Any", gets({}, [1, {"a": None}]))
def any_result() -> Any:  # noqa: ANN401  # the shape
    return [1, {"a": None}]
