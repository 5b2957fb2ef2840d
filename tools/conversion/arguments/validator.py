"""The arguments object as pydantic has it: one build for its validator and its schema."""

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
from pydantic_core import (
    CoreSchema,
    PydanticOmit,
    SchemaValidator,
    core_schema,
)

from tools.conversion.arguments.input_types import JSON_SCALARS
from tools.conversion.callables.annotations import local_names
from tools.conversion.callables.signature import NOTHING, OMITTED, Parameter, Signature
from tools.conversion.schemas.generator import SchemaGenerator
from tools.conversion.schemas.simple import arguments_schema
from tools.core.errors import ToolDefinitionError

SCALARS: Mapping[Any, CoreSchema] = {
    bool: core_schema.bool_schema(),
    float: core_schema.float_schema(),
    int: core_schema.int_schema(),
    str: core_schema.str_schema(),
}
"""What pydantic generates for the types that most parameters have, and takes its time for."""
UNSAYABLE = (PydanticInvalidForJsonSchema, PydanticSchemaGenerationError)
"""What a type may be for which a default has to do; anything else is its author's mistake."""
UNKNOWN_TYPE = re.compile(r"schema for (.+?)\. Set")


class Compiled(NamedTuple):
    """What a signature becomes.

    Attributes:
        validator: Of the arguments object.
        schema: Its JSON Schema, with nulls.
        is_plain: Whether every value is a text, an integer, a boolean, null, or a list or object of
            such with known names. JSON then reads them as Python does, and copies what can change.
    """

    validator: SchemaValidator
    schema: dict[str, Any]
    is_plain: bool


def compiled(tool: str, signature: Signature) -> tuple[Sequence[Parameter], Compiled]:
    """Returns the parameters that are arguments, and what they become.

    A parameter whose type JSON cannot say keeps its default.
    """
    given = signature.given
    try:
        return given, _built(given, signature, signature.extra)
    except Exception:  # noqa: BLE001  # a type's own hooks may raise anything
        sayable = [_sayable(tool, each, signature) for each in given]
        kept = [each for each in sayable if each is not None]
    try:
        return kept, _built(kept, signature, signature.extra)
    except Exception as error:
        raise ToolDefinitionError(
            f"The ** parameter of {tool} cannot take arguments ({_reason(error)}); give it a type "
            "that JSON can say."
        ) from error


def _sayable(tool: str, parameter: Parameter, signature: Signature) -> Parameter | None:
    """The parameter, or what JSON can say of it; None where that is nothing but the default."""
    try:
        _built([parameter], signature, NOTHING)
    except Exception as error:  # a type's own hooks may raise anything
        unsayable = isinstance(error, UNSAYABLE)
        narrowed = _narrowed(parameter, signature) if unsayable else None
        if narrowed is None and (parameter.default is NOTHING or not unsayable):
            raise ToolDefinitionError(
                f"The parameter {parameter.name} of {tool} cannot be an argument "
                f"({_reason(error)}); give it a type that JSON can say, or a default that it is "
                "left to."
            ) from error
        return narrowed
    return parameter


def _narrowed(parameter: Parameter, signature: Signature) -> Parameter | None:
    """The parameter with those types of a union that JSON can say, where it is one of some."""
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
        with suppress(*UNSAYABLE):
            _built([alone], signature, NOTHING)
            kept.append(part)
    if not {*kept} - {NoneType}:
        return None
    narrowed: Any = Annotated[(Union[tuple(kept)], *metadata, None)]  # noqa: UP007  # types known only now
    return replace(parameter, annotation=narrowed)


def _reason(error: Exception) -> str:
    """What pydantic says of a type, without what it advises its own users to do."""
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
    said = next((line for line in reversed(lines) if line.startswith("error:")), lines[0])
    return said.removeprefix("error: ").rstrip(".:")


