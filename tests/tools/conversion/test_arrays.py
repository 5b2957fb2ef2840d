"""Values of numpy and pandas, as results and where builtin ones are promised."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NotRequired

import jsonschema  # type: ignore[import-untyped]  # ships no types
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis.extra import numpy as arrays
from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict

from tools.conversion.callables.callables import NOTHING
from tools.conversion.results.arrays import is_foreign
from tools.conversion.results.jsonable import to_jsonable
from tools.conversion.results.output import Output
from tools.core.errors import ToolFailedError

LARGE = 2**53 + 1
"""An integer that a float cannot hold."""
NaN = float("nan")


class Row(TypedDict):
    name: str
    size: NotRequired[int | None]


@dataclass
class Stats:
    mean: float
    count: int
    values: list[float] = field(default_factory=list)


class Holder(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    frame: pd.DataFrame
    array: np.ndarray[Any, Any]
    anything: Any = None


FRAME = pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": [1.5, NaN]})
RECORDS = [{"a": 1, "b": "x", "c": 1.5}, {"a": 2, "b": None, "c": None}]
MOMENTS = pd.to_datetime(["2026-01-02T03:04:05.5", "NaT"])
LABELLED = pd.Series([1.5, NaN], index=["x", "y"])
TWICE = pd.Series([1, 2], index=["x", "x"])
TWO_LEVELS = pd.MultiIndex.from_tuples([("x", 1), ("y", 2)], names=["k", None])
NAMED = np.array([(1, "a"), (2, "b")], dtype=[("n", "i4"), ("s", "U1")])

FORMS: list[tuple[Any, Any]] = [
    (np.int64(LARGE), LARGE),
    (np.float32(1.5), 1.5),
    (np.float64(NaN), None),
    (np.longdouble(1.5), 1.5),
    (np.bool_(1), True),
    (np.complex64(1 + 2j), "1+2j"),
    (np.str_("a"), "a"),
    (np.bytes_(b"\xff"), "/w=="),
    (np.datetime64("2026-01-02"), "2026-01-02"),
    (np.datetime64("2026-01-02T03:04:05.120000000"), "2026-01-02T03:04:05.12"),
    (np.datetime64("NaT", "s"), None),
    (np.timedelta64(90, "m"), "PT1H30M"),
    (np.timedelta64("NaT", "s"), None),
    (np.timedelta64(5, "M"), "P5M"),
    (np.timedelta64(-(10**6), "Y"), "-P1000000Y"),
    (np.timedelta64(10**12, "D"), "PT86400000000000000S"),
    (np.timedelta64(1500, "ns"), "PT0.000001S"),
    (NAMED[0], {"n": 1, "s": "a"}),
    (np.ma.masked, None),
    (np.array(5.0), [5.0]),
    (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    (np.array([[1.5, NaN], [np.inf, 2]]), [[1.5, None], [None, 2.0]]),
    (np.array([1.5, NaN], dtype=np.longdouble), [1.5, None]),
    (np.array([True]), [True]),
    (np.array([1 + 2j]), ["1+2j"]),
    (np.array(["2026-01-02", "NaT"], dtype="M8[ns]"), ["2026-01-02T00:00:00", None]),
    (np.array([[90]], dtype="m8[s]"), [["PT1M30S"]]),
    (NAMED, [{"n": 1, "s": "a"}, {"n": 2, "s": "b"}]),
    (np.array([1, "a", None, {2}], dtype=object), [1, "a", None, [2]]),
    (np.ma.array([1, 2], mask=[False, True]), [1, None]),
    (np.ma.array([1.5, NaN], mask=[True, False]), [None, None]),
    (np.ma.array(["2026-01-02"], mask=[True], dtype="M8[D]"), [None]),
    (np.ma.array([90], mask=[True], dtype="m8[s]"), [None]),
    (np.array([], dtype=float), []),
    ({np.int64(1): np.arange(2)}, {"1": [0, 1]}),
    (FRAME, RECORDS),
    (pd.DataFrame({"a": [1]}, index=["r"]), [{"index": "r", "a": 1}]),
    (pd.DataFrame({"a": [1, 2]}, index=TWO_LEVELS).iloc[:1], [{"k": "x", "level_1": 1, "a": 1}]),
    (pd.DataFrame({"a": [1]}, index=pd.Index([7], name="a")), [{"index_a": 7, "a": 1}]),
    (pd.DataFrame({"a": [1, 2]}).tail(1), [{"index": 1, "a": 2}]),
    (pd.DataFrame({("a", "b"): [1]}), [{"a,b": 1}]),
    (pd.DataFrame({1: [1], 2: ["x"]}), [{"1": 1, "2": "x"}]),
    (pd.DataFrame({"d": MOMENTS}), [{"d": "2026-01-02T03:04:05.500000"}, {"d": None}]),
    (pd.DataFrame({"i": pd.array([LARGE, None])}), [{"i": LARGE}, {"i": None}]),
    (pd.DataFrame({"i": pd.Categorical(["u"])}), [{"i": "u"}]),
    (pd.DataFrame(), []),
    (pd.Series([1, 2]), [1, 2]),
    (LABELLED, {"x": 1.5, "y": None}),
    (TWICE, [{"index": "x", "value": 1}, {"index": "x", "value": 2}]),
    (pd.Series([1, 2], index=TWO_LEVELS), {"x,1": 1, "y,2": 2}),
    (pd.Index([1, 2]), [1, 2]),
    (pd.array([1, None]), [1, None]),
    (pd.Categorical(["a", None]), ["a", None]),
    (pd.Timestamp("2026-01-02T03:04:05.123456789"), "2026-01-02T03:04:05.123456789"),
    (pd.Timedelta("90m"), "PT1H30M"),
    (pd.NaT, None),
    (pd.NA, None),
    (pd.Period("2026-01"), "2026-01"),
    (pd.Interval(0, 1), "(0, 1]"),
    ([pd.NA, {"a": pd.NaT}], [None, {"a": None}]),
]


@pytest.mark.parametrize(("value", "form"), FORMS, ids=lambda each: type(each).__name__)
def test_a_value_has_a_form(value: object, form: object) -> None:
    assert to_jsonable(value) == form
    json.dumps(to_jsonable(value), allow_nan=False)


PROMISES: list[tuple[Any, Any, Any]] = [
    (np.ndarray, np.eye(2), [[1.0, 0.0], [0.0, 1.0]]),
    (np.ndarray, np.array(5.0), [5.0]),
    (npt.NDArray[np.float64], np.array([NaN]), [None]),
    (np.float64, np.float64(NaN), None),
    (np.int32, np.int32(1), 1),
    (np.bool_, np.bool_(1), True),
    (np.datetime64, np.datetime64("NaT", "s"), None),
    (np.float64 | None, None, None),
    (pd.DataFrame, FRAME, RECORDS),
    (pd.DataFrame | None, FRAME, RECORDS),
    (pd.Series, LABELLED, {"x": 1.5, "y": None}),
    (pd.Series | None, None, None),
    (pd.Series, TWICE, [{"index": "x", "value": 1}, {"index": "x", "value": 2}]),
    (pd.Index, pd.Index([1]), [1]),
    (pd.Timestamp, pd.Timestamp("2026-01-02"), "2026-01-02T00:00:00"),
    (pd.Timedelta, pd.Timedelta("90m"), "PT1H30M"),
    (list[np.int64], [np.int64(LARGE)], [LARGE]),
    (int, np.int64(LARGE), LARGE),
    (list[int], [np.int64(LARGE)], [LARGE]),
    (set[int], {np.int64(LARGE)}, [LARGE]),
    (list[list[float]], np.array([[1.5, NaN]]), [[1.5, None]]),
    (tuple[int, int], np.array([LARGE, 1]), [LARGE, 1]),
    (Sequence[int], np.array([1]), [1]),
    (float, np.array(1.5), 1.5),
    (float, np.float32(1.5), 1.5),
    (bool, np.bool_(1), True),
    (str, np.str_("a"), "a"),
    (timedelta, np.timedelta64(90, "m"), "PT1H30M"),
    (datetime, pd.Timestamp("2026-01-02"), "2026-01-02T00:00:00"),
    (list[datetime | None], pd.Series(MOMENTS), ["2026-01-02T03:04:05.500000", None]),
    (list[float], LABELLED, [1.5, None]),
    (list[str], pd.Index(["a"]), ["a"]),
    (list[dict], FRAME, RECORDS),  # type: ignore[type-arg]  # the shape
    (list[dict[str, Any]], FRAME, RECORDS),
    (list[Row], pd.DataFrame({"name": ["a"], "size": [LARGE]}), [{"name": "a", "size": LARGE}]),
]


@pytest.mark.parametrize(
    ("returns", "value", "form"), PROMISES, ids=lambda each: getattr(each, "__name__", "")
)
def test_a_return_type_is_met_by_the_value_that_stands_for_it(
    returns: object, value: object, form: object
) -> None:
    output = Output("tool", returns)
    result = output.result(value)
    assert result.structured == {"result": form}
    assert output.schema is not None
    assert output.schema["properties"]["result"]
    jsonschema.validate(result.structured, output.schema)


OBJECTS: list[tuple[Any, Any, dict[str, Any]]] = [
    (dict, LABELLED, {"x": 1.5, "y": None}),
    (dict, pd.Series([3, 4]), {"0": 3, "1": 4}),
    (dict[str, float], LABELLED, {"x": 1.5, "y": None}),
    (dict[str, list[Any]], FRAME, {"a": [1, 2], "b": ["x", None], "c": [1.5, None]}),
    (dict[str, int], {"a": np.int64(LARGE)}, {"a": LARGE}),
    (dict[int, float], {np.int64(1): np.float32(1.5)}, {"1": 1.5}),
    (dict[str, list[int]], {"a": np.array([LARGE])}, {"a": [LARGE]}),
    (dict[str, np.ndarray], {"a": np.arange(2)}, {"a": [0, 1]}),
    (dict, {"a": np.array([NaN]), "b": FRAME}, {"a": [None], "b": RECORDS}),
    (Row, {"name": "a", "size": np.int64(LARGE)}, {"name": "a", "size": LARGE}),
    (
        Stats,
        Stats(np.float32(1.5), np.int64(LARGE), np.array([1.5])),  # type: ignore[arg-type]  # the shape
        {"mean": 1.5, "count": LARGE, "values": [1.5]},
    ),
    (
        Holder,
        Holder(frame=FRAME, array=np.array([NaN]), anything={"s": LABELLED}),
        {"frame": RECORDS, "array": [None], "anything": {"s": {"x": 1.5, "y": None}}},
    ),
]


@pytest.mark.parametrize(
    ("returns", "value", "form"), OBJECTS, ids=lambda each: getattr(each, "__name__", "")
)
def test_an_object_holds_values_that_stand_for_its_own(
    returns: object, value: object, form: dict[str, Any]
) -> None:
    output = Output("tool", returns)
    assert output.result(value).structured == form
    assert output.schema is not None
    jsonschema.validate(form, output.schema)
    assert Output("tool", NOTHING).result(form).structured == form


@pytest.mark.parametrize(
    ("returns", "value"),
    [
        (np.ndarray, [1]),
        (pd.DataFrame, {"a": [1]}),
        (np.int64, 1),
        (list[int], np.array([1.5])),
        (int, np.array([1, 2])),
        (list[Row], FRAME),
    ],
)
def test_another_value_does_not_fit_the_return_type(returns: object, value: object) -> None:
    with pytest.raises(ToolFailedError, match="wrong type"):
        Output("tool", returns).result(value)


def test_columns_of_the_same_name_are_told() -> None:
    twins = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(ToolFailedError, match="returned a DataFrame in which two columns have the"):
        Output("tool", NOTHING).result(twins)


def test_a_class_that_inherits_from_one_of_theirs_counts_as_theirs() -> None:
    class Own(pd.DataFrame):
        pass

    assert is_foreign(Own)
    assert to_jsonable(Own({"a": [1]})) == [{"a": 1}]
    assert not is_foreign(Stats)


def test_no_library_is_loaded_for_functions_that_use_none() -> None:
    probe = (
        "import sys\n"
        "from tools.conversion.results.output import Output\n"
        "Output('tool', list[int]).result([1, {2: object()}][:1])\n"
        "print(sorted({'numpy', 'pandas', 'polars', 'PIL', 'matplotlib'} & set(sys.modules)))"
    )
    printed = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=True)
    assert printed.stdout.strip() == b"[]"


@given(
    arrays.arrays(
        arrays.scalar_dtypes() | arrays.array_dtypes(arrays.scalar_dtypes(), max_size=3),
        arrays.array_shapes(min_dims=0, max_dims=3, max_side=3),
    )
)
def test_any_array_becomes_json_of_its_shape(array: npt.NDArray[Any]) -> None:
    form = to_jsonable(array)
    json.dumps(form, allow_nan=False, ensure_ascii=False).encode()
    assert len(form) == (array.shape or (1,))[0]
    jsonschema.validate({"result": form}, Output("tool", np.ndarray).schema)
