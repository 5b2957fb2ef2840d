"""Converts numpy, pandas, polars and pyarrow values to builtin types, without importing them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from fractions import Fraction
from functools import lru_cache
from math import isnan
from typing import Any

from tools.core.errors import UnsendableError

PACKAGES = frozenset({"numpy", "pandas", "polars", "pyarrow"})
TEXT = {"type": "string"}
TEXT_OR_NULL = {"type": ["string", "null"]}
ARRAY = {"type": "array"}
RECORDS = {"type": "array", "items": {"type": "object"}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "DataFrame": RECORDS,
    "ExtensionArray": ARRAY,
    "Index": ARRAY,
    "Interval": TEXT,
    "Period": TEXT,
    "Series": {"type": ["array", "object"]},
    "Table": RECORDS,
    "Timedelta": {"type": "string", "format": "duration"},
    "Timestamp": {"type": "string", "format": "date-time"},
    "bool": {"type": "boolean"},
    "bool_": {"type": "boolean"},
    "bytes_": {"type": "string", "contentEncoding": "base64"},
    "complexfloating": TEXT,
    "datetime64": TEXT_OR_NULL,
    "floating": {"type": ["number", "null"]},
    "integer": {"type": "integer"},
    "ndarray": ARRAY,
    "str_": TEXT,
    "timedelta64": TEXT_OR_NULL,
}
"""The JSON Schema of instances, by the name of their class or its nearest base."""
MISSING = frozenset({"MaskedConstant", "NAType", "NaTType"})
EXPORTS = ("to_dicts", "to_pylist", "to_list", "tolist")
"""Methods of columnar libraries that return builtin values, most specific first."""
NUMBERS = frozenset("biuf")
"""The numpy type kinds that JSON has."""


def is_foreign(kind: type) -> bool:
    """Returns whether a class belongs to one of these libraries or inherits from one of theirs."""
    return bool(_names(kind))


def schema_of(kind: type) -> dict[str, Any]:
    """Returns the JSON Schema of an instance's `json_form`; {} accepts anything."""
    return next((SCHEMAS[name] for name in _names(kind) if name in SCHEMAS), {})


def to_builtin(value: Any) -> Any:
    """Converts a value of these libraries to builtin types, keeping NaN and dates; others stay.

    An array becomes a list even without dimensions. A frame becomes a list of records that begin
    with a non-default index; a series with such an index becomes an object by label.
    """
    names = _names_of(value)
    if not names or isinstance(value, type):
        return value
    if not MISSING.isdisjoint(names):
        return None
    if "ndarray" in names:
        return _from_array(value)
    if "generic" in names:
        return _from_scalar(value)
    return _from_column(value, names)


def alternatives(value: Any) -> Iterator[Any]:
    """Yields other builtin forms of the value, the likelier ones first."""
    names = _names_of(value)
    if "Series" in names:
        yield _to_list(value)
        yield dict(enumerate(_to_list(value)))
    elif "ndarray" in names and not value.ndim:
        yield from to_builtin(value)
    elif "DataFrame" in names:
        yield {name: _to_list(value[name]) for name in value.columns}


def json_form(value: Any, to_jsonable: Callable[[Any], Any]) -> Any:
    """Converts a value of these libraries to JSON; NotImplemented if it has no form of its own.

    Numbers are converted in bulk by their own library, builtin values by `to_jsonable`.
    """

    def column(series: Any) -> Any:
        if _has_numbers(series):
            return _numbers(series.to_numpy())
        return to_jsonable(_to_list(series))

    names = _names_of(value)
    if "DataFrame" in names and hasattr(value, "iloc"):
        return _records(value, column, lambda name: next(iter(to_jsonable({name: None}))))
    if "Series" in names and _is_default(getattr(value, "index", None)):
        return column(value)
    if "ndarray" in names and _has_numbers(value) and not hasattr(value, "mask"):
        return _numbers(value)
    converted = to_builtin(value)
    return NotImplemented if converted is value else to_jsonable(converted)


@lru_cache(maxsize=1024)
def _names(kind: type) -> tuple[str, ...]:
    """Returns the names of those base classes that belong to these libraries."""
    roots = ((base.__name__, str(base.__module__).partition(".")[0]) for base in kind.__mro__)
    return tuple(name for name, root in roots if root in PACKAGES)


def _names_of(value: object) -> tuple[str, ...]:
    kind: Any = type(value)  # mypy takes type[object] for unhashable
    return _names(kind)


def _has_numbers(column: Any) -> bool:
    """Returns whether the values have a numpy number type, which cannot mark missing values."""
    dtype = getattr(column, "dtype", None)
    return "dtype" in _names_of(dtype) and getattr(dtype, "kind", "") in NUMBERS


def _to_list(column: Any) -> list[Any]:
    export = next(name for name in EXPORTS if hasattr(column, name))
    values = getattr(column, export)()
    if _has_numbers(column):
        return list(values)
    # In a non-numeric column, NaN marks a missing value.
    return [
        None if isinstance(value, float) and isnan(value) else to_builtin(value) for value in values
    ]


def _from_column(value: Any, names: tuple[str, ...]) -> Any:
    if "DataFrame" in names and hasattr(value, "iloc"):
        return _records(value, _to_list)
    if "Series" in names and not _is_default(getattr(value, "index", None)):
        return _labelled(value, _to_list)
    if any(hasattr(type(value), export) for export in EXPORTS):
        return _to_list(value)
    if "Timestamp" in names:
        return value.isoformat()
    if "Timedelta" in names:
        return value.to_pytimedelta()
    return str(value) if "Period" in names or "Interval" in names else value


