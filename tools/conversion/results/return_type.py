"""Determines the type that callers get from a return type, and its JSON Schema."""

from __future__ import annotations

import re
import typing
from collections import abc
from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import fields
from enum import Flag
from io import BytesIO, IOBase, StringIO
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import typing_extensions
from pydantic import ConfigDict, GetCoreSchemaHandler, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticSerializationError, core_schema

from tools.conversion.callables.annotations import bare, is_library, with_arguments
from tools.conversion.callables.callables import NOTHING
from tools.conversion.results.arrays import is_foreign, schema_of
from tools.conversion.results.attachments import NOTE, is_attachment, protocol_result
from tools.conversion.results.jsonable import is_mute, to_jsonable
from tools.conversion.schema_generator import SchemaGenerator, simple_schema
from tools.core.errors import UnsendableError
from tools.core.result import ToolResult

UNTYPED = (
    NOTHING,
    Any,
    object,
    ToolResult,
    typing.NoReturn,
    typing.Never,
    typing_extensions.NoReturn,
    typing_extensions.Never,
)
"""Return types that declare nothing about the structured result."""
ASIDE = {
    typing.Self: Any,
    typing.TypeGuard: bool,
    typing_extensions.Self: Any,
    typing_extensions.TypeGuard: bool,
    typing_extensions.TypeIs: bool,
}
"""Types for type checkers, with their runtime equivalents."""


def is_untyped(returns: Any) -> bool:
    """Returns whether a return type declares nothing about the structured result."""
    return any(returns is untyped for untyped in UNTYPED)


def result_type(annotation: Any) -> Any:
    """Returns the type of the value that a caller gets.

    An MCP result, or a union with one, may be anything unless `Annotated` gives the type of its
    structured content. An awaitable gives its result, and an iterator a list of its items. A
    generator with a return value gives an object of `items` and `returned`. An open file, or an MCP
    result inside another type, raises an UnsendableError.
    """
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    passed_on = _passed_on(annotation, origin, arguments)
    if passed_on is not NOTHING:
        return passed_on
    if isinstance(origin, type):
        if getattr(origin, "_is_protocol", False):
            return Any  # any class with its members has that type
        if issubclass(origin, IOBase | typing.IO) and not issubclass(origin, BytesIO | StringIO):
            raise UnsendableError("an open file, which cannot be sent; return what is in it")
        if _is_awaitable(origin):
            return result_type(arguments[-1]) if arguments else Any
        if _is_stream(origin):
            items = list[result_type(arguments[0])] if arguments else list  # type: ignore[misc]  # a type of any form
            return _with_returned(items, arguments[2]) if has_return_value(annotation) else items
    else:
        for kind, meaning in ASIDE.items():
            if origin is kind:
                return meaning
    return with_arguments(annotation, result_type)


def _passed_on(annotation: Any, origin: Any, arguments: tuple[Any, ...]) -> Any:
    """Returns the structured content's type of an MCP result; NOTHING for any other type."""
    own = protocol_result(bare(annotation))
    held = list(filter(None, map(protocol_result, map(bare, arguments))))
    if own == "InputRequiredResult" or "InputRequiredResult" in held:
        raise UnsendableError(
            "an InputRequiredResult, which is not a result; use RequestContext.ask"
        )
    if own:
        metadata = arguments[1:] if origin is Annotated else ()
        if not metadata or not (isinstance(metadata[0], type) or get_origin(metadata[0])):
            return Any
        return metadata[0] if len(metadata) == 1 else Annotated[metadata]
    if held and origin in {Union, UnionType}:
        return Any
    if held and not (isinstance(origin, type) and _is_awaitable(origin)):
        raise UnsendableError(f"a {held[0]} inside another value; return it by itself")
    return NOTHING


