"""Rewrites annotations into types that pydantic can build from JSON."""

from __future__ import annotations

import datetime as dt
import enum
import numbers
import typing
from collections import abc
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Literal, LiteralString, NotRequired, Union, get_args, get_origin
from zoneinfo import ZoneInfo

import anyio.lowlevel
import typing_extensions
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic_core import PydanticKnownError
from typing_extensions import Buffer, is_typeddict

from tools.conversion.callables.annotations import (
    label,
    make_readable,
    python_signature,
    resolve_class,
    with_arguments,
)
from tools.core.errors import ToolDefinitionError
from tools.core.spec import Alias

LISTS = {abc.Iterable, abc.Collection, abc.Container, abc.Reversible}
"""Types that pydantic would read lazily or not at all; a list satisfies each of them."""
JSON_SCALARS = (str, int, float, bool, type(None))
JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", bytes: "string"}


def input_type(annotation: Any) -> Any:
    """Returns a type in a form that pydantic can build from JSON, nested types included.

    Texts in `Annotated` become descriptions, and iterables become lists. An enumeration member is
    given by its value, or by its name where values are not plain; flags are given as sums.
    """
    if type(annotation) is type and annotation.__module__ == "builtins":
        return equivalent(annotation) or annotation
    make_readable(annotation)
    return _received(annotation)


def field_of(annotation: Any) -> FieldInfo | None:
    """Returns the `Field` in an `Annotated`, if any."""
    if get_origin(annotation) is not Annotated:
        return None
    found = [each for each in get_args(annotation)[1:] if isinstance(each, FieldInfo)]
    if len(found) > 1:
        return FieldInfo.from_annotation(annotation)
    return found[0] if found else None


def aliases_of(annotation: Any) -> tuple[Alias, ...]:
    """Returns each `Alias` in `Annotated`."""
    if get_origin(annotation) is not Annotated:
        return ()
    return tuple(each for each in get_args(annotation)[1:] if isinstance(each, Alias))


def text_of(annotation: Any) -> str:
    """Returns the text of `Annotated[T, "text"]` or `Annotated[T, Doc("text")]`, or ""."""
    return _first_text(get_args(annotation)[1:]) if get_origin(annotation) is Annotated else ""


def field_texts(cls: Any) -> dict[str, str]:
    """Returns the texts that `Annotated` gives a class's fields; pydantic reads only `Field`."""
    fields = getattr(cls, "__pydantic_fields__", None)
    if fields is not None:
        metadata = {name: field.metadata for name, field in fields.items()}
    else:
        try:
            hints = resolve_class(cls)
        except ToolDefinitionError:  # pydantic knew the names when the class was made
            return {}
        metadata = {
            name: list(get_args(hint)[1:])
            for name, hint in hints.items()
            if get_origin(hint) is Annotated
        }
    found = {name: _first_text(each) for name, each in metadata.items()}
    return {name: text for name, text in found.items() if text}


def _received(annotation: Any) -> Any:  # noqa: PLR0911  # a type of any form, one line each
    if isinstance(annotation, ALIASES):
        with suppress(NameError):  # pydantic reports which one
            if get_origin(annotation.__value__) is Annotated:
                annotation = annotation.__value__
    origin = get_origin(annotation) or annotation
    if origin is Annotated:
        return _described(with_arguments(annotation, _received))
    if origin is Literal:
        return _literal(annotation)
    if isinstance(origin, enum.EnumType):
        return _enumeration(origin)
    if origin in LISTS:
        return _list_of(annotation)
    if origin in {abc.Generator, abc.Iterator}:
        return Annotated[_list_of(annotation), AfterValidator(_each)]
    if origin in {abc.AsyncGenerator, abc.AsyncIterable, abc.AsyncIterator}:
        return Annotated[_list_of(annotation), AfterValidator(_each_async)]
    if hasattr(origin, "__attrs_attrs__"):
        return _attrs(origin)
    return equivalent(annotation) or with_arguments(annotation, _received)


def _attrs(cls: Any) -> Any:
    """Reads an attrs class, unknown to pydantic, as an object of its `__init__` arguments."""
    hints = resolve_class(cls)
    names = {each.alias: each.name for each in cls.__attrs_attrs__}
    fields = {}
    for alias, parameter in python_signature(cls).parameters.items():
        try:
            hint = _received(hints.get(names.get(alias, alias), Any))
        except RecursionError as error:
            raise ToolDefinitionError(
                f"{label(cls)} of attrs refers to itself; make it a dataclass or a model."
            ) from error
        fields[alias] = hint if parameter.default is parameter.empty else NotRequired[hint]
    make: Any = typing_extensions.TypedDict
    return Annotated[make(cls.__name__, fields), AfterValidator(lambda values: cls(**values))]


