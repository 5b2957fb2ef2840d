"""JSON Schema (2020-12) as clients want it: no titles, no dead words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from types import MethodType
from typing import Any, get_args

from pydantic.json_schema import (
    CoreSchemaOrFieldType,
    GenerateJsonSchema,
    JsonSchemaValue,
    JsonSchemaWarningKind,
)
from pydantic_core import PydanticSerializationError, core_schema, to_jsonable_python

from tools.conversion.arguments.input_types import field_texts
from tools.conversion.callables.docstrings import read_docstring
from tools.core.audit.secret_schema import is_secret

__all__ = [
    "SchemaGenerator",
    "branches",
    "child",
    "resolve",
    "tidy",
    "types",
    "union",
    "without_null_unions",
]

CONDITIONS = {"if", "not"}
"""Words under which a schema that accepts less lets the whole accept more."""
ONE_SCHEMA = {
    *("additionalProperties", "contains", "else", "items", "propertyNames", "then"),
    *CONDITIONS,
}
MANY_SCHEMAS = {"allOf", "anyOf", "oneOf", "prefixItems"}
NAMED_SCHEMAS = {"$defs", "definitions", "patternProperties", "properties"}
UNIONS = ("anyOf", "oneOf")
ANNOTATIONS = {"default", "deprecated", "description", "examples", "title"}
"""Words of which the outer one holds where a type of a union has them as well."""
ENCODINGS = {"base64", "base64url"}
"""What pydantic calls formats, and JSON Schema (section 8.3) encodings of the content."""
NOISE = {"discriminator", "title"}
"""`discriminator` is OpenAPI's; strict validators refuse a word that JSON Schema does not have."""