def has_return_value(annotation: Any) -> bool:
    """Returns whether it is a generator that also declares a return value."""
    annotation = bare(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(origin, type) and _is_awaitable(origin):
        return has_return_value(arguments[-1])
    if origin is not abc.Generator or len(arguments) < 3:  # noqa: PLR2004  # yields, takes, returns
        return False
    return arguments[2] not in (None, NoneType)


def _with_returned(items: Any, returned: Any) -> Any:
    make: Any = typing_extensions.TypedDict
    return make("Yielded", {"items": items, "returned": result_type(returned)})


def _is_awaitable(kind: type) -> bool:
    return hasattr(kind, "__await__") or issubclass(kind, Future)


def _is_stream(kind: type) -> bool:
    """Returns whether a type is an iterator of any kind; `Iterable` usually means one too."""
    if issubclass(kind, IOBase):
        return False
    return kind is abc.Iterable or hasattr(kind, "__next__") or hasattr(kind, "__aiter__")


CONFIG = ConfigDict(allow_inf_nan=True, arbitrary_types_allowed=True, ser_json_bytes="base64")
BESIDES = frozenset({"default", "expected", "metadata", "serialization"})
"""Keys of a core schema that do not hold types."""
DECIMAL = "^-?([0-9]+([.][0-9]+)?(E[+-][0-9]+)?|Infinity|s?NaN[0-9]*)$"
"""Matches a decimal as Python writes it."""
BASE64 = {"type": "string", "contentEncoding": "base64"}
MATCH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "start": {"type": "integer"},
        "end": {"type": "integer"},
        "groups": {"type": "array"},
        "named": {"type": "object"},
    },
    "required": ["text", "start", "end", "groups", "named"],
}
FORMS: tuple[tuple[tuple[type, ...], dict[str, Any]], ...] = (
    ((BytesIO, bytearray, memoryview), BASE64),
    ((BaseException, StringIO, type), {"type": "string"}),
    ((re.Match,), MATCH),
    ((range,), {"type": "array", "items": {"type": "integer"}}),
    ((Mapping,), {"type": "object"}),
)
"""The JSON form of classes unknown to pydantic; the first match counts."""


class ResultSchemaGenerator(SchemaGenerator):
    """Generates result schemas that describe exactly what is sent, and leave the rest open."""

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:  # noqa: ARG002  # as pydantic calls it
        """Describes bytes as Base64."""
        return dict(BASE64)

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        """Allows null for NaN and infinities, if the float type has these."""
        generated = super().float_schema(schema)
        if schema.get("allow_inf_nan", True):
            generated["type"] = ["number", "null"]
        return generated

    def get_decimal_pattern(self, schema: core_schema.DecimalSchema) -> str:  # noqa: ARG002  # as pydantic calls it
        """Describes a decimal by its text, which alone is exact."""
        return DECIMAL

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Adds null to a type; a float's schema already has it."""
        generated = super().nullable_schema(schema)
        inner: JsonSchemaValue = generated.get("anyOf", [generated])[0]
        return inner if "null" in inner.get("type", ()) else generated

    def model_field_schema(self, schema: core_schema.ModelField) -> JsonSchemaValue:
        """Describes a field, without null if the field is omitted when None."""
        return super().model_field_schema(_besides_none(schema))

    def dataclass_field_schema(self, schema: core_schema.DataclassField) -> JsonSchemaValue:
        """Describes a field, without null if the field is omitted when None."""
        return super().dataclass_field_schema(_besides_none(schema))

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,
    ) -> bool:
        """Returns whether a field is always sent; one with a default is."""
        if field["type"] == "typed-dict-field":
            return super().field_is_required(field, total)
        return field.get("serialization_exclude_if") is None

    def encode_default(self, dft: Any) -> Any:
        """Converts a default like any other value of a result."""
        try:
            return to_jsonable(dft)
        except (RecursionError, ValueError) as error:
            raise PydanticSerializationError(str(error)) from error  # pydantic then omits it

    def is_instance_schema(self, schema: core_schema.IsInstanceSchema) -> JsonSchemaValue:
        """Describes instances of a plain Python class by their JSON form, if known."""
        kind = schema["cls"]
        if not isinstance(kind, type):
            return {}
        if is_attachment(kind):
            return dict(NOTE)
        if is_foreign(kind):
            return dict(schema_of(kind))
        found = next((form for kinds, form in FORMS if issubclass(kind, kinds)), None)
        if found is None and hasattr(kind, "keys"):
            found = {"type": "object"}
        if found is None and issubclass(kind, Collection) and is_mute(kind):
            return {"type": "array"}
        return dict(found or {})

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Describes all keys as strings; pydantic would describe their Python types."""
        keys: Any = schema.get("keys_schema", {})
        if keys.get("type") == "decimal":
            return super().dict_schema({**schema, "keys_schema": core_schema.str_schema()})
        generated = super().dict_schema(schema)
        if generated.get("propertyNames", {}).get("type") != "string":
            generated.pop("propertyNames", None)
        return generated

    def ser_schema(
        self, schema: core_schema.SerSchema | core_schema.IncExSeqOrElseSerSchema
    ) -> JsonSchemaValue | None:
        """Leaves the result of an author's serializer open, unless it declares a return type."""
        generated = super().ser_schema(schema)
        function = schema.get("function")
        if generated is None and function is not None and not is_library(function):
            return {}
        return generated

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """Describes an enum by its values, and flags by their sum."""
        if issubclass(schema["cls"], Flag):
            return {"type": "integer"}
        return super().enum_schema(schema)

    def is_subclass_schema(self, schema: core_schema.IsSubclassSchema) -> JsonSchemaValue:  # noqa: ARG002  # as pydantic calls it
        """Describes a class by its name."""
        return {"type": "string"}

    def callable_schema(self, schema: core_schema.CallableSchema) -> JsonSchemaValue:  # noqa: ARG002  # as pydantic calls it
        """Leaves callables open: a function becomes its name, other callables vary."""
        return {}

    def custom_error_schema(self, schema: core_schema.CustomErrorSchema) -> JsonSchemaValue:
        """Describes a type with a custom error message like any other."""
        return self.generate_inner(schema["schema"])