def _list_of(annotation: Any) -> Any:
    items = get_args(annotation)[:1]  # a generator also has a send type and a return type
    return GenericAlias(list, tuple(map(_received, items)) or (Any,))


def _each(values: Iterable[Any]) -> Iterator[Any]:
    yield from values


async def _each_async(values: Iterable[Any]) -> AsyncIterator[Any]:
    for value in values:
        await anyio.lowlevel.checkpoint()
        yield value


def _described(annotation: Any) -> Any:
    """Merges everything that `Annotated` says about a value into one `Field`.

    Texts and `Doc` become its description. Settings of the parameter, such as alias and default,
    are left out; pydantic would warn about them.
    """
    inner, *metadata = get_args(annotation)
    field = field_of(annotation) or FieldInfo()
    merged = Field(
        description=field.description or _first_text(metadata) or None,
        examples=field.examples,
        json_schema_extra=field.json_schema_extra,
        discriminator=field.discriminator,
    )
    merged.metadata = field.metadata
    rest = [each for each in metadata if not isinstance(each, FieldInfo) and _text(each) is None]
    return Annotated[(inner, *rest, merged)]


def _first_text(metadata: Iterable[object]) -> str:
    return next(filter(None, map(_text, metadata)), "")


def _text(metadata: object) -> str | None:
    if isinstance(metadata, str):
        return metadata
    text = getattr(metadata, "documentation", None) or getattr(metadata, "help", None)
    return text if isinstance(text, str) else None


def _enumeration(cls: Any) -> Any:
    if issubclass(cls, enum.Flag):
        return _flag(cls)
    if all(isinstance(member.value, JSON_SCALARS) for member in cls):
        return cls
    return _choice(cls.__members__.items())


def _flag(cls: Any) -> Any:
    numbers = {name: member.value for name, member in cls.__members__.items()}
    total = 0
    for number in numbers.values():
        total |= number
    sums = ", ".join(f"{number} ({name})" for name, number in numbers.items())
    return Annotated[
        int,
        Field(ge=0, le=total, description=f"A sum of {sums}."),
        AfterValidator(lambda number: cls(number)),  # noqa: PLW0108  # pydantic reads signatures
    ]


def _literal(annotation: Any) -> Any:
    """Returns a Literal that distinguishes 1 from true and matches enum members by value.

    Pydantic confuses the former, and accepts only the member itself for the latter.
    """
    members = get_args(annotation)
    if all(member is None or type(member) is str for member in members):
        return annotation
    values = [each.value if isinstance(each, enum.Enum) else each for each in members]
    names = [each.decode(errors="replace") if isinstance(each, bytes) else each for each in values]
    return _choice(zip(names, members, strict=True))


def _choice(pairs: Iterable[tuple[Any, Any]]) -> Any:
    """Returns a choice type whose values JSON represents by the paired names."""
    members = {(isinstance(name, bool), name): member for name, member in pairs}
    names = [name for _, name in members]

    def member(value: Any) -> Any:
        try:
            return members[isinstance(value, bool), value]
        except (KeyError, TypeError):
            expected = ", ".join(map(repr, names))
            raise PydanticKnownError("literal_error", {"expected": expected}) from None

    kinds = {JSON_TYPES.get(type(name)) for name in names if name is not None}
    kind = {"type": kinds.pop()} if len(kinds) == 1 and None not in {*kinds, *names} else {}
    return Annotated[Any, BeforeValidator(member), WithJsonSchema({"enum": names, **kind})]


ALIASES: Any = (
    getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType),
    typing_extensions.TypeAliasType,
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
    expanded = list(map(_expanded, get_args(annotation)))
    parts = [
        part
        for each in expanded
        for part in (get_args(each) if get_origin(each) in {Union, UnionType} else (each,))
    ]
    if all(getattr(get_origin(part), "__name__", "") != "_SupportsArray" for part in parts):
        return None
    return NUMBER | list[Any] | None if NoneType in parts else NUMBER | list[Any]


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