class SchemaGenerator(GenerateJsonSchema):
    """Pydantic's generator without its titles, its sorting and much of its cost.

    It is silent about a default that JSON cannot say: the schema just does not show it.
    """

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012  # as pydantic declares it
        "non-serializable-default",
        "skipped-choice",
    }

    def build_schema_type_to_method(self) -> dict[Any, Callable[[Any], JsonSchemaValue]]:
        """The methods by type; their names are looked up once, which takes as long as a schema."""
        return {kind: MethodType(method, self) for kind, method in _methods(type(self))}  # type: ignore[arg-type]  # a class has a hash

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """With the texts that `Annotated` has for the fields."""
        return _with_field_texts(super().dataclass_schema(schema), schema["cls"])

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """With the texts that `Annotated` has for the fields."""
        return _with_field_texts(super().model_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        """With the texts that `Annotated` has for the fields."""
        generated = super().typed_dict_schema(schema)
        cls = schema.get("cls")
        return generated if cls is None else _with_field_texts(generated, cls)

    def json_or_python_schema(self, schema: core_schema.JsonOrPythonSchema) -> JsonSchemaValue:
        """With `writeOnly` for pydantic's `Secret[T]`, as it has it for its SecretStr."""
        generated = super().json_or_python_schema(schema)
        serialize = schema.get("serialization", {}).get("function")
        is_pydantics = getattr(serialize, "__module__", None) == "pydantic.types"
        if is_pydantics and "secret" in getattr(serialize, "__name__", ""):
            return {**generated, "writeOnly": True}
        return generated

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """With each value once, whatever other names it has."""
        generated = super().enum_schema(schema)
        if "enum" in generated:
            values = generated["enum"]
            generated["enum"] = [each for at, each in enumerate(values) if each not in values[:at]]
        return generated

    def encode_default(self, dft: Any) -> Any:
        """A default as JSON; pydantic would build a serializer for each.

        Raises:
            PydanticSerializationError: If JSON cannot say it.
        """
        try:
            return to_jsonable_python(dft)
        except ValueError as error:
            raise PydanticSerializationError(str(error)) from error

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002  # pydantic's
        """Never: titles made of names say nothing."""
        return False

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:  # noqa: ARG002  # pydantic's
        """As it is: the order in which things were declared is the one that people expect."""
        return value


@cache
def _methods(generator: type[GenerateJsonSchema]) -> list[tuple[str, Any]]:
    kinds = [
        kind for union in get_args(CoreSchemaOrFieldType) for kind in get_args(union) or (union,)
    ]
    return [(kind, getattr(generator, f"{kind.replace('-', '_')}_schema")) for kind in kinds]


def tidy(schema: Mapping[str, Any], *, nulls: bool) -> dict[str, Any]:
    """Returns a schema without noise, the attribute texts of class docstrings at the attributes.

    Without `nulls` a property that is None unless it is given lists no null: leaving it out is the
    same, and shorter. A secret lists no default, were it only stars.
    """
    tidied = {
        key: _each(key, value, partial(tidy, nulls=nulls))
        for key, value in schema.items()
        if key not in NOISE and not _says_nothing(key, value)
    }
    if tidied.get("format") in ENCODINGS:
        tidied.pop("contentMediaType", None)
        tidied["contentEncoding"] = tidied.pop("format")
    if any(map(is_secret, [tidied, *union(tidied)])):
        tidied.pop("default", None)
    if not nulls:
        _leave_null_out(tidied, schema)
    return _with_attribute_texts(tidied)


def without_null_unions(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a schema in which null stands beside no other type or value, at any depth.

    It is for clients that refuse such unions, of whatever server the tool is. What is required
    stays required, and what is null alone stays null.
    """
    kept = {
        key: value if key in CONDITIONS else _each(key, value, without_null_unions)
        for key, value in schema.items()
    }
    return _without_null(kept)


def resolve(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the schema itself, or the one in the root's `$defs` that it refers to."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    return schema


def branches(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields the alternatives of a union, resolved and flat; a plain schema is its own only one."""
    schema = resolve(schema, root)
    alternatives = union(schema)
    if not alternatives:
        yield schema
    for branch in alternatives:
        yield from branches(branch, root)


def union(schema: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Returns the alternatives of a union as they stand in its schema; of anything else none."""
    return next((schema[key] for key in UNIONS if key in schema), ())


def child(
    schema: Mapping[str, Any], key: str | int, root: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Returns the schema of one property or item, or None where no branch has it."""
    for branch in branches(schema, root):
        inside = branch.get("contentSchema", branch)
        found = _item(inside, key) if isinstance(key, int) else _property(inside, key)
        if found is not None:
            return found
    return None


def types(schema: Mapping[str, Any], root: Mapping[str, Any]) -> set[str]:
    """Returns the JSON types that a schema names at its top; none where any branch names none."""
    named: set[str] = set()
    for branch in branches(schema, root):
        if "type" not in branch:
            return set()
        kinds = branch["type"]
        named |= {kinds} if isinstance(kinds, str) else set(kinds)
    return named


def _with_field_texts(schema: JsonSchemaValue, cls: Any) -> JsonSchemaValue:
    properties = schema.get("properties")
    if properties:
        for name, text in field_texts(cls).items():
            if name in properties:
                properties[name].setdefault("description", text)
    return schema


def _each(key: str, value: Any, change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Any:
    """The value of a keyword, with the schemas in it changed."""
    if key in ONE_SCHEMA and isinstance(value, Mapping):
        return change(value)
    if key in MANY_SCHEMAS and isinstance(value, list):
        return [_part(part, change) for part in value]
    if key in NAMED_SCHEMAS and isinstance(value, Mapping):
        return {name: _part(part, change) for name, part in value.items()}
    return value


def _part(part: Any, change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Any:
    return change(part) if isinstance(part, Mapping) else part  # true and false are schemas too


def _says_nothing(key: str, value: object) -> bool:
    if key == "default":
        return value is None or (isinstance(value, float) and not math.isfinite(value))
    return key == "additionalProperties" and value is True


def _leave_null_out(tidied: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    required = schema.get("required", ())
    for name, part in schema.get("properties", {}).items():
        if name not in required and part.get("default", ...) is None:
            tidied["properties"][name] = _without_null(tidied["properties"][name])


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without null beside other types and values at its top."""
    narrowed = {**schema}
    for key, is_null in NULLS.items():
        parts = schema.get(key)
        if isinstance(parts, list) and (kept := [part for part in parts if not is_null(part)]):
            narrowed[key] = kept
    if narrowed == schema:
        return schema
    if narrowed.get("default", ...) is None:
        del narrowed["default"]
    match narrowed.get("type"):
        case [only]:
            narrowed["type"] = only
    values = narrowed.get("enum")
    if values and all(isinstance(value, str) for value in values):
        narrowed["type"] = "string"  # pydantic leaves it out where null was among them
    return _without_union_of_one(narrowed)


def _without_union_of_one(schema: dict[str, Any]) -> dict[str, Any]:
    for key in UNIONS:
        rest = {name: value for name, value in schema.items() if name != key}
        match schema.get(key):
            case [Mapping() as only] if rest.keys() & only.keys() <= ANNOTATIONS:
                return {**only, **rest}
    return schema


def _is_null(schema: object) -> bool:
    if not isinstance(schema, Mapping):
        return False
    return schema.get("type") in ("null", ["null"]) or schema.get("const", ...) is None


NULLS: Mapping[str, Callable[[object], bool]] = {
    "enum": lambda value: value is None,
    "type": lambda kind: kind == "null",
    "anyOf": _is_null,
    "oneOf": _is_null,
}
"""The words under which null can stand beside others, and what it is there."""


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


def _item(schema: Mapping[str, Any], index: int) -> Mapping[str, Any] | None:
    fixed = schema.get("prefixItems", ())
    found = fixed[index] if index < len(fixed) else schema.get("items")
    return found if isinstance(found, Mapping) else None


def _property(schema: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    if name in schema.get("properties", ()):
        found = schema["properties"][name]
    else:
        found = schema.get("additionalProperties")
    return found if isinstance(found, Mapping) else None
