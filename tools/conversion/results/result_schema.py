"""The JSON Schema of what a function returns, as `tools.conversion.results.plain` sends it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from enum import Flag
from io import BytesIO, StringIO
from typing import Any

from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticSerializationError, core_schema

from tools.conversion.callables.hints import is_library
from tools.conversion.results.attachments import NOTE, is_shown
from tools.conversion.results.foreign import is_foreign, schema_of
from tools.conversion.results.opaque import is_mute
from tools.conversion.results.plain import plain
from tools.conversion.schema import SchemaGenerator

__all__ = ["ResultSchemaGenerator"]

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
"""What instances of classes become that pydantic knows nothing of, the first that fits."""


class ResultSchemaGenerator(SchemaGenerator):
    """Pydantic's generator, for results: true to what they look like, open where they are."""

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:  # noqa: ARG002  # as pydantic calls it
        """Bytes are Base64."""
        return dict(BASE64)

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        """A float may be null, for NaN and the infinities, if its type has these."""
        generated = super().float_schema(schema)
        if schema.get("allow_inf_nan", True):
            generated["type"] = ["number", "null"]
        return generated

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """A type or null; a float says null already."""
        generated = super().nullable_schema(schema)
        inner: JsonSchemaValue = generated.get("anyOf", [generated])[0]
        return inner if "null" in inner.get("type", ()) else generated

    def encode_default(self, dft: Any) -> Any:
        """A default looks like any other value of a result."""
        try:
            return plain(dft)
        except (RecursionError, ValueError) as error:
            raise PydanticSerializationError(str(error)) from error  # pydantic leaves it out

    def is_instance_schema(self, schema: core_schema.IsInstanceSchema) -> JsonSchemaValue:
        """A class that only Python knows: what its instances become, if that can be told."""
        kind = schema["cls"]
        if not isinstance(kind, type):
            return {}
        if is_shown(kind):
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
        """Keys are texts, whatever they were; pydantic says of others what they were."""
        generated = super().dict_schema(schema)
        if generated.get("propertyNames", {}).get("type") != "string":
            generated.pop("propertyNames", None)
        return generated

    def ser_schema(
        self, schema: core_schema.SerSchema | core_schema.IncExSeqOrElseSerSchema
    ) -> JsonSchemaValue | None:
        """What an author's serializer makes can be anything, unless it says its return type."""
        generated = super().ser_schema(schema)
        function = schema.get("function")
        if generated is None and function is not None and not is_library(function):
            return {}
        return generated

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """An enum is one of its values; flags can be several, as their sum."""
        if issubclass(schema["cls"], Flag):
            return {"type": "integer"}
        return super().enum_schema(schema)

    def is_subclass_schema(self, schema: core_schema.IsSubclassSchema) -> JsonSchemaValue:  # noqa: ARG002  # as pydantic calls it
        """A class becomes its name."""
        return {"type": "string"}

    def callable_schema(self, schema: core_schema.CallableSchema) -> JsonSchemaValue:  # noqa: ARG002  # as pydantic calls it
        """A function becomes its name, another callable whatever it is."""
        return {}

    def custom_error_schema(self, schema: core_schema.CustomErrorSchema) -> JsonSchemaValue:
        """A type with a message of its own is described like any other."""
        return self.generate_inner(schema["schema"])
