"""Types that pydantic cannot read: of what JSON has, a value of each is made."""

from __future__ import annotations

import datetime as dt
import numbers
from typing import Any, Self, SupportsFloat
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.errors import InvalidArgumentsError


class Slug(str):  # the shape
    __slots__ = ()


class Beds(list[int]):  # the shape
    pass


class Even(int):
    def __new__(cls, value: int) -> Self:
        if value % 2:
            raise ValueError("it is odd")
        return super().__new__(cls, value)


NUMBER = {"anyOf": [{"type": "integer"}, {"type": "number"}]}
NUMBERS = {"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "array"}]}}
EQUIVALENTS: dict[str, tuple[Any, dict[str, Any], Any, Any, Any, str]] = {
    "str": (Slug, {"type": "string"}, "a", Slug("a"), 1, "send a string"),
    "list": (
        Beds,
        {"type": "array", "items": {"type": "integer"}},
        [1],
        Beds([1]),
        ["x"],
        "an integer",
    ),
    "int with a check": (Even, {"type": "integer"}, 2, Even(2), 3, "it is odd"),
    "real": (numbers.Real, NUMBER, 1.5, 1.5, "x", "a number"),
    "supports float": (SupportsFloat, NUMBER, 2, 2, "x", "a number"),
    "zone": (
        dt.tzinfo,
        {"type": "string", "format": "zoneinfo"},
        "UTC",
        ZoneInfo("UTC"),
        "no",
        "'no'",
    ),
    "int8": (np.int8, {"type": "integer"}, 5, np.int8(5), 300, "out of bounds"),
    "any floating": (np.floating, {"type": "number"}, 5, 5.0, "x", "a number"),
    "floats": (npt.NDArray[np.float32], NUMBERS, [[1], [2]], "float32 (2, 1)", ["a"], "convert"),
    "floats of one length": (
        npt.NDArray[np.float64],
        NUMBERS,
        [1],
        "float64 (1,)",
        [1, [2]],
        "sequence",
    ),
    "any array": (np.ndarray, {"type": "array", "items": {}}, ["a"], "<U1 (1,)", "a", "a list"),
    "array like": (
        npt.ArrayLike,
        {"anyOf": [{"type": "integer"}, {"type": "number"}, {"type": "array", "items": {}}]},
        [[1]],
        [[1]],
        {},
        "a list",
    ),
    "frame": (
        pd.DataFrame,
        {
            "anyOf": [
                {"type": "array", "items": {"type": "object"}},
                {"type": "object", "additionalProperties": {"type": "array", "items": {}}},
            ]
        },
        {"a": [1, 2]},
        "(2, 1)",
        5,
        "an object",
    ),
    "timestamp": (
        pd.Timestamp,
        {"type": "string", "format": "date-time"},
        "2026-01-01T00:00:00",
        pd.Timestamp("2026-01-01"),
        "soon",
        "a date and time",
    ),
}


@pytest.mark.parametrize("case", EQUIVALENTS.values(), ids=EQUIVALENTS)
def test_a_value_is_made_of_what_json_has(case: Any) -> None:
    annotation, schema, raw, expected, wrong, complaint = case

    def take(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # annotated below
        return x

    take.__annotations__ = {"x": annotation}
    spec = FunctionToMCP.convert(take)
    assert spec.input_schema["properties"]["x"] == schema
    value = spec.validate({"x": raw})["x"]
    if isinstance(value, np.ndarray):
        assert f"{value.dtype} {value.shape}" == expected
    elif isinstance(value, pd.DataFrame):
        assert str(value.shape) == expected
    else:
        assert (type(value), value) == (type(expected), expected)
    with pytest.raises(InvalidArgumentsError, match=complaint):
        spec.validate({"x": wrong})
