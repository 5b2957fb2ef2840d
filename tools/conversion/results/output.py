"""The result of a tool: its schema, and what is made of what the function returned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic import (
    BaseModel,
    PydanticUndefinedAnnotation,
    PydanticUserError,
    ValidationError,
)
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_core import PydanticSerializationError, to_json

from tools.conversion.arguments.input_types import text_of
from tools.conversion.callables.annotations import UnfoundNameError
from tools.conversion.results.arrays import alternatives, to_builtin
from tools.conversion.results.attachments import lines, without_data
from tools.conversion.results.blocks import blocks_of
from tools.conversion.results.jsonable import (
    ordered,
    protocol_result,
    refuse_held,
    to_jsonable,
    to_noted,
)
from tools.conversion.results.replacement import replaced
from tools.conversion.results.return_type import (
    core_types,
    has_return_value,
    is_untyped,
    result_adapter,
    result_schema,
    result_type,
)
from tools.conversion.schemas.reading import resolve
from tools.conversion.schemas.tidy import tidy
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

INERT = frozenset(
    {
        "any",
        "bool",
        "bytes",
        "complex",
        "date",
        "datetime",
        "decimal",
        "deque",
        "dict",
        "enum",
        "float",
        "frozenset",
        "int",
        "is-instance",
        "list",
        "literal",
        "none",
        "nullable",
        "set",
        "str",
        "time",
        "timedelta",
        "tuple",
        "union",
        "uuid",
    }
)
"""Kinds of types whose values are sent as they are, with no serializer of their own."""
OPEN = frozenset({"any", "is-instance"})
"""Kinds of types that may hold values that pydantic knows nothing of."""
JSON_OPTIONS = ("ser_json_bytes", "ser_json_temporal", "ser_json_timedelta")
"""Options of a model that change its JSON only."""
BROKEN = (PydanticSerializationError, ValidationError)
UNDEFINED = "class-not-fully-defined"
"""What pydantic says of a type with a name in it that only type checkers know."""


@dataclass(frozen=True, slots=True)
class Collected:
    """All that an iterator gave.

    Attributes:
        items: What it yielded.
        returned: What it returned at its end, None where that was nothing.
    """

    items: list[Any]
    returned: Any = None


class Output:
    """The result of one tool.

    Attributes:
        schema: JSON Schema (2020-12) of the structured result, always an object; None where the
            function says no type, or one that JSON Schema cannot represent.
    """

    def __init__(
        self,
        tool: str,
        returns: Any,
        text: str = "",
        *,
        is_ours: bool = False,
    ) -> None:
        """Builds the schema and the serializer; `text` is what the docstring says of the result."""
        self._tool = tool
        self._is_ours = is_ours
        self._has_return_value = has_return_value(returns)
        self._wrapped = False
        self.schema: dict[str, Any] | None = None
        self._serializer = self._make_serializer(returns)
        if self._serializer is not None and self._serializer.schema:
            self._describe(self._serializer.schema, text_of(returns) or text)

    def result(self, value: object) -> ToolResult:
        """Returns the answer to a call, given what the function returned.

        Its own `to_text()`, where it has one, is what the model reads. A ToolResult is the answer
        already; the SDK's and FastMCP's are passed on.
        """
        if isinstance(value, ToolResult):
            return value
        if isinstance(value, Collected):
            value = self._whole(value)
        made, note = self._passed_on(value) if protocol_result(type(value)) else self._made(value)
        if not note:
            return made
        blocks = made.blocks or (made.text, *made.media)
        return replace(made, text=f"{made.text}\n{note}", blocks=(*blocks, note))

    def _made(self, value: object) -> tuple[ToolResult, str]:
        """The answer, and a note of what JSON cannot say."""
        media: list[Attachment] = []
        try:
            kept = value if self._serializer is None else self._serializer.serialize(value, media)
            clean, note = to_noted(kept, media)
        except UnsendableError as error:
            raise self._defect(str(error)) from error
        except RecursionError as error:
            told = "the wrong type: a value that contains itself, or is nested too deeply"
            raise self._defect(told) from error
        except (AttributeError, ValueError) as error:  # such as a field that was never set
            kind = "None" if value is None else type(value).__name__
            told = f"the wrong type: {kind} does not match its return type"
            raise self._defect(told) from error
        wrapped = self._wrapped or not isinstance(clean, dict)
        structured = {RESULT: clean} if wrapped else clean
        blocks = blocks_of(value, clean, media)
        return ToolResult(structured, _text(value, clean), media=tuple(media), blocks=blocks), note

    def _passed_on(self, value: Any) -> tuple[ToolResult, str]:
        """The same of the SDK's or FastMCP's result."""
        kind = protocol_result(type(value))
        if kind == "InputRequiredResult":
            raise self._defect(f"an {kind}, which is no answer; ask with RequestContext.ask")
        content: list[Any] = list(value.content)
        media: list[Attachment] = []
        text = "\n".join(filter(None, lines(content)))
        structured = _field(value, "structured_content", "structuredContent")
        if _field(value, "is_error", "isError"):
            if structured and not text.startswith(("{", "[")):  # else it is there as a text too
                text = f"{text}\n{_compact(to_jsonable(structured))}".strip()
            raise ToolFailedError(text or f"{self._tool} failed and does not say why.")
        clean = to_jsonable(content, media)
        if structured is None and self._serializer is None:
            answer, note = ToolResult({RESULT: clean if media or not text else text}, ""), ""
        else:
            if self._wrapped and isinstance(structured, dict) and structured.keys() == {RESULT}:
                structured = structured[RESULT]
            answer, note = self._made(structured)
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
            NameError,  # of a type alias or a type parameter, which are looked up late
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
        self._wrapped = resolve(schema, schema).get("type") != "object"
        if self._wrapped:
            self.schema = _wrapped(schema, text)
        else:
            self.schema = _unfolded(schema)

    def _whole(self, collected: Collected) -> object:
        """What an iterator gave as one value, which has what it returned where anybody reads it."""
        if self._has_return_value or (self._serializer is None and collected.returned is not None):
            return {"items": collected.items, "returned": collected.returned}
        if collected.returned is None:
            return collected.items
        told = "something besides what it yields, which its return type does not mention; make it"
        raise self._defect(f"{told} Generator[…, None, …]")

    def _defect(self, told: str) -> ToolError:
        kind = InternalError if self._is_ours else ToolFailedError
        return kind(
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


def _field(value: object, name: str, former: str) -> Any:
    """A field of a result, which SDKs before 2.0 name otherwise."""
    return getattr(value, name) if hasattr(value, name) else getattr(value, former, None)


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


class Serializer:
    """A return type.

    Attributes:
        schema: Its JSON Schema (2020-12) as pydantic generates it, None where JSON Schema cannot
            say it.
    """

    def __init__(self, returns: Any) -> None:
        """Looks into the type.

        Raises:
            PydanticUserError: If it cannot be read.
            PydanticUndefinedAnnotation: If it names something that is not defined.
        """
        self._adapter = result_adapter(returns)
        nodes = list(core_types(self._adapter.core_schema))
        for name in filter(None, (protocol_result(node.get("cls")) for node in nodes)):
            raise UnsendableError(f"a {name} inside another value; return it by itself")
        kinds = {node["type"] for node in nodes}
        self.schema = result_schema(self._adapter, kinds)
        self._serializes = not kinds <= INERT or any("serialization" in node for node in nodes)
        self._is_open = not kinds.isdisjoint(OPEN)
        self._may_hold_blocks = "any" in kinds or any(map(_is_block, nodes))
        self._json_only = any(map(_is_json_only, nodes))

    def serialize(self, value: Any, media: list[Attachment]) -> Any:
        """Returns the value as its type describes it, ready for `to_jsonable`.

        Values of numpy and pandas are taken for the builtin ones that they stand for. Images and
        sounds that are taken out are added to `media`.

        Raises:
            ValueError: If the value is not of that type.
        """
        try:
            return self._held(value if self._is_open else self._exact(value), media)
        except BROKEN as error:
            broken = error
        for form in self._other_forms(value):
            with suppress(*BROKEN):
                return self._held(form, media)
        raise broken

    def _exact(self, value: Any) -> Any:
        """The value with large integers of numpy as they are; pydantic would round them."""
        return value if isinstance(value, BaseModel) else replaced(value, to_builtin, objects=False)

    def _other_forms(self, value: Any) -> Iterator[Any]:
        if self._is_open:
            yield self._exact(value)
        yield from alternatives(value)
        whole = replaced(value, to_builtin)
        if whole is not value:
            yield whole

    def _held(self, value: Any, media: list[Attachment]) -> Any:
        checked = self._adapter.validate_python(value)
        if not self._serializes:
            return checked
        taken: list[Attachment] = []
        dumped = self._dumped(checked, taken)
        media += taken
        return dumped

    def _dumped(self, value: Any, media: list[Attachment]) -> Any:
        if self._may_hold_blocks:
            refuse_held(value)
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


def _is_block(node: Mapping[str, Any]) -> bool:
    """Whether a model can be a content block of MCP that carries data."""
    names = getattr(node.get("cls"), "model_fields", {}).keys()
    return "blob" in names or {"type", "data"} <= names


def _is_json_only(node: Mapping[str, Any]) -> bool:
    """Whether a type looks different in JSON than in Python."""
    config = node.get("config") or {}
    serialization = node.get("serialization") or {}
    return str(serialization.get("when_used")).startswith("json") or any(
        option in config for option in JSON_OPTIONS
    )