FieldT = TypeVar("FieldT", core_schema.ModelField, core_schema.DataclassField)


def _besides_none(field: FieldT) -> FieldT:
    leaves_out, schema = field.get("serialization_exclude_if"), field["schema"]
    inner = schema["schema"] if schema["type"] == "default" else schema
    if leaves_out is None or inner["type"] != "nullable":
        return field
    with suppress(Exception):  # an author's function, which may not accept None
        return {**field, "schema": inner["schema"]} if leaves_out(None) else field
    return field


def result_adapter(kind: Any) -> TypeAdapter[Any]:
    """Returns pydantic's adapter of a type that `result_type` returned."""
    return TypeAdapter(Annotated[Any, _Exactly(kind)], config=CONFIG)


class _Exactly:
    """Wraps a type so that the adapter's options apply to it, whatever type it is."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def __get_pydantic_core_schema__(
        self, _source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = handler.generate_schema(self._kind)
        _add_late_fields(schema, handler, set())
        return schema


def _add_late_fields(schema: Any, handler: GetCoreSchemaHandler, seen: set[str]) -> None:
    """Adds the fields that dataclasses set themselves, which pydantic leaves out.

    Pydantic's own classes stay unchanged inside: their core schema belongs to the class.
    """
    if isinstance(schema, list | tuple):
        for part in schema:
            _add_late_fields(part, handler, seen)
    if not isinstance(schema, dict) or hasattr(schema.get("cls"), "__pydantic_fields__"):
        return
    if schema.get("type") == "definition-ref" and schema["schema_ref"] not in seen:
        seen.add(schema["schema_ref"])
        _add_late_fields(handler.resolve_ref_schema(schema), handler, seen)
    if schema.get("type") == "dataclass" and schema["schema"]["type"] == "dataclass-args":
        made = schema["schema"]
        known = {each["name"] for each in made["fields"]}
        made["computed_fields"] += [
            core_schema.computed_field(each.name, core_schema.any_schema())
            for each in fields(schema["cls"])
            if each.name not in known and not each.init
        ]
    for part in schema.values():
        _add_late_fields(part, handler, seen)


def result_schema(adapter: TypeAdapter[Any], kinds: AbstractSet[str]) -> dict[str, Any] | None:
    """Returns the JSON Schema of an adapter's type, or None if JSON Schema cannot express it."""
    # In a result, a float that is NaN or infinite becomes null.
    simple = None if "float" in kinds else simple_schema(adapter.core_schema)
    if simple is not None:
        return simple
    try:
        return adapter.json_schema(mode="serialization", schema_generator=ResultSchemaGenerator)
    except PydanticInvalidForJsonSchema:
        return None


def core_types(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yields a core schema and the types inside it."""
    if isinstance(schema, list | tuple):
        for part in schema:
            yield from core_types(part)
    elif isinstance(schema, dict):
        is_node = isinstance(schema.get("type"), str)
        if is_node:
            yield schema
        for key, part in schema.items():
            if not (is_node and key in BESIDES):
                yield from core_types(part)
