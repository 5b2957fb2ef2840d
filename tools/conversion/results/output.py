"""Builds the schema of a tool's result and converts what the function returned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic import BaseModel, PydanticUndefinedAnnotation, PydanticUserError, ValidationError
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_core import PydanticSerializationError, to_json

from tools.conversion.arguments.input_types import text_of
from tools.conversion.callables.annotations import UnfoundNameError
from tools.conversion.results.arrays import alternatives, to_builtin
from tools.conversion.results.attachments import lines, protocol_result, replaced, without_data
from tools.conversion.results.jsonable import blocks_of, convert, ordered, to_jsonable
from tools.conversion.results.return_type import (
    core_types,
    has_return_value,
    is_untyped,
    result_adapter,
    result_schema,
    result_type,
)
from tools.conversion.schema_generator import tidy
from tools.conversion.schema_reading import resolve
from tools.core.content import Attachment
from tools.core.errors import (
    InternalError,
    ToolDefinitionError,
    ToolError,
    ToolFailedError,
    UnsendableError,
)
from tools.core.result import ToolResult

RESULT = "result"
"""The property that holds a result which is not an object itself."""

OPEN = frozenset({"any", "is-instance"})
"""Kinds of types that may hold values unknown to pydantic."""
INERT = OPEN | {
    *("bool", "bytes", "complex", "date", "datetime", "decimal", "deque", "dict", "enum", "float"),
    *("frozenset", "int", "list", "literal", "none", "nullable", "set", "str", "time", "timedelta"),
    *("tuple", "union", "uuid"),
}
"""Kinds of types whose values are sent unchanged, without a serializer."""
JSON_OPTIONS = ("ser_json_bytes", "ser_json_temporal", "ser_json_timedelta")
"""Model options that change only its JSON."""
BROKEN = (PydanticSerializationError, ValidationError)
UNDEFINED = "class-not-fully-defined"
"""Pydantic's error code for a type with a name that only type checkers know."""


@dataclass(frozen=True, slots=True)
class Collected:
    """Everything that an iterator produced: what it yielded, and the value at its end."""

    items: list[Any]
    returned: Any = None