def _built(
    parameters: Sequence[Parameter],
    signature: Signature,
    extra: Any,
) -> Compiled:
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
    """The arguments object as pydantic's schema, asked for by `TypeAdapter`."""

    def __init__(self, parameters: Iterable[Parameter], extra: Any) -> None:
        self._parameters = parameters
        self._extra = extra

    def __get_pydantic_core_schema__(
        self, _source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        fields = {each.alias: _field(each, handler) for each in self._parameters}
        if self._extra is NOTHING:
            return core_schema.typed_dict_schema(fields, extra_behavior="forbid")
        return core_schema.typed_dict_schema(
            fields,
            extra_behavior="allow",
            extras_schema=handler.generate_schema(self._extra),
        )


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
"""What a property's name looks like where a dict has keys of another type than str."""
UNSAYABLE_KEYS = {"dict", "frozenset", "list", "model", "set", "tuple"}
MISAPPLIED = {"ge", "gt", "le", "lt", "max_length", "min_length", "multiple_of"}
"""Words that pydantic leaves in a schema for a constraint that its type cannot be put under."""
LENGTHS = {"maxLength", "minLength"}


class ArgumentSchemaGenerator(SchemaGenerator):
    """Pydantic's generator, for arguments: what no JSON value can be is refused, not left open."""

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:
        """Bytes are the UTF-8 of a text; there is no `contentEncoding` (JSON Schema, 8.3)."""
        generated = super().bytes_schema(schema)
        generated.pop("format", None)
        return {**generated, "contentMediaType": "text/plain; charset=utf-8"}

    def get_decimal_pattern(self, schema: core_schema.DecimalSchema) -> str:
        """A decimal's text, which alone is exact; pydantic's own pattern has 75 characters."""
        least, places = schema.get("ge", schema.get("gt", -1)), schema.get("decimal_places")
        digits = "+" if places is None else f"{{1,{places}}}"
        fraction = "" if places == 0 else f"([.][0-9]{digits})?"
        return f"^{'-?' if least < 0 else ''}[0-9]+{fraction}$"

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Keys are texts in JSON, so that those of another type are texts of a form."""
        generated = super().dict_schema(schema)
        keys: Any = schema.get("keys_schema", {})
        kind = keys.get("type", "any")
        values = [member.value for member in keys["members"]] if kind == "enum" else []
        is_named = all(isinstance(value, str) for value in values)
        if kind in UNSAYABLE_KEYS or not (is_named or keys.get("sub_type") == "int"):
            self.handle_invalid_for_json_schema(schema, f"a dict with keys of type {kind}")
        if not is_named:
            names = [str(value) for value in values]
            generated["propertyNames"] = {"enum": names, "type": "string"}
        if kind in KEYS:
            generated["propertyNames"] = {"pattern": KEYS[kind]}
        # Beside `patternProperties` anything else would be allowed too.
        for pattern, part in generated.pop("patternProperties", {}).items():
            generated |= {"propertyNames": {"pattern": pattern}, "additionalProperties": part}
        return generated

    def dataclass_field_schema(self, schema: core_schema.DataclassField) -> JsonSchemaValue:
        """A field, unless JSON cannot say it and it has a default to be left to."""
        with _left_to_default(schema):
            return super().dataclass_field_schema(schema)

    def model_field_schema(self, schema: core_schema.ModelField) -> JsonSchemaValue:
        """A field, unless JSON cannot say it and it has a default to be left to."""
        with _left_to_default(schema):
            return super().model_field_schema(schema)

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """Members are their values, as far as JSON has these."""
        if not all(isinstance(member.value, JSON_SCALARS) for member in schema["members"]):
            self.handle_invalid_for_json_schema(schema, "enum")
        return super().enum_schema(schema)

    def is_subclass_schema(self, schema: core_schema.IsSubclassSchema) -> JsonSchemaValue:
        """A class is no JSON value."""
        return self.handle_invalid_for_json_schema(schema, "core_schema.IsSubclassSchema")

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        """Pydantic takes a member of a plain enumeration for itself only, not for its value."""
        for member in schema["expected"]:
            if isinstance(member, Enum) and not isinstance(member, str | int):
                kind = type(member).__name__
                told = f"a Literal of {member} inside a class, unless {kind} inherits from str"
                self.handle_invalid_for_json_schema(schema, told)
        return super().literal_schema(schema)

    def handle_invalid_for_json_schema(
        self, schema: core_schema.CoreSchema, error_info: str
    ) -> JsonSchemaValue:
        """Says which type it is.

        Raises:
            PydanticInvalidForJsonSchema: Always.
        """
        kind = schema["type"] if error_info.startswith("core_schema.") else error_info
        name = getattr(schema.get("cls"), "__name__", kind)
        raise PydanticInvalidForJsonSchema(f"JSON has no value that becomes {name}")


@contextmanager
def _left_to_default(field: Mapping[str, Any]) -> Iterator[None]:
    """Tells pydantic to leave out a field that JSON cannot say, if it has a default."""
    try:
        yield
    except PydanticInvalidForJsonSchema:
        if field["schema"]["type"] != "default":
            raise
        raise PydanticOmit from None


def _misapplied(schema: JsonSchemaValue) -> str | None:
    """Returns the first constraint that its type cannot have, such as ge of a str.

    Pydantic leaves these to fail at each call.
    """
    for word, bound in schema.items():
        if word in MISAPPLIED and isinstance(bound, int | float) and "type" in schema:
            return f"{word}={bound} does not apply to {schema['type']}s"
        if word in LENGTHS and schema.get("type") in {"boolean", "integer", "number"}:
            return f"{word}={bound} does not apply to {schema['type']}s"
        parts = bound.values() if word in {"$defs", "properties"} else [bound]
        for part in parts if not isinstance(bound, list) else bound:
            found = (
                _misapplied(part)
                if isinstance(part, dict) and word not in {"default", "examples"}
                else None
            )
            if found:
                return found
    return None
