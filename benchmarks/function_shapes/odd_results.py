"""Results that JSON cannot say, or that are not what was promised."""

import datetime as dt
import math
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from benchmarks.function_shapes.checks import answers, gets, outputs, refuses
from benchmarks.function_shapes.results import BERN, Point, Town, Wide
from benchmarks.function_shapes.shape import Theme

Function = Callable[..., Any]


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