class Output:
    """The result of one tool.

    Attributes:
        schema: JSON Schema (2020-12) of the structured result, always an object; None if the
            function declares no type, or one that JSON Schema cannot represent.
    """

    def __init__(self, tool: str, returns: Any, text: str = "", *, is_ours: bool = False) -> None:
        """Builds the schema and the serializer; `text` is the docstring's text about the result."""
        self._tool = tool
        self._is_ours = is_ours
        self._has_return_value = has_return_value(returns)
        self._wrapped = False
        self._usual: type | None = None  # the last type that was no protocol result
        self.schema: dict[str, Any] | None = None
        self._serializer = self._make_serializer(returns)
        if self._serializer is not None and self._serializer.schema:
            self._describe(self._serializer.schema, text_of(returns) or text)

    def result(self, value: object) -> ToolResult:
        """Converts the function's return value to the result of the call.

        The model reads the value's own `to_text()`, if it has one. A ToolResult is returned as it
        is; the SDK's and FastMCP's results are converted.
        """
        if isinstance(value, ToolResult):
            return value
        if isinstance(value, Collected):
            value = self._merge(value)
        kind = type(value)
        if kind is self._usual or not protocol_result(kind):
            self._usual = kind
            made, note = self._convert(value)
        else:
            made, note = self._convert_protocol_result(value)
        if not note:
            return made
        blocks = made.blocks or (made.text, *made.media)
        return replace(made, text=f"{made.text}\n{note}", blocks=(*blocks, note))

    def _convert(self, value: object) -> tuple[ToolResult, str]:
        """Returns the result, and a note about values that JSON cannot express."""
        media: list[Attachment] = []
        try:
            kept = value if self._serializer is None else self._serializer.serialize(value, media)
            clean, text, note = convert(kept, media)
        except UnsendableError as error:
            raise self._defect(str(error)) from error
        except RecursionError as error:
            problem = "the wrong type: a value that contains itself or is nested too deeply"
            raise self._defect(problem) from error
        except (AttributeError, ValueError) as error:  # such as a field that was never set
            kind = "None" if value is None else type(value).__name__
            problem = f"the wrong type: {kind} does not match its return type"
            raise self._defect(problem) from error
        wrapped = self._wrapped or not isinstance(clean, dict)
        structured = {RESULT: clean} if wrapped else clean
        blocks = blocks_of(value, clean, media)
        text = _text(value, clean, text)
        return ToolResult(structured, text, media=tuple(media), blocks=blocks), note

    def _convert_protocol_result(self, value: Any) -> tuple[ToolResult, str]:
        """Does the same for a result of the SDK or FastMCP."""
        kind = protocol_result(type(value))
        if kind == "InputRequiredResult":
            raise self._defect(f"an {kind}, which is not a result; ask with RequestContext.ask")
        content: list[Any] = list(value.content)
        media: list[Attachment] = []
        text = "\n".join(filter(None, lines(content)))
        structured = _field(value, "structured_content", "structuredContent")
        if _field(value, "is_error", "isError"):
            # Text that is JSON already contains the structured content.
            if structured and not text.startswith(("{", "[")):
                text = f"{text}\n{_compact(to_jsonable(structured))}".strip()
            raise ToolFailedError(text or f"{self._tool} failed without a message.")
        clean = to_jsonable(content, media)
        if structured is None and self._serializer is None:
            answer, note = ToolResult({RESULT: clean if media or not text else text}, ""), ""
        else:
            if self._wrapped and isinstance(structured, dict) and structured.keys() == {RESULT}:
                structured = structured[RESULT]
            answer, note = self._convert(structured)
        text = text or answer.text or _compact(clean)
        blocks = blocks_of(content, clean, media)
        meta = getattr(value, "meta", None)
        return replace(answer, text=text, media=tuple(media), blocks=blocks, meta=meta), note

    def _make_serializer(self, returns: Any) -> Serializer | None:
        try:
            kind = result_type(returns)
            return None if is_untyped(kind) else Serializer(kind)
        except (
            PydanticSchemaGenerationError,
            PydanticUndefinedAnnotation,
            UnfoundNameError,
            NameError,  # from a type alias or type parameter, resolved late
        ):
            return None
        except (PydanticUserError, UnsendableError) as error:
            if getattr(error, "code", "") == UNDEFINED:
                return None
            raise ToolDefinitionError(
                f"The result of {self._tool} has a type that cannot be read: "
                f"{str(error).splitlines()[0]}"
            ) from error

    def _describe(self, generated: dict[str, Any], text: str) -> None:
        schema = tidy(generated, nulls=True)
        root = resolve(schema, schema)
        self._wrapped = root.get("type") != "object"
        if self._wrapped:
            self.schema = _wrapped(schema, text)
        elif root is schema:
            self.schema = schema
        else:  # a recursive type only refers to itself; it must be at the root
            self.schema = {**root, "$defs": schema["$defs"]}

    def _merge(self, collected: Collected) -> object:
        """Merges an iterator's items and return value into one value.

        The return value is dropped if it is None and not declared.
        """
        if self._has_return_value or (self._serializer is None and collected.returned is not None):
            return {"items": collected.items, "returned": collected.returned}
        if collected.returned is None:
            return collected.items
        raise self._defect(
            "something besides what it yields, which its return type does not mention; make it "
            "Generator[…, None, …]"
        )

    def _defect(self, problem: str) -> ToolError:
        kind = InternalError if self._is_ours else ToolFailedError
        return kind(
            f"{self._tool} returned {problem}. This is a defect of the tool, not of the arguments."
        )


def _wrapped(schema: dict[str, Any], text: str) -> dict[str, Any]:
    definitions = schema.pop("$defs", None)
    if text:
        schema.setdefault("description", text)
    wrapped = {"type": "object", "properties": {RESULT: schema}, "required": [RESULT]}
    return {**wrapped, "$defs": definitions} if definitions else wrapped


