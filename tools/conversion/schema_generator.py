"""Generates JSON Schemas with pydantic, without noise and most of the cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from types import MethodType
from typing import Any, get_args

from pydantic import TypeAdapter
from pydantic.json_schema import (
    CoreSchemaOrFieldType,
    GenerateJsonSchema,
    JsonSchemaValue,
    JsonSchemaWarningKind,
)
from pydantic_core import PydanticSerializationError, core_schema, to_jsonable_python

from tools.conversion.arguments.input_types import field_texts
from tools.conversion.callables.docstrings import inherited_texts, read_docstring
from tools.conversion.results.jsonable import is_endless
from tools.conversion.schema_reading import Schema, changed, is_secret, union, without_null


class SchemaGenerator(GenerateJsonSchema):
    """Pydantic's generator without its titles, its sorting and much of its cost.

    A default that JSON cannot express is silently left out of the schema.
    """

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012  # as pydantic declares it
        "non-serializable-default",
        "skipped-choice",
    }

    def build_schema_type_to_method(self) -> dict[Any, Callable[[Any], JsonSchemaValue]]:
        """Caches the method of each type; looking them up takes as long as generating a schema."""
        return {kind: MethodType(method, self) for kind, method in _methods(type(self))}  # type: ignore[arg-type]  # a class has a hash

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """Adds the field texts from `Annotated`."""
        return _with_field_texts(super().dataclass_schema(schema), schema["cls"])

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Adds the field texts from `Annotated`."""
        return _with_field_texts(super().model_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        """Adds the field texts from `Annotated`."""
        generated = super().typed_dict_schema(schema)
        cls = schema.get("cls")
        return generated if cls is None else _with_field_texts(generated, cls)

    def json_or_python_schema(self, schema: core_schema.JsonOrPythonSchema) -> JsonSchemaValue:
        """Adds `writeOnly` to pydantic's `Secret[T]`, as pydantic does for SecretStr."""
        generated = super().json_or_python_schema(schema)
        serialize = schema.get("serialization", {}).get("function")
        is_pydantics = getattr(serialize, "__module__", None) == "pydantic.types"
        if is_pydantics and "secret" in getattr(serialize, "__name__", ""):
            return {**generated, "writeOnly": True}
        return generated

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """Lists each value once, even if it has several names."""
        generated = super().enum_schema(schema)
        if "enum" in generated:
            values = generated["enum"]
            generated["enum"] = [each for at, each in enumerate(values) if each not in values[:at]]
        return generated

    def encode_default(self, dft: Any) -> Any:
        """Converts a default to JSON; pydantic would build a serializer for each."""
        try:
            return to_jsonable_python(dft)
        except ValueError as error:
            raise PydanticSerializationError(str(error)) from error

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002  # pydantic's
        """Never sets titles, since they only repeat names."""
        return False

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:  # noqa: ARG002  # pydantic's
        """Keeps the order of declaration, which people expect."""
        return value


@cache
def _methods(generator: type[GenerateJsonSchema]) -> list[tuple[str, Any]]:
    kinds = [
        kind for union in get_args(CoreSchemaOrFieldType) for kind in get_args(union) or (union,)
    ]
    return [(kind, getattr(generator, f"{kind.replace('-', '_')}_schema")) for kind in kinds]


def _with_field_texts(schema: JsonSchemaValue, cls: Any) -> JsonSchemaValue:
    """Describes the fields that `Annotated` or the docstring of a base class describes."""
    properties = schema.get("properties")
    if properties:
        for name, text in (inherited_texts(cls) | field_texts(cls)).items():
            if name in properties:
                properties[name].setdefault("description", text)
    return schema


NUMBERS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
SCALARS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "bool": ("boolean", {}),
    "float": ("number", NUMBERS),
    "int": ("integer", NUMBERS),
    "str": ("string", {"max_length": "maxLength", "min_length": "minLength", "pattern": "pattern"}),
}
"""The JSON type of each pydantic-core type, and the keywords for its constraints."""
LENGTHS = {"max_length": "maxItems", "min_length": "minItems"}
UPDATES = "pydantic_js_updates"


class _UncommonError(Exception):  # not an error: the generator handles it
    """A type that is not a common one."""


def arguments_schema(
    adapter: TypeAdapter[Any], generator: type[GenerateJsonSchema]
) -> dict[str, Any]:
    """Returns the JSON Schema of a typed dict, identical to the generator's."""
    core: Any = adapter.core_schema
    fields = core.get("schema", core)["fields"]
    made: dict[str, Any] = {}
    rest = {}
    for name, field in fields.items():
        try:
            made[name] = _schema_of(field["schema"])
        except _UncommonError:
            rest[name] = field
    generated = _generated(core, rest, generator)
    properties = {
        name: made[name] if name in made else generated["properties"][name] for name in fields
    }
    required = [name for name, field in fields.items() if field["required"]]
    return {**generated, "properties": properties, "required": required}


