"""Builds the validator and the schema of the arguments object in one pass."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import GetCoreSchemaHandler, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticOmit, SchemaValidator, core_schema

from tools.conversion.arguments.input_types import JSON_SCALARS
from tools.conversion.callables.annotations import local_names
from tools.conversion.callables.callables import NOTHING
from tools.conversion.callables.constructors import OMITTED
from tools.conversion.callables.signature import Parameter, Signature
from tools.conversion.schema_generator import SchemaGenerator, arguments_schema
from tools.core.errors import ToolDefinitionError

SCALARS: Mapping[Any, CoreSchema] = {
    bool: core_schema.bool_schema(),
    float: core_schema.float_schema(),
    int: core_schema.int_schema(),
    str: core_schema.str_schema(),
}
"""Prebuilt core schemas of the most common types, which pydantic is slow to generate."""
INEXPRESSIBLE = (PydanticInvalidForJsonSchema, PydanticSchemaGenerationError)
"""Errors that a default makes up for; any other error is the author's mistake."""
UNKNOWN_TYPE = re.compile(r"schema for (.+?)\. Set")


class Compiled(NamedTuple):
    """The compiled form of a signature: its validator and its JSON Schema, with nulls."""

    validator: SchemaValidator
    schema: dict[str, Any]
    is_plain: bool
    """Whether every value is a string, an integer, a boolean, null, or a list or object of these
    with known names. Then JSON and Python validation agree, and both copy mutable values."""


def compiled(tool: str, signature: Signature) -> tuple[Sequence[Parameter], Compiled]:
    """Returns the parameters that are arguments, and their compiled form.

    A parameter whose type JSON cannot express keeps its default.
    """
    given = signature.given
    try:
        return given, _built(given, signature, signature.extra)
    except Exception:  # noqa: BLE001  # a type's own hooks may raise anything
        narrowed_parameters = [_expressible(tool, each, signature) for each in given]
        kept = [each for each in narrowed_parameters if each is not None]
    try:
        return kept, _built(kept, signature, signature.extra)
    except Exception as error:
        raise ToolDefinitionError(
            f"The ** parameter of {tool} cannot take arguments ({_reason(error)}); give it a type "
            "that JSON can express."
        ) from error


def _expressible(tool: str, parameter: Parameter, signature: Signature) -> Parameter | None:
    """Returns the parameter as far as JSON can express it, or None to keep only its default."""
    try:
        _built([parameter], signature, NOTHING)
    except Exception as error:  # a type's own hooks may raise anything
        is_inexpressible = isinstance(error, INEXPRESSIBLE)
        narrowed = _narrowed(parameter, signature) if is_inexpressible else None
        if narrowed is None and (parameter.default is NOTHING or not is_inexpressible):
            raise ToolDefinitionError(
                f"The parameter {parameter.name} of {tool} cannot be an argument "
                f"({_reason(error)}); give it a type that JSON can say, or a default that it is "
                "left to."
            ) from error
        return narrowed
    return parameter


def _narrowed(parameter: Parameter, signature: Signature) -> Parameter | None:
    annotation, *metadata = (
        get_args(parameter.annotation)
        if get_origin(parameter.annotation) is Annotated
        else [parameter.annotation]
    )
    if get_origin(annotation) not in (Union, UnionType):
        return None
    kept = []
    for part in get_args(annotation):
        alone = replace(parameter, annotation=part, default=NOTHING)
        with suppress(*INEXPRESSIBLE):
            _built([alone], signature, NOTHING)
            kept.append(part)
    if not {*kept} - {NoneType}:
        return None
    narrowed: Any = Annotated[(Union[tuple(kept)], *metadata, None)]  # noqa: UP007  # types known only now
    return replace(parameter, annotation=narrowed)


def _reason(error: Exception) -> str:
    """Returns pydantic's reason without the advice meant for its own users."""
    if isinstance(error, PydanticSchemaGenerationError):
        named = UNKNOWN_TYPE.search(str(error))
        return f"JSON has no value that becomes {named[1] if named else 'it'}"
    if isinstance(error, NameError | RecursionError):
        name = f"the name {error.name!r}" if isinstance(error, NameError) else "a name"
        return (
            f"{name} in its type cannot be found; import or define it at the top of its module, "
            "and not only under `if TYPE_CHECKING:`; if it is the type's own, make the type with "
            "typing_extensions.TypeAliasType"
        )
    lines = [line.strip() for line in str(error).splitlines()] or [type(error).__name__]
    reason = next((line for line in reversed(lines) if line.startswith("error:")), lines[0])
    return reason.removeprefix("error: ").rstrip(".:")


