"""Maps types that pydantic cannot read to types that it can."""

from __future__ import annotations

import datetime as dt
import numbers
import typing
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, LiteralString, Union, get_args, get_origin
from zoneinfo import ZoneInfo

import typing_extensions
from pydantic import AfterValidator, WithJsonSchema
from typing_extensions import Buffer, is_typeddict

ALIASES: Any = tuple(
    {
        getattr(each, "TypeAliasType", typing_extensions.TypeAliasType)
        for each in (typing, typing_extensions)
    }
)
"""The class of `type Name = …` aliases, and its backport for Python 3.11."""
NUMBER: Any = int | float
EQUIVALENTS: Mapping[Any, Any] = {
    LiteralString: str,
    bytearray: Annotated[bytes, AfterValidator(bytearray)],
    dt.tzinfo: ZoneInfo,
    memoryview: Annotated[bytes, AfterValidator(memoryview)],
    numbers.Complex: NUMBER,
    numbers.Integral: int,
    numbers.Number: NUMBER,
    numbers.Real: NUMBER,
    typing.SupportsAbs: NUMBER,
    typing.SupportsComplex: NUMBER,
    typing.SupportsFloat: NUMBER,
    typing.SupportsIndex: int,
    typing.SupportsInt: NUMBER,
    typing.SupportsRound: NUMBER,
    Buffer: bytes,
}
BASES = (str, int, float, list, dict)
KNOWN = {"builtins", "collections", "enum", "pydantic", "pydantic_extra_types", "typing"}
"""Packages whose classes pydantic reads natively."""
TABLES: Mapping[str, Any] = {
    "DataFrame": list[dict[str, Any]] | dict[str, list[Any]],
    "Index": list[Any],
    "Series": list[Any],
    "Timedelta": dt.timedelta,
    "Timestamp": dt.datetime,
}
"""The pandas and polars classes, with the JSON-compatible type each is built from."""
SCALARS: Mapping[str, Any] = {"floating": float, "integer": int, "bool": bool, "str_": str}
"""The kinds of numpy scalars, with the type each is built from."""
ABSTRACT = {"floating", "generic", "inexact", "integer", "number", "signedinteger"}
"""Abstract numpy scalar types, which have no instances."""
ITEMS = {"b": "boolean", "f": "number", "i": "integer", "u": "integer", "U": "string"}
"""The JSON type of each kind of numpy array."""


def equivalent(annotation: Any) -> Any:
    """Returns a type that pydantic reads instead, or None if there is none or it is not needed."""
    annotation = _expanded(annotation)
    origin = get_origin(annotation) or annotation
    if origin in {Union, UnionType}:
        return _array_like(annotation)
    if origin in EQUIVALENTS:
        return EQUIVALENTS[origin]
    if not isinstance(origin, type):
        return None
    package = origin.__module__.partition(".")[0]
    if package == "numpy":
        return _of_numpy(annotation, origin)
    if package in {"pandas", "polars"} and origin.__name__ in TABLES:
        return Annotated[TABLES[origin.__name__], _made_by(origin)]
    return _of_base(origin) if package not in KNOWN else None


def _expanded(annotation: Any) -> Any:
    """Expands numpy's type aliases, which are `type` statements since numpy 2.5."""
    alias = get_origin(annotation) or annotation
    if not isinstance(alias, ALIASES) or not alias.__module__.startswith("numpy."):
        return annotation
    arguments = get_args(annotation)
    return _expanded(alias.__value__[arguments] if arguments else alias.__value__)


def _made_by(make: Callable[[Any], Any]) -> AfterValidator:
    """Builds a value with `make`, and reports what it rejects as a validation error."""

    def build(value: Any) -> Any:
        try:
            return make(value)
        except (OverflowError, TypeError) as error:
            raise ValueError(str(error)) from error

    return AfterValidator(build)


def _of_base(cls: Any) -> Any:
    """Returns the equivalent of a plain subclass of str, int, float, list or dict."""
    base = next((each for each in cls.__mro__ if each in BASES), None)
    is_read = is_dataclass(cls) or is_typeddict(cls) or hasattr(cls, "__get_pydantic_core_schema__")
    if base is None or is_read:
        return None
    written = getattr(cls, "__orig_bases__", ())
    full = next((each for each in written if get_origin(each) is base), base)
    return Annotated[full, _made_by(cls)]


def _array_like(annotation: Any) -> Any:
    """Returns the equivalent of numpy's `ArrayLike`: a number, or nested lists of numbers."""
    parts = [part for each in get_args(annotation) for part in _parts(each)]
    if all(getattr(get_origin(part), "__name__", "") != "_SupportsArray" for part in parts):
        return None
    return NUMBER | list[Any] | None if NoneType in parts else NUMBER | list[Any]


def _parts(annotation: Any) -> tuple[Any, ...]:
    expanded = _expanded(annotation)
    is_union = get_origin(expanded) in {Union, UnionType}
    return get_args(expanded) if is_union else (expanded,)


def _of_numpy(annotation: Any, cls: Any) -> Any:
    kinds = [each.__name__ for each in cls.__mro__]
    if "ndarray" in kinds:
        return _array(annotation)
    base = next((SCALARS[kind] for kind in kinds if kind in SCALARS), None)
    if base is None or cls.__name__ in ABSTRACT:
        return base
    return Annotated[base, _made_by(cls)]


def _array(annotation: Any) -> Any:
    """Returns the equivalent of an array: a list, nested for more than one dimension."""
    import numpy as np  # an array annotation means numpy is installed

    (scalar,) = get_args(get_args(annotation)[-1]) if get_args(annotation) else (None,)
    concrete = isinstance(scalar, type) and scalar.__name__ not in ABSTRACT
    dtype = np.dtype(scalar) if concrete else None
    kind = ITEMS.get(dtype.kind) if dtype else None
    items = {"anyOf": [{"type": kind}, {"type": "array"}]} if kind else {}
    return Annotated[
        list[Any],
        _made_by(lambda values: np.asarray(values, dtype=dtype)),
        WithJsonSchema({"type": "array", "items": items}),
    ]
