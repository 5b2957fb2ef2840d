"""The type that a function promises to return, and how a value is held to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import fields
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic_core import CoreSchema, PydanticSerializationError, core_schema

from tools.conversion.arguments.shortcuts import simple_schema
from tools.conversion.results.attachments import without_data
from tools.conversion.results.foreign import alternatives, native
from tools.conversion.results.plain import ordered, plain
from tools.conversion.results.replacement import replaced
from tools.conversion.results.result_schema import ResultSchemaGenerator
from tools.core.result import Media

__all__ = ["Promise"]

CONFIG = ConfigDict(allow_inf_nan=True, arbitrary_types_allowed=True, ser_json_bytes="base64")
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
BESIDES = frozenset({"default", "expected", "metadata", "serialization"})
"""What a core schema says of a type besides the types inside it."""
BROKEN = (PydanticSerializationError, ValidationError)


class Promise:
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
        self._adapter: TypeAdapter[Any] = TypeAdapter(
            Annotated[Any, _Exactly(returns)], config=CONFIG
        )
        nodes = list(_nodes(self._adapter.core_schema))
        kinds = {node["type"] for node in nodes}
        self.schema = _schema(self._adapter, kinds)
        self._serializes = not kinds <= INERT or any("serialization" in node for node in nodes)
        self._is_open = not kinds.isdisjoint(OPEN)
        self._may_hold_blocks = "any" in kinds or any(map(_is_block, nodes))
        self._json_only = any(map(_is_json_only, nodes))

    def kept(self, value: Any, shown: list[Media]) -> Any:
        """The value as its type describes it, ready for `plain`.

        Values of numpy and pandas are taken for the builtin ones that they stand for.

        Args:
            value: What the function returned.
            shown: Images and sounds that are taken out are added to it.

        Raises:
            ValueError: If the value is not of that type.
        """
        try:
            return self._held(value if self._is_open else self._exact(value), shown)
        except BROKEN as error:
            broken = error
        for form in self._other_forms(value):
            with suppress(*BROKEN):
                return self._held(form, shown)
        raise broken

    def _exact(self, value: Any) -> Any:
        """The value with large integers of numpy as they are; pydantic would round them."""
        return value if isinstance(value, BaseModel) else replaced(value, native, objects=False)

    def _other_forms(self, value: Any) -> Iterator[Any]:
        if self._is_open:
            yield self._exact(value)
        yield from alternatives(value)
        whole = replaced(value, native)
        if whole is not value:
            yield whole

    def _held(self, value: Any, shown: list[Media]) -> Any:
        checked = self._adapter.validate_python(value)
        if not self._serializes:
            return checked
        taken: list[Media] = []
        dumped = self._dumped(checked, taken)
        shown += taken
        return dumped

    def _dumped(self, value: Any, shown: list[Media]) -> Any:
        if self._may_hold_blocks:
            value = without_data(value, shown)
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
            fallback=partial(plain, shown=shown),
        )
        return ordered(dumped) if isinstance(value, AbstractSet) else dumped


class _Exactly:
    """Stands for a type in an adapter whose options hold for it, whatever type it is."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def __get_pydantic_core_schema__(
        self, _source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = handler.generate_schema(self._kind)
        _add_late_fields(schema, handler, set())
        return schema


def _add_late_fields(schema: Any, handler: GetCoreSchemaHandler, seen: set[str]) -> None:
    """Adds the fields that dataclasses set themselves; pydantic leaves them out.

    What is inside a class of pydantic's stays as it is: its core schema is the class's own.
    """
    if isinstance(schema, list | tuple):
        for part in schema:
            _add_late_fields(part, handler, seen)
    if not isinstance(schema, dict) or hasattr(schema.get("cls"), "__pydantic_fields__"):
        return
    if schema.get("type") == "definition-ref" and schema["schema_ref"] not in seen:
        seen.add(schema["schema_ref"])
        _add_late_fields(handler.resolve_ref_schema(schema), handler, seen)
    if schema.get("type") == "dataclass" and schema["schema"]["type"] == "dataclass-args":
        made = schema["schema"]
        known = {each["name"] for each in made["fields"]}
        made["computed_fields"] += [
            core_schema.computed_field(each.name, core_schema.any_schema())
            for each in fields(schema["cls"])
            if each.name not in known and not each.init
        ]
    for part in schema.values():
        _add_late_fields(part, handler, seen)


def _schema(adapter: TypeAdapter[Any], kinds: AbstractSet[str]) -> dict[str, Any] | None:
    # A float is null in a result where it is no number.
    simple = None if "float" in kinds else simple_schema(adapter.core_schema)
    if simple is not None:
        return simple
    try:
        return adapter.json_schema(mode="serialization", schema_generator=ResultSchemaGenerator)
    except PydanticInvalidForJsonSchema:
        return None


def _nodes(schema: Any) -> Iterator[Mapping[str, Any]]:
    """The types inside a core schema, itself included."""
    if isinstance(schema, list | tuple):
        for part in schema:
            yield from _nodes(part)
    elif isinstance(schema, dict):
        is_node = isinstance(schema.get("type"), str)
        if is_node:
            yield schema
        for key, part in schema.items():
            if not (is_node and key in BESIDES):
                yield from _nodes(part)


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