def _built(parameters: Sequence[Parameter], signature: Signature, extra: Any) -> Compiled:
    fields: Any = _Fields(parameters, extra)
    adapter: TypeAdapter[Any] = TypeAdapter(fields)
    if not adapter.pydantic_complete:  # a local class has the name of another in an annotation
        names = dict(ChainMap(*map(dict, local_names(signature.owner))))
        adapter.rebuild(raise_errors=True, _types_namespace=names)
    generated = arguments_schema(adapter, ArgumentSchemaGenerator)
    wrong = _misapplied(generated)
    if wrong:
        raise TypeError(wrong)
    validator: Any = adapter.validator  # or the like of it, where pydantic has plugins
    return Compiled(validator, generated, _is_plain(adapter.core_schema))


def _is_plain(schema: Any) -> bool:
    kind = schema["type"]
    if kind == "typed-dict":
        behavior = schema.get(
            "extra_behavior", schema.get("config", {}).get("extra_fields_behavior")
        )
        fields = schema["fields"].values()
        return behavior != "allow" and all(_is_plain(each["schema"]) for each in fields)
    if kind == "literal":
        return all(isinstance(each, str) for each in schema["expected"])
    if kind in {"default", "nullable"}:
        return _is_plain(schema["schema"])
    if kind == "list":
        return _is_plain(schema.get("items_schema", {"type": "any"}))
    return kind in {"bool", "int", "none", "str"}