NOT_A_TIME = -(2**63)
"""Numpy's representation of a missing duration."""
MICROSECONDS: dict[str, int | Fraction] = {
    "W": 604_800_000_000,
    "D": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
    "ns": Fraction(1, 10**3),
    "ps": Fraction(1, 10**6),
    "fs": Fraction(1, 10**9),
    "as": Fraction(1, 10**12),
}
"""The length of numpy's units; fractions of a microsecond are cut off."""
WIDEST_FLOAT = 8
"""Bytes of the widest float that has a builtin form."""


def _from_array(array: Any) -> list[Any]:
    """Converts an array to lists, keeping NaN; without dimensions it becomes one list.

    Dates become ISO 8601, structured items objects, and masked or missing items None.
    """
    array = _with_dimension(array)
    if array.dtype.names:
        return [_item(item) for item in array]
    if array.dtype.kind == "M":
        return [_moments(text) for text in array.astype(str).tolist()]
    if array.dtype.kind == "m":
        unit, count = sys.modules["numpy"].datetime_data(array.dtype)
        return [_duration(number, count, unit) for number in array.astype("int64").tolist()]
    if array.dtype.kind in "fc" and array.dtype.itemsize > WIDEST_FLOAT:
        array = array.astype(float if array.dtype.kind == "f" else complex)
    return list(array.tolist())


def _from_scalar(value: Any) -> Any:
    if value.dtype.names:
        return {name: _item(value[name]) for name in value.dtype.names}
    if value.dtype.kind in "SUV":
        return value.item()
    (item,) = _from_array(value.reshape(1))
    return item


def _item(value: Any) -> Any:
    if not hasattr(value, "dtype"):
        return value
    return _from_array(value) if value.ndim else _from_scalar(value)


def _numbers(array: Any) -> list[Any]:
    """Converts an array of numbers or booleans in bulk, keeping NaN and infinities."""
    array = _with_dimension(array)
    if array.dtype.kind == "f" and array.dtype.itemsize > WIDEST_FLOAT:
        array = array.astype(float)
    return list(array.tolist())


def _duration(number: list[Any] | int | None, count: int, unit: str) -> Any:
    """Returns a duration of `number` times `count` units, as ISO 8601 if too long for timedelta."""
    if isinstance(number, list):
        return [_duration(each, count, unit) for each in number]
    if number is None or number == NOT_A_TIME:
        return None
    units = number * count
    if unit not in MICROSECONDS:
        return (
            f"{'-' if units < 0 else ''}P{abs(units)}{unit}" if unit in {"Y", "M"} else str(units)
        )
    microseconds = int(units * MICROSECONDS[unit])
    try:
        return timedelta(microseconds=microseconds)
    except OverflowError:
        return f"{'-' if units < 0 else ''}PT{abs(microseconds) // 1_000_000}S"


def _moments(texts: list[Any] | str | None) -> Any:
    """Returns dates as ISO 8601, without the zeros added by the array's unit."""
    if isinstance(texts, list):
        return [_moments(text) for text in texts]
    if texts is None or texts == "NaT":
        return None
    return texts.rstrip("0").rstrip(".") if "." in texts else texts


def _with_dimension(array: Any) -> Any:
    return array if array.ndim else array.reshape(1)


Column = Callable[[Any], list[Any]]
"""Converts a series to a list."""


def _records(
    frame: Any, column: Column, label: Callable[[Any], Any] = lambda name: name
) -> list[dict[Any, Any]]:
    """Converts a frame to a list of objects, each beginning with a non-default index."""
    names = [label(name) for name in frame.columns]
    columns = [column(frame.iloc[:, place]) for place in range(len(names))]
    if not _is_default(frame.index):
        level_names = _level_names(frame.index, names)
        name = level_names if frame.index.nlevels > 1 else level_names[0]
        levels = frame.index.to_frame(index=False, name=name)
        names = [*map(label, levels.columns), *names]
        columns = [*(column(levels.iloc[:, at]) for at in range(levels.shape[1])), *columns]
    if len(set(names)) < len(names):
        raise UnsendableError("a DataFrame in which two columns have the same name")
    if not columns:
        return [{} for _ in range(len(frame))]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _labelled(series: Any, column: Column) -> Any:
    """Converts a series to an object by label, or to a list of pairs if labels repeat."""
    labels, values = series.index.to_list(), column(series)
    if series.index.is_unique:
        return dict(zip(labels, values, strict=True))
    pairs = zip(labels, values, strict=True)
    return [{"index": label, "value": value} for label, value in pairs]


def _is_default(index: Any) -> bool:
    if index is None:
        return True
    is_range = type(index).__name__ == "RangeIndex" and index.name is None
    return is_range and (index.start, index.step) == (0, 1)


def _level_names(index: Any, taken: list[Any]) -> list[Any]:
    """Returns names for the index's columns that do not collide with existing ones."""
    unnamed = ["index"] if index.nlevels == 1 else [f"level_{at}" for at in range(index.nlevels)]
    given = zip(index.names, unnamed, strict=True)
    names = [name if named is None else named for named, name in given]
    return [f"index_{name}" if name in taken else name for name in names]
