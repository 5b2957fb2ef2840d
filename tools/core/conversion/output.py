"""The result of a tool: its schema, and what is made of what the function returned."""

from __future__ import annotations

import logging
from typing import Any

from pydantic import PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic_core import PydanticSerializationError, to_json

from tools.core.conversion.plain import plain
from tools.core.conversion.schema import SchemaGenerator, resolve, tidy
from tools.core.conversion.signature import NOTHING
from tools.core.errors import InternalError, ToolDefinitionError
from tools.core.spec import ToolResult

__all__ = ["Output"]

RESULT = "result"
"""The property that holds a result which is not an object itself."""
UNTYPED = (NOTHING, Any, object, ToolResult)
"""Return types that say nothing of the structured result."""

logger = logging.getLogger("toolcrib")


class Output:
    """The result of one tool.

    Attributes:
        schema: JSON Schema (2020-12) of the structured result, always an object; None where the
            function says no type, or one that JSON Schema cannot say.
    """

    def __init__(
        self,
        tool: str,
        returns: Any,  # noqa: ANN401  # a type of any form
        text: str = "",
    ) -> None:
        """Builds the schema and the serializer.

        Args:
            tool: The tool's name, for messages.
            returns: The return type, or NOTHING.
            text: What the docstring says of the result.

        Raises:
            ToolDefinitionError: If the return type names something that is not defined.
        """
        self._tool = tool
        self._adapter: TypeAdapter[Any] = TypeAdapter(Any)
        self._wrapped = False
        self.schema: dict[str, Any] | None = None
        if not any(returns is untyped for untyped in UNTYPED):
            self._learn(returns, text)

    def result(self, value: object) -> ToolResult:
        """The answer to a call.

        Args:
            value: What the function returned. Its own `to_text()`, where it has one, is what the
                model reads. A ToolResult is the answer already.

        Raises:
            InternalError: If the value is not of the type that the function promised.
        """
        if isinstance(value, ToolResult):
            return value
        try:
            checked = self._adapter.validate_python(value)
            clean = plain(self._adapter.dump_python(checked, by_alias=True, warnings="error"))
        except (PydanticSerializationError, RecursionError, ValueError) as error:
            logger.exception("%s returned %s, not what it promises", self._tool, type(value))
            raise InternalError(
                f"{self._tool} returned the wrong type: a {type(value).__name__} that does not fit "
                "what it promises. This is a defect of the tool, not of the arguments."
            ) from error
        wrapped = self._wrapped or not isinstance(clean, dict)
        return ToolResult({RESULT: clean} if wrapped else clean, _text(value, clean))

    def _learn(self, returns: Any, text: str) -> None:  # noqa: ANN401  # a type of any form
        try:
            self._adapter = TypeAdapter(returns)
            generated = self._adapter.json_schema(
                mode="serialization", schema_generator=SchemaGenerator
            )
        except (PydanticInvalidForJsonSchema, PydanticSchemaGenerationError):
            return
        except (PydanticUndefinedAnnotation, PydanticUserError) as error:
            raise ToolDefinitionError(
                f"The result of {self._tool} has a type that cannot be read: "
                f"{str(error).splitlines()[0]}"
            ) from error
        schema = tidy(generated, nulls=True)
        self._wrapped = resolve(schema, schema).get("type") != "object"
        self.schema = _wrapped(schema, text) if self._wrapped else _unfolded(schema)


def _wrapped(schema: dict[str, Any], text: str) -> dict[str, Any]:
    definitions = schema.pop("$defs", None)
    if text:
        schema.setdefault("description", text)
    wrapped = {"type": "object", "properties": {RESULT: schema}, "required": [RESULT]}
    return {**wrapped, "$defs": definitions} if definitions else wrapped


def _unfolded(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its own type at its root, which a recursive one only refers to."""
    if "$ref" not in schema:
        return schema
    return {**resolve(schema, schema), "$defs": schema["$defs"]}


def _text(value: object, clean: object) -> str:
    to_text = getattr(value, "to_text", None)
    if callable(to_text):
        return str(to_text())
    return clean if isinstance(clean, str) else to_json(clean).decode()