class _Fields:
    """Hands `TypeAdapter` the core schema of the arguments object."""

    def __init__(self, parameters: Iterable[Parameter], extra: Any) -> None:
        self._parameters = parameters
        self._extra = extra

    def __get_pydantic_core_schema__(
        self, _source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        fields = {each.alias: _field(each, handler) for each in self._parameters}
        if self._extra is NOTHING:
            return core_schema.typed_dict_schema(fields, extra_behavior="forbid")
        extras = handler.generate_schema(self._extra)
        return core_schema.typed_dict_schema(fields, extra_behavior="allow", extras_schema=extras)


def _field(parameter: Parameter, handler: GetCoreSchemaHandler) -> core_schema.TypedDictField:
    annotation = parameter.annotation
    known = SCALARS.get(annotation) if type(annotation) is type else None
    schema: CoreSchema = known or handler.generate_schema(annotation)
    default, field = parameter.default, parameter.field
    if default is OMITTED and field is not None and field.default_factory is not None:
        schema = core_schema.with_default_schema(
            schema,
            default_factory=field.default_factory,
            default_factory_takes_data=field.default_factory_takes_validated_data,
            validate_default=field.validate_default,
        )
    elif default is not NOTHING and default is not OMITTED:
        schema = core_schema.with_default_schema(schema, default=default)
    return core_schema.typed_dict_field(schema, required=default is NOTHING)


KEYS = {
    "bool": "^(true|false)$",
    "decimal": "^-?[0-9]+([.][0-9]+)?$",
    "float": "^-?[0-9]+([.][0-9]+)?$",
    "int": "^-?[0-9]+$",
}
"""The pattern of a property name, by the type of a dict's keys."""
INEXPRESSIBLE_KEYS = {"dict", "frozenset", "list", "model", "set", "tuple"}
MISAPPLIED = {"ge", "gt", "le", "lt", "max_length", "min_length", "multiple_of"}
"""Keywords that pydantic leaves in a schema when a constraint does not apply to the type."""
LENGTHS = {"maxLength", "minLength"}


class ArgumentSchemaGenerator(SchemaGenerator):
    """Generates argument schemas, and rejects types that no JSON value can become."""

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:
        """Describes bytes as UTF-8 text, without a `contentEncoding` (JSON Schema, 8.3)."""
        generated = super().bytes_schema(schema)
        generated.pop("format", None)
        return {**generated, "contentMediaType": "text/plain; charset=utf-8"}

    def get_decimal_pattern(self, schema: core_schema.DecimalSchema) -> str:
        """Returns the pattern of a decimal's exact text; pydantic's own has 75 characters."""
        least, places = schema.get("ge", schema.get("gt", -1)), schema.get("decimal_places")
        digits = "+" if places is None else f"{{1,{places}}}"
        fraction = "" if places == 0 else f"([.][0-9]{digits})?"
        return f"^{'-?' if least < 0 else ''}[0-9]+{fraction}$"

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Describes non-string keys by a pattern, since JSON keys are always strings."""
        generated = super().dict_schema(schema)
        keys: Any = schema.get("keys_schema", {})
        kind = keys.get("type", "any")
        values = [member.value for member in keys["members"]] if kind == "enum" else []
        is_named = all(isinstance(value, str) for value in values)
        if kind in INEXPRESSIBLE_KEYS or not (is_named or keys.get("sub_type") == "int"):
            self.handle_invalid_for_json_schema(schema, f"a dict with keys of type {kind}")
        if not is_named:
            names = [str(value) for value in values]
            generated["propertyNames"] = {"enum": names, "type": "string"}
        if kind in KEYS:
            generated["propertyNames"] = {"pattern": KEYS[kind]}
        # With `patternProperties`, any other property would be allowed too.
        for pattern, part in generated.pop("patternProperties", {}).items():
            generated |= {"propertyNames": {"pattern": pattern}, "additionalProperties": part}
        return generated

    def dataclass_field_schema(self, schema: core_schema.DataclassField) -> JsonSchemaValue:
        """Describes a field, or omits one that JSON cannot express if it has a default."""
        with _left_to_default(schema):
            return super().dataclass_field_schema(schema)

    def model_field_schema(self, schema: core_schema.ModelField) -> JsonSchemaValue:
        """Describes a field, or omits one that JSON cannot express if it has a default."""
        with _left_to_default(schema):
            return super().model_field_schema(schema)

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """Describes members by their values, if JSON can express these."""
        if not all(isinstance(member.value, JSON_SCALARS) for member in schema["members"]):
            self.handle_invalid_for_json_schema(schema, "enum")
        return super().enum_schema(schema)

    def is_subclass_schema(self, schema: core_schema.IsSubclassSchema) -> JsonSchemaValue:
        """Rejects classes, which JSON cannot express."""
        return self.handle_invalid_for_json_schema(schema, "core_schema.IsSubclassSchema")

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        """Rejects plain enum members, which pydantic accepts only as themselves, not by value."""
        for member in schema["expected"]:
            if isinstance(member, Enum) and not isinstance(member, str | int):
                kind = type(member).__name__
                described = f"a Literal of {member} inside a class, unless {kind} inherits from str"
                self.handle_invalid_for_json_schema(schema, described)
        return super().literal_schema(schema)

    def handle_invalid_for_json_schema(
        self, schema: core_schema.CoreSchema, error_info: str
    ) -> JsonSchemaValue:
        """Raises an error that names the type, which JSON cannot express."""
        kind = schema["type"] if error_info.startswith("core_schema.") else error_info
        name = getattr(schema.get("cls"), "__name__", kind)
        raise PydanticInvalidForJsonSchema(f"JSON has no value that becomes {name}")


@contextmanager
def _left_to_default(field: Mapping[str, Any]) -> Iterator[None]:
    """Omits a field that JSON cannot express, if it has a default."""
    try:
        yield
    except PydanticInvalidForJsonSchema:
        if field["schema"]["type"] != "default":
            raise
        raise PydanticOmit from None


def _misapplied(schema: JsonSchemaValue) -> str | None:
    """Returns the first constraint that does not apply to its type, such as ge on a str.

    Pydantic would let it fail at each call instead.
    """
    for word, bound in schema.items():
        if word in MISAPPLIED and isinstance(bound, int | float) and "type" in schema:
            return f"{word}={bound} does not apply to {schema['type']}s"
        if word in LENGTHS and schema.get("type") in {"boolean", "integer", "number"}:
            return f"{word}={bound} does not apply to {schema['type']}s"
        parts = bound.values() if word in {"$defs", "properties"} else [bound]
        for part in parts if not isinstance(bound, list) else bound:
            is_schema = isinstance(part, dict) and word not in {"default", "examples"}
            if is_schema and (found := _misapplied(part)):
                return found
    return None
