"""Generates JSON Schemas with pydantic, without its noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
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
        """Converts a default to JSON; pydantic would build a serializer for each.

        Raises:
            PydanticSerializationError: If JSON cannot express it.
        """
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
    properties = schema.get("properties")
    if properties:
        for name, text in field_texts(cls).items():
            if name in properties:
                properties[name].setdefault("description", text)
    return schema
