"""Values of numpy, pandas, polars and their like, recognised without importing any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import isnan
from typing import Any

from tools.conversion.results.arrays import from_array, from_scalar, numbers
from tools.conversion.results.frames import is_default, labelled, records

__all__ = ["alternatives", "is_foreign", "json_form", "native", "schema_of"]

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
"""What instances become, by the name of their class or of the nearest one above it."""
MISSING = frozenset({"MaskedConstant", "NAType", "NaTType"})
EXPORTS = ("to_dicts", "to_pylist", "to_list", "tolist")
"""How columnar libraries call what gives builtin values, the most telling name first."""
NUMBERS = frozenset("biuf")
"""Kinds of numpy's types that JSON has."""


def is_foreign(kind: type) -> bool:
    """Whether a class is one of these libraries', or inherits from one."""
    return bool(_names(kind))


def schema_of(kind: type) -> dict[str, Any]:
    """JSON Schema of what `json_form` makes of an instance; empty where it can be anything."""
    return next((SCHEMAS[name] for name in _names(kind) if name in SCHEMAS), {})


def native(value: Any) -> Any:
    """A foreign value in builtin types, with NaN and dates kept; any other value as it is.

    An array is a list even if it has no dimension. A frame is a list of records, in which an index
    other than the default one comes first; a series with such an index is an object by label.

    Raises:
        UnsendableError: If two columns have the same name.
    """
    names = _names_of(value)
    if not names or isinstance(value, type):
        return value
    if not MISSING.isdisjoint(names):
        return None
    if "ndarray" in names:
        return from_array(value)
    if "generic" in names:
        return from_scalar(value)
    return _from_column(value, names)


def alternatives(value: Any) -> Iterator[Any]:
    """Other builtin forms in which a foreign value may be meant, the likelier first."""
    names = _names_of(value)
    if "Series" in names:
        yield _listed(value)
        yield dict(enumerate(_listed(value)))
    elif "ndarray" in names and not value.ndim:
        yield from native(value)
    elif "DataFrame" in names:
        yield {name: _listed(value[name]) for name in value.columns}


def json_form(value: Any, plain: Callable[[Any], Any]) -> Any:
    """A foreign value as JSON, or NotImplemented where it has no form of its own.

    Numbers are converted by their own library, all at once.

    Args:
        value: The value.
        plain: Makes JSON of a builtin value.

    Raises:
        UnsendableError: If two columns have the same name.
    """

    def column(series: Any) -> Any:
        return numbers(series.to_numpy()) if _has_numbers(series) else plain(_listed(series))

    names = _names_of(value)
    if "DataFrame" in names and hasattr(value, "iloc"):
        return records(value, column, lambda name: next(iter(plain({name: None}))))
    if "Series" in names and is_default(getattr(value, "index", None)):
        return column(value)
    if "ndarray" in names and _has_numbers(value) and not hasattr(value, "mask"):
        return numbers(value)
    converted = native(value)
    return NotImplemented if converted is value else plain(converted)


@lru_cache(maxsize=1024)
def _names(kind: type) -> tuple[str, ...]:
    """The names of the classes that these libraries made among a class and those above it."""
    roots = ((base.__name__, str(base.__module__).partition(".")[0]) for base in kind.__mro__)
    return tuple(name for name, root in roots if root in PACKAGES)


def _names_of(value: object) -> tuple[str, ...]:
    kind: Any = type(value)  # mypy takes type[object] for unhashable
    return _names(kind)


def _has_numbers(column: Any) -> bool:
    """Whether its values have one of numpy's number types, which have no mark for a missing one."""
    dtype = getattr(column, "dtype", None)
    return "dtype" in _names_of(dtype) and getattr(dtype, "kind", "") in NUMBERS


def _listed(column: Any) -> list[Any]:
    export = next(name for name in EXPORTS if hasattr(column, name))
    values = getattr(column, export)()
    if _has_numbers(column):
        return list(values)
    # Where a type is no number's, NaN is a value that is missing.
    return [
        None if isinstance(value, float) and isnan(value) else native(value) for value in values
    ]


def _from_column(value: Any, names: tuple[str, ...]) -> Any:
    if "DataFrame" in names and hasattr(value, "iloc"):
        return records(value, _listed)
    if "Series" in names and not is_default(getattr(value, "index", None)):
        return labelled(value, _listed)
    if any(hasattr(type(value), export) for export in EXPORTS):
        return _listed(value)
    return _from_moment(value, names)


def _from_moment(value: Any, names: tuple[str, ...]) -> Any:
    if "Timestamp" in names:
        return value.isoformat()
    if "Timedelta" in names:
        return value.to_pytimedelta()
    return str(value) if "Period" in names or "Interval" in names else value
