"""Builds forms from types, and values of these types from what the user entered.

A form is flat: texts, numbers, booleans, and single or multiple choices
(https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation).
"""

from __future__ import annotations

import json
import re
import sys
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import TypedDict

from tools.conversion.schema_reading import is_secret, merged
from tools.core.errors import InvalidArgumentsError, ToolDefinitionError

ValueT = TypeVar("ValueT")

ALONE = "answer"
"""The field of a form that asks for a single value."""

_FORMATS = frozenset({"email", "uri", "date", "date-time"})
"""Text formats of the protocol's forms; other formats are checked by validation only."""

_KEPT: Mapping[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "boolean": (),
    "array": ("minItems", "maxItems"),
}
"""Schema keywords that a field of each type keeps, besides texts, default and choices."""

_BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_NAMES = "x-names"
"""A temporary keyword for the names of enum members, until they become titles."""


class FormOf(Generic[ValueT]):
    """The form that asks for a value of a type.

    Raises:
        ToolDefinitionError: If no form can ask for the type; the message names the field.
    """

    def __init__(self, kind: type[ValueT]) -> None:
        name = getattr(kind, "__name__", str(kind))
        try:
            self._adapter: TypeAdapter[ValueT] = TypeAdapter(_readable_type(kind))
            said = self._adapter.json_schema(schema_generator=_Schemas)
        except PydanticUserError as error:
            raise _refusal(name, str(error).splitlines()[0].rstrip(".")) from error
        whole = merged(said, said)
        if whole.get("properties") == {}:
            raise _refusal(name, "it has no fields")
        self._is_alone = "properties" not in whole
        # Its name in the protocol's format; empty for a single value.
        self.name = "" if self._is_alone else _BETWEEN_WORDS.sub("_", name).lower()
        fields, required = whole.get("properties", {}), whole.get("required", ())
        if self._is_alone:
            fields, required = {ALONE: {**said, "title": "Your answer"}}, (ALONE,)
        self._fields: dict[str, _Field] = {}
        for each, schema in fields.items():
            try:
                self._fields[each] = _field(merged(schema, said), said)
            except _NoFieldError as error:
                where = name if self._is_alone else f"{name}.{each}"
                raise _refusal(where, str(error)) from error
        self._nullable = [each for each in required if self._fields[each].is_nullable]
        self._required = [each for each in required if each not in self._nullable]
        self.schema: dict[str, Any] = {
            "type": "object",
            "properties": {each: field.schema for each, field in self._fields.items()},
            **({"required": self._required} if self._required else {}),
        }

    def is_answered(self, content: Mapping[str, Any]) -> bool:
        """Returns whether all required fields are filled in; some clients send an empty form."""
        return all(content.get(each) is not None for each in self._required)

    def value(self, content: Mapping[str, Any]) -> ValueT:
        """Converts what the user entered to a value of the type."""
        said: dict[str, Any] = dict.fromkeys(self._nullable)
        for each, field in self._fields.items():
            if content.get(each) is not None:
                said[each] = field.meant(content[each])
        try:
            return self._adapter.validate_json(json.dumps(said[ALONE] if self._is_alone else said))
        except ValidationError as error:
            wrong = "; ".join(
                f"{'.'.join(map(str, each['loc'])) or ALONE}: {each['msg']}"
                for each in error.errors(include_url=False, include_input=False)
            )
            raise InvalidArgumentsError(
                f"The user's form input is invalid: {wrong}.",
                next_actions=["Call again, and have the user fill in the form once more."],
            ) from error


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a form."""

    schema: dict[str, Any]
    choices: Mapping[str, Any]  # the value of each choice's text; empty without choices
    is_nullable: bool  # whether it may be left empty, which means None

    def meant(self, said: object) -> object:
        """Returns the value of a choice; other input is left to validation."""
        if isinstance(said, list):
            return [self.meant(each) for each in said]
        return self.choices.get(said, said) if isinstance(said, str) else said


class _NoFieldError(Exception):
    """Explains why a type cannot be a field of a form."""


class _Schemas(GenerateJsonSchema):
    """Adds the names of an enum's members, from which users choose."""

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        names = [each.name.replace("_", " ") for each in schema["members"]]
        return {**super().enum_schema(schema), _NAMES: names}


