"""The arguments of a tool: their schema, and what is made of what a caller sends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    Field,
    PydanticUndefinedAnnotation,
    PydanticUserError,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, from_json

from tools.core.conversion.complaints import complaint, nearest, show, unknown
from tools.core.conversion.schema import SchemaGenerator, child, tidy, types
from tools.core.conversion.signature import NOTHING, Parameter
from tools.core.errors import InvalidArgumentsError, ToolDefinitionError

__all__ = ["Arguments"]

REPORTED = 5
"""Wrong values that are listed of one argument, and unknown names: thousands can be sent."""
UNSAYABLE = (PydanticUndefinedAnnotation, PydanticUserError, TypeError)
"""What pydantic raises for a type that it cannot validate, or that JSON Schema cannot say."""


@dataclass(frozen=True, slots=True)
class _Argument:
    """How one argument is taken in.

    Attributes:
        parameter: The function's name for it.
        field: The model's name for it.
        null_is_default: Whether an explicit null says the same as leaving it out.
        structure: Whether it is a list or an object and never a text, so that a text is its JSON.
    """

    parameter: str
    field: str
    null_is_default: bool
    structure: bool


class Arguments:
    """The arguments that a caller gives to one tool.

    Attributes:
        schema: JSON Schema (2020-12) of the arguments object.
    """

    def __init__(
        self, tool: str, parameters: Sequence[Parameter], texts: Mapping[str, str]
    ) -> None:
        """Builds the schema and the validator.

        Args:
            tool: The tool's name, for messages.
            parameters: What the caller gives. One whose type JSON cannot say keeps its default.
            texts: Descriptions for parameters that do not describe themselves.

        Raises:
            ToolDefinitionError: If JSON cannot say the type of a parameter without a default.
        """
        self._tool = tool
        self._model, generated, kept = _build(tool, parameters)
        infos = self._model.model_fields
        names = {str(infos[field].alias): field for field in kept}
        for name, field in names.items():
            text = _own_text(infos[field]) or texts.get(kept[field].name)
            if text:
                generated["properties"][name].setdefault("description", text)
        self.schema = _arguments_schema(generated)
        self._arguments = {
            name: self._argument(name, field, kept[field]) for name, field in names.items()
        }

    def validate(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Checks and converts what a caller sent.

        A text for a list or an object is read as its JSON, a number as text is read as the number,
        and null for an argument whose type has no None is its default.

        Args:
            raw: Decoded JSON, by argument.

        Returns:
            The value of each parameter, defaults included.

        Raises:
            InvalidArgumentsError: If anything is wrong; it tells of all that is wrong at once.
        """
        if not isinstance(raw, Mapping):
            raise self._error([f"they are {show(raw)}; send an object with the arguments by name."])
        strangers = [name for name in raw if name not in self._arguments]
        problems = [unknown("", name, self._arguments) for name in strangers[:REPORTED]]
        if len(strangers) > REPORTED:
            problems.append(f"{len(strangers) - REPORTED} more names are unknown.")
        near = [nearest(name, self._arguments) for name in strangers[:REPORTED]]
        suggestions = [name for name in near if name]
        try:
            prepared = self._prepared(raw)
            problems += self._complaints(_booleans_for_numbers(prepared, self.schema, self.schema))
            values = vars(self._model.model_validate(prepared))
        except ValidationError as error:
            problems += self._complaints(error.errors(include_url=False))
        except RecursionError:
            problems.append("they are nested too deeply; send fewer levels.")
        if problems:
            raise self._error(list(dict.fromkeys(problems)), suggestions)
        return {each.parameter: values[each.field] for each in self._arguments.values()}

    def _argument(self, name: str, field: str, parameter: Parameter) -> _Argument:
        kinds = types(self.schema["properties"][name], self.schema)
        required = self._model.model_fields[field].is_required()
        return _Argument(
            parameter=parameter.name,
            field=field,
            null_is_default=bool(kinds) and not (required or parameter.nullable),
            structure="string" not in kinds and not kinds.isdisjoint({"array", "object"}),
        )

    def _prepared(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        prepared = {}
        for name, argument in self._arguments.items():
            if name not in raw or (raw[name] is None and argument.null_is_default):
                continue
            value = raw[name]
            prepared[name] = _decoded(value) if argument.structure else value
        return prepared

    def _complaints(self, errors: Iterable[ErrorDetails]) -> list[str]:
        by_argument: dict[int | str, list[ErrorDetails]] = {}
        for each in errors:
            by_argument.setdefault(each["loc"][0], []).append(each)
        lines: list[str] = []
        for name, found in by_argument.items():
            lines += dict.fromkeys(complaint(each, self.schema) for each in found[:REPORTED])
            if len(found) > REPORTED:
                lines.append(f"`{name}` has {len(found) - REPORTED} more wrong values.")
        return lines

    def _error(
        self, problems: Sequence[str], suggestions: Sequence[str] = ()
    ) -> InvalidArgumentsError:
        lines = "\n".join(f"- {problem}" for problem in problems)
        return InvalidArgumentsError(
            f"The arguments of {self._tool} are wrong:\n{lines}",
            suggestions=suggestions,
            next_actions=[f"Correct what is listed and call {self._tool} again."],
        )


def _build(
    tool: str, parameters: Sequence[Parameter]
) -> tuple[type[BaseModel], dict[str, Any], dict[str, Parameter]]:
    """The model, its raw schema, and the parameters that are in it by field name."""
    try:
        return _model(tool, parameters)
    except UNSAYABLE:
        return _model(tool, [each for each in parameters if _sayable(tool, each)])


def _sayable(tool: str, parameter: Parameter) -> bool:
    try:
        _model(tool, [parameter])
    except UNSAYABLE as error:
        if parameter.default is NOTHING:
            reason = str(error).splitlines()[0].rstrip(".")
            raise ToolDefinitionError(
                f"The parameter {parameter.name} of {tool} cannot be an argument ({reason}); give "
                "it a type that JSON can say, or a default that it is left to."
            ) from error
        return False
    return True


def _model(
    tool: str, parameters: Sequence[Parameter]
) -> tuple[type[BaseModel], dict[str, Any], dict[str, Parameter]]:
    # Fields bear numbers because models have methods called `schema`, `json` and `copy`.
    fields = {f"p{place}": parameter for place, parameter in enumerate(parameters)}
    definitions: dict[str, Any] = {field: _field(each) for field, each in fields.items()}
    model: type[BaseModel] = create_model(tool, **definitions)
    return model, model.model_json_schema(schema_generator=SchemaGenerator), fields


def _field(parameter: Parameter) -> tuple[Any, Any]:
    annotation, default = parameter.annotation, parameter.default
    if isinstance(default, FieldInfo):
        annotation, default = Annotated[annotation, default], NOTHING
    own = FieldInfo.from_annotation(annotation)
    if default is NOTHING and own.is_required() and parameter.nullable:
        default = None
    alias = own.alias or parameter.name
    if default is NOTHING:
        return annotation, Field(alias=alias)
    return annotation, Field(default=default, alias=alias)


def _own_text(info: FieldInfo) -> str | None:
    """The text of `Annotated[T, "text"]` or `Annotated[T, Doc("text")]`."""
    texts = (
        each if isinstance(each, str) else getattr(each, "documentation", None)
        for each in info.metadata
    )
    return next(filter(None, texts), None)


def _arguments_schema(generated: Mapping[str, Any]) -> dict[str, Any]:
    tidied = tidy(generated, nulls=False)
    schema = {"type": "object", "properties": tidied.get("properties", {})}
    if "required" in tidied:
        schema["required"] = tidied["required"]
    schema["additionalProperties"] = False
    if "$defs" in tidied:
        schema["$defs"] = tidied["$defs"]
    return schema


def _decoded(value: object) -> object:
    """The list or object that a text is the JSON of; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        decoded = from_json(value)
    except (TypeError, ValueError):  # TypeError: half of a surrogate pair
        return value
    return decoded if isinstance(decoded, list | dict) else value


def _booleans_for_numbers(
    value: object, schema: Mapping[str, Any], root: Mapping[str, Any], *place: int | str
) -> Iterator[ErrorDetails]:
    """The booleans where only a number may stand: pydantic would take them for 1 and 0."""
    if isinstance(value, bool):
        kinds = types(schema, root)
        if "boolean" not in kinds and not kinds.isdisjoint({"integer", "number"}):
            yield {"type": "bool_for_number", "loc": place, "msg": "", "input": value}
    elif isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            inner = child(schema, key, root) if isinstance(part, bool | dict | list) else None
            if inner is not None:
                yield from _booleans_for_numbers(part, inner, root, *place, key)