def _field(value: object, name: str, former: str) -> Any:
    """Returns a field of a result, which has another name in SDKs before 2.0."""
    return getattr(value, name) if hasattr(value, name) else getattr(value, former, None)


def _text(value: object, clean: Any, text: str) -> str:
    """Returns the value's own text, or that of its content blocks, or `text`: that of its JSON."""
    to_text = getattr(type(value), "to_text", None)
    if callable(to_text):
        return str(to_text(value))
    blocks = [] if isinstance(clean, str) else lines(value)
    if not blocks:
        return text
    forms = clean if isinstance(clean, list) else [clean]
    return "\n".join(
        _compact({key: part for key, part in form.items() if part is not None})
        if block is None
        else block
        for block, form in zip(blocks, forms, strict=True)
    )


def _compact(value: object) -> str:
    return to_json(value).decode()


class Serializer:
    """Serializes values of a return type.

    `schema` is its JSON Schema (2020-12), or None if JSON Schema cannot express it. A type that
    pydantic cannot read raises its PydanticUserError or PydanticUndefinedAnnotation.
    """

    def __init__(self, returns: Any) -> None:
        self._adapter = result_adapter(returns)
        nodes = list(core_types(self._adapter.core_schema))
        for name in filter(None, (protocol_result(node.get("cls")) for node in nodes)):
            raise UnsendableError(f"a {name} inside another value; return it by itself")
        kinds = {node["type"] for node in nodes}
        self.schema = result_schema(self._adapter, kinds)
        self._serializes = not kinds <= INERT or any("serialization" in node for node in nodes)
        self._is_open = not kinds.isdisjoint(OPEN)
        fields = [getattr(node.get("cls"), "model_fields", {}).keys() for node in nodes]
        self._may_hold_blocks = "any" in kinds or any(
            "blob" in names or {"type", "data"} <= names for names in fields
        )
        self._json_only = any(map(_is_json_only, nodes))

    def serialize(self, value: Any, media: list[Attachment]) -> Any:
        """Returns the value in the form its type describes, ready for `to_jsonable`.

        Numpy and pandas values are treated as the builtin values they represent. Images and sounds
        are moved to `media`. A value that does not match the type raises a ValueError.
        """
        try:
            return self._validate_and_dump(value if self._is_open else self._exact(value), media)
        except BROKEN as error:
            broken = error
        for form in self._other_forms(value):
            with suppress(*BROKEN):
                return self._validate_and_dump(form, media)
        raise broken

    def _exact(self, value: Any) -> Any:
        """Converts numpy's large integers exactly; pydantic would round them."""
        return value if isinstance(value, BaseModel) else replaced(value, to_builtin, objects=False)

    def _other_forms(self, value: Any) -> Iterator[Any]:
        if self._is_open:
            yield self._exact(value)
        yield from alternatives(value)
        whole = replaced(value, to_builtin)
        if whole is not value:
            yield whole

    def _validate_and_dump(self, value: Any, media: list[Attachment]) -> Any:
        checked = self._adapter.validate_python(value)
        if not self._serializes:
            return checked
        taken: list[Attachment] = []
        dumped = self._dump(checked, taken)
        media += taken
        return dumped

    def _dump(self, value: Any, media: list[Attachment]) -> Any:
        if self._may_hold_blocks:
            value = without_data(value, media)
        if not self._json_only:
            try:
                return self._adapter.dump_python(value, by_alias=True, warnings="error")
            except TypeError:  # a set of models would become one of dicts
                pass
        dumped = self._adapter.dump_python(
            value,
            mode="json",
            by_alias=True,
            warnings="error",
            fallback=partial(to_jsonable, media=media),
        )
        return ordered(dumped) if isinstance(value, AbstractSet) else dumped


def _is_json_only(node: Mapping[str, Any]) -> bool:
    """Returns whether a type's JSON form differs from its Python form."""
    config = node.get("config") or {}
    serialization = node.get("serialization") or {}
    return str(serialization.get("when_used")).startswith("json") or any(
        option in config for option in JSON_OPTIONS
    )
