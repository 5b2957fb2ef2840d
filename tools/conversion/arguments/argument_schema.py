"""The JSON Schema of what a caller sends, as narrow as what is accepted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from enum import Enum
from typing import Any

from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticOmit, PydanticSerializationError, core_schema

from tools.conversion.arguments.forms import JSON_SCALARS
from tools.conversion.schema import SchemaGenerator

__all__ = ["ArgumentSchemaGenerator"]

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

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """Decimals are numbers, which says their bounds; the text of one is accepted too."""
        generated = super().decimal_schema(schema)
        number: JsonSchemaValue = generated.get("anyOf", [generated])[0]
        return number

    def encode_default(self, dft: Any) -> Any:
        """A default as JSON; a decimal is a number here, as far as one is exact.

        Raises:
            PydanticSerializationError: If JSON cannot say it.
        """
        if not isinstance(dft, Decimal):
            return super().encode_default(dft)
        number = float(dft)
        if not dft.is_finite() or Decimal(repr(number)) != dft:
            raise PydanticSerializationError(f"no number is {dft}")
        return number

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
            generated["propertyNames"] = {"enum": [str(value) for value in values]}
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


def misapplied(schema: JsonSchemaValue) -> str | None:
    """The first constraint in a schema that its type cannot be put under, such as ge of a str.

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
                misapplied(part)
                if isinstance(part, dict) and word not in {"default", "examples"}
                else None
            )
            if found:
                return found
    return None