def _field(said: dict[str, Any], root: Mapping[str, Any]) -> _Field:
    said, is_nullable = _without_null(said, root)
    if is_secret(said):
        raise _NoFieldError("a form must not ask for a secret (MCP, elicitation)")
    if said.get("type") == "array":
        items, _ = _without_null(merged(said.get("items", {}), root), root)
        choices, chosen = _choices(items, "anyOf")
        if not choices:
            raise _NoFieldError("a list can only be some of several choices: list[Literal[…]]")
        shown: dict[str, Any] = {"type": "array", "items": chosen}
    else:
        choices, shown = _choices(said, "oneOf")
        shown = shown or _scalar_schema(said)
    kept = ("title", "description", *_KEPT[shown["type"]])
    shown |= {key: said[key] for key in kept if key in said}
    default = said.get("default")
    if choices:
        default = _choice_text(default)
    elif isinstance(default, str) and shown["type"] == "number":  # a Decimal's
        default = float(default)
    if said.get("default") is not None:
        shown["default"] = default
    return _Field(shown, choices, is_nullable)


def _scalar_schema(said: Mapping[str, Any]) -> dict[str, Any]:
    kind = said.get("type")
    if kind not in {"string", "number", "integer", "boolean"}:
        raise _NoFieldError("it is not a plain value" if kind else "it has no type")
    shown = {"type": kind}
    if said.get("format") in _FORMATS:
        shown["format"] = said["format"]
    step = 1 if kind == "integer" else 0
    for bound, sign in (("minimum", 1), ("maximum", -1)):
        exclusive = said.get(f"exclusive{bound.capitalize()}")
        if exclusive is not None:
            shown[bound] = exclusive + sign * step
    return shown


def _choices(said: Mapping[str, Any], titled: str) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Returns the values by the text of their choice, and the schema; empty without choices."""
    own = said.get("oneOf", ())  # from an author's `json_schema_extra`
    values = [each["const"] for each in own] or said.get("enum") or [said.get("const")]
    if values == [None]:
        return {}, {}
    texts = [_choice_text(each) for each in values]
    shown: dict[str, Any] = {} if titled == "anyOf" else {"type": "string"}
    titles = [each["title"] for each in own] or said.get(_NAMES, texts)
    if list(map(_plainly, titles)) != list(map(_plainly, texts)):
        shown[titled] = [
            {"const": text, "title": title} for text, title in zip(texts, titles, strict=True)
        ]
    else:
        shown |= {"type": "string", "enum": texts}
    if "enumNames" in said:
        shown["enumNames"] = said["enumNames"]
    return dict(zip(texts, values, strict=True)), shown


def _plainly(text: str) -> str:
    """Strips a name's spelling: RED_BED as a title adds nothing to the choice red-bed."""
    return "".join(filter(str.isalnum, text)).lower()


def _choice_text(value: Any) -> Any:  # noqa: ANN401  # a default of any type
    if isinstance(value, list):
        return [_choice_text(each) for each in value]
    return value if isinstance(value, str) else json.dumps(value)


def _without_null(said: dict[str, Any], root: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Returns the one alternative that a form can ask for, and whether null is another."""
    if None in said.get("enum", ()):
        return {**said, "enum": [each for each in said["enum"] if each is not None]}, True
    if "anyOf" not in said:
        return said, False
    each = [merged(one, root) for one in said["anyOf"]]
    others = [one for one in each if one.get("type") != "null"]
    numbers = [one for one in others if one.get("type") == "number"]  # Decimal: also as a text
    only = others if len(others) == 1 else numbers
    if len(only) != 1:
        raise _NoFieldError("it may be of several types, and a form asks for one")
    rest = {key: value for key, value in said.items() if key != "anyOf"}
    return {**only[0], **rest}, len(others) < len(each)


def _readable_type(kind: Any) -> Any:  # noqa: ANN401  # any type goes in
    """Returns a type that pydantic accepts; before Python 3.12 it rejects typing.TypedDict."""
    if sys.version_info >= (3, 12) or not typing.is_typeddict(kind):
        return kind
    fields = typing.get_type_hints(kind, include_extras=True)
    return TypedDict(kind.__name__, fields, total=kind.__total__)  # type: ignore[operator]  # mypy wants them written out


def _refusal(what: str, why: str) -> ToolDefinitionError:
    return ToolDefinitionError(
        f"No form can ask for {what}: {why}. Ask for a model, dataclass or TypedDict whose fields"
        " are texts, numbers, yes or no, or choices (Literal, Enum), or for one of these alone."
    )
