"""The result of a tool: its schema, and what is made of what the function returned."""

from __future__ import annotations

import logging
from typing import Any

from pydantic import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_core import to_json

from tools.conversion.arguments.forms import text_of
from tools.conversion.errors import UnsendableError
from tools.conversion.results.attachments import lines
from tools.conversion.results.plain import plain
from tools.conversion.results.promise import Promise
from tools.conversion.results.returns import gives_back, promised, says_nothing
from tools.conversion.results.streams import Collected
from tools.conversion.schema import resolve, tidy
from tools.core.errors import InternalError, ToolDefinitionError
from tools.core.result import Media, ToolResult

__all__ = ["Output"]

RESULT = "result"
"""The property that holds a result which is not an object itself."""

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
        returns: Any,
        text: str = "",
    ) -> None:
        """Builds the schema and the serializer.

        Args:
            tool: The tool's name, for messages.
            returns: The return type, or NOTHING.
            text: What the docstring says of the result.

        Raises:
            ToolDefinitionError: If the return type names something that is not defined, or that
                cannot be sent.
        """
        self._tool = tool
        self._gives_back = gives_back(returns)
        self._wrapped = False
        self.schema: dict[str, Any] | None = None
        self._promise = self._learn(returns)
        if self._promise is not None and self._promise.schema:
            self._describe(self._promise.schema, text_of(returns) or text)

    def result(self, value: object) -> ToolResult:
        """The answer to a call.

        Args:
            value: What the function returned. Its own `to_text()`, where it has one, is what the
                model reads. A ToolResult is the answer already.

        Raises:
            InternalError: If the value is not of the type that the function promised, or has no
                form that could be sent.
        """
        if isinstance(value, ToolResult):
            return value
        if isinstance(value, Collected):
            value = self._whole(value)
        shown: list[Media] = []
        try:
            kept = value if self._promise is None else self._promise.kept(value, shown)
            clean = plain(kept, shown)
        except UnsendableError as error:
            raise self._defect(str(error), error) from error
        except RecursionError as error:
            told = "the wrong type: a value that contains itself, or is nested too deeply"
            raise self._defect(told, error) from error
        except (AttributeError, ValueError) as error:  # such as a field that was never set
            kind = type(value).__name__
            told = f"the wrong type: a {kind} that does not fit what it promises"
            raise self._defect(told, error) from error
        wrapped = self._wrapped or not isinstance(clean, dict)
        structured = {RESULT: clean} if wrapped else clean
        return ToolResult(structured, _text(value, clean), media=tuple(shown))

    def _learn(self, returns: Any) -> Promise | None:
        try:
            kind = promised(returns)
            return None if says_nothing(kind) else Promise(kind)
        except PydanticSchemaGenerationError:
            return None
        except (PydanticUndefinedAnnotation, PydanticUserError, UnsendableError) as error:
            raise ToolDefinitionError(
                f"The result of {self._tool} has a type that cannot be read: "
                f"{str(error).splitlines()[0]}"
            ) from error

    def _describe(self, generated: dict[str, Any], text: str) -> None:
        schema = tidy(generated, nulls=True)
        self._wrapped = resolve(schema, schema).get("type") != "object"
        if self._wrapped:
            self.schema = _wrapped(schema, text)
        else:
            self.schema = _unfolded(schema)

    def _whole(self, collected: Collected) -> object:
        """What an iterator gave as one value, which has what it returned where anybody reads it."""
        if self._gives_back or (self._promise is None and collected.returned is not None):
            return {"items": collected.items, "returned": collected.returned}
        if collected.returned is None:
            return collected.items
        told = "something besides what it yields, which its return type does not tell; make it"
        raise self._defect(f"{told} Generator[…, None, …]", None)

    def _defect(self, told: str, error: Exception | None) -> InternalError:
        logger.error("%s returned %s", self._tool, told, exc_info=error)
        return InternalError(
            f"{self._tool} returned {told}. This is a defect of the tool, not of the arguments."
        )


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


def _text(value: object, clean: Any) -> str:
    to_text = getattr(type(value), "to_text", None)
    if callable(to_text):
        return str(to_text(value))
    if isinstance(clean, str):
        return clean
    blocks = lines(value)
    if not blocks:
        return _compact(clean)
    forms = clean if isinstance(clean, list) else [clean]
    return "\n".join(
        _compact({key: part for key, part in form.items() if part is not None})
        if text is None
        else text
        for text, form in zip(blocks, forms, strict=True)
    )


def _compact(value: object) -> str:
    return to_json(value).decode()