def simple_schema(core: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the JSON Schema of a core schema, or None if it is not a common type."""
    try:
        return _schema_of(core)
    except _UncommonError:
        return None


def _generated(
    core: Any, fields: Mapping[str, Any], generator: type[GenerateJsonSchema]
) -> dict[str, Any]:
    holder = core.get("schema", core)
    if not fields and "extras_schema" not in holder:
        return {"additionalProperties": False}
    reduced = {**holder, "fields": fields}
    if holder is not core:
        reduced = {**core, "schema": reduced}
    return generator().generate(reduced)


def _schema_of(schema: Schema) -> dict[str, Any]:
    """Returns the schema of one type, or raises _Unsaid if any part of it is not a common type."""
    kind = schema["type"]
    rest = {key: value for key, value in schema.items() if key not in {"type", "metadata"}}
    updates = schema.get("metadata", {})
    if updates.keys() - {UPDATES}:
        raise _UncommonError
    return {**_schema_of_kind(kind, rest), **updates.get(UPDATES, {})}


def _schema_of_kind(kind: str, rest: dict[str, Any]) -> dict[str, Any]:
    if kind in SCALARS:
        name, words = SCALARS[kind]
        return {"type": name, **_constraints(rest, words)}
    if kind == "any" and not rest:
        return {}
    if kind == "nullable":
        inner = _schema_of(rest.pop("schema"))
        made: dict[str, Any] = {"anyOf": [inner, {"type": "null"}]}
    elif kind == "default" and "default" in rest:
        inner, default = _schema_of(rest.pop("schema")), rest.pop("default")
        made = {**inner, "default": _scalar(default)}
    elif kind == "list":
        items = _schema_of(rest.pop("items_schema", {"type": "any"}))
        made = {"type": "array", "items": items, **_constraints(rest, LENGTHS)}
        rest = {}
    elif kind == "dict" and rest.pop("keys_schema", None) == {"type": "str"}:
        values = _schema_of(rest.pop("values_schema", {"type": "any"}))
        made = {"type": "object", "additionalProperties": values or True}
    elif kind == "literal" and all(type(each) is str for each in rest["expected"]):
        made = {"enum": rest.pop("expected"), "type": "string"}
    else:
        raise _UncommonError
    if rest:
        raise _UncommonError
    return made


def _constraints(given: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    constraints = {}
    for word, bound in given.items():
        if word not in words or not isinstance(bound, int | str):
            raise _UncommonError
        constraints[words[word]] = bound
    return constraints


def _scalar(value: object) -> object:
    if type(value) not in {bool, float, int, str, type(None)} or is_endless(value):
        raise _UncommonError
    return value


ENCODINGS = {"base64", "base64url"}
"""Formats of pydantic's that JSON Schema (section 8.3) treats as content encodings."""
NOISE = {"discriminator", "title"}
"""Strict validators reject keywords outside JSON Schema; `discriminator` is OpenAPI's."""


def tidy(schema: Schema, *, nulls: bool) -> dict[str, Any]:
    """Removes noise from a schema, and moves attribute texts of docstrings to the attributes.

    Without `nulls`, an optional property whose default is None does not list null: omitting it
    means the same. A secret lists no default, not even a masked one.
    """
    tidied = {
        key: changed(key, value, partial(tidy, nulls=nulls))
        for key, value in schema.items()
        if key not in NOISE
        and not (key == "additionalProperties" and value is True)
        and not (key == "default" and (value is None or is_endless(value)))
    }
    if tidied.get("format") in ENCODINGS:
        tidied.pop("contentMediaType", None)
        tidied["contentEncoding"] = tidied.pop("format")
    if any(map(is_secret, [tidied, *union(tidied)])):
        tidied.pop("default", None)
    required = schema.get("required", ())
    for name, part in ({} if nulls else schema.get("properties", {})).items():
        if name not in required and part.get("default", ...) is None:
            tidied["properties"][name] = without_null(tidied["properties"][name])
    return _with_attribute_texts(tidied)


def _with_attribute_texts(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    if not properties or not isinstance(schema.get("description"), str):
        return schema
    documentation = read_docstring(schema.pop("description"))
    for name, text in documentation.parameters.items():
        if name in properties:
            properties[name].setdefault("description", text)
    if documentation.description:
        schema["description"] = documentation.description
    return schema
