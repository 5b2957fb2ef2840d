"""Definitions of created tools: what callers are told of them, checked before they are kept.

The schemas come from the process that loaded the source, and so from whoever wrote that: nothing
else is taken from there, and of the schemas only what shows what it holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped]  # ships no types
from pydantic import BaseModel, ValidationError

from tools.conversion.callables.docstrings import description
from tools.core.audit.secret_schema import subschemas
from tools.core.errors import InvalidArgumentsError
from tools.functions.programs.drafts import Draft, check_text

OWN = "#/$defs/"
"""What references within a schema begin with."""

LONGEST = 20_000
"""Characters of a definition."""

TEXTS = frozenset({"title", "description", "examples"})
"""What a schema says to its reader alone."""


class _Object(BaseModel, extra="allow"):
    """The JSON Schema of an object."""

    type: Literal["object"]


class _Arguments(_Object):
    """The JSON Schema of a tool's arguments."""

    type: Literal["object"] = "object"  # as nobody who gives one has to say
    properties: dict[str, dict[str, Any]] = {}
    required: list[str] | None = None


class _Sent(BaseModel):
    """What a process says of a tool."""

    input_schema: _Arguments
    output_schema: _Object | None


def definition_of(
    draft: Draft, sent: Mapping[str, Any], told: str, parameters: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Returns the description and the schemas of a tool.

    Args:
        draft: Its source.
        sent: What its process says of it.
        told: The description that was given; empty for that of the docstring.
        parameters: The JSON Schema of the arguments that was given, if any.
    """
    try:
        found = _Sent.model_validate(sent)
        for each in (sent["input_schema"], sent["output_schema"]):
            _check_schema(each)
    except (ValidationError, SchemaError, RecursionError):
        raise _unfit("what it loaded as is no tool") from None
    schema = found.input_schema
    if sorted(schema.properties) != sorted(draft.parameters):
        takes, loaded = _named(draft.parameters), _named(schema.properties)
        raise _unfit(f"it takes {takes}, and loaded as {loaded}")
    texts = {**draft.said.parameters, **_texts(parameters, schema)}
    for name, text in texts.items():
        if text and name in schema.properties:
            schema.properties[name]["description"] = text
    definition = {
        "function": draft.function,
        "description": told or description(draft.said),
        "input_schema": schema.model_dump(exclude_none=True),
        "output_schema": sent["output_schema"],
    }
    try:
        said = json.dumps(definition, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise _unfit("its schemas have numbers that JSON cannot say") from None
    check_text("implementation", said)
    if len(said) > LONGEST:
        raise _unfit(f"its definition has {len(said):,} characters, {LONGEST:,} are allowed")
    return definition


def _check_schema(schema: Mapping[str, Any] | None) -> None:
    """Refuses what clients may refuse, and with it every tool that is listed.

    Raises:
        SchemaError: Because it is no JSON Schema, or refers to what is no part of it.
    """
    if schema is None:
        return
    if len(json.dumps(schema)) > LONGEST:  # before anything looks at its parts
        raise SchemaError("It is too long.")
    Draft202012Validator.check_schema(schema)
    references = (each["$ref"] for each in subschemas(schema, schema) if "$ref" in each)
    if not all(each.removeprefix(OWN) in schema.get("$defs", {}) for each in references):
        raise SchemaError("A reference leads nowhere.")


def _texts(given: Mapping[str, Any] | None, schema: _Arguments) -> dict[str, str]:
    """What a schema that was given says of each parameter."""
    if given is None:
        return {}
    try:
        wanted = _Arguments.model_validate(given)
        problems = [*_misfits(wanted, schema)]
    except ValidationError:
        problems = ["it is no JSON Schema of an object"]
    if problems:
        raise InvalidArgumentsError(
            f"parameters: {'; '.join(problems)}.",
            next_actions=["Make it say what the signature says, or leave it out."],
        )
    return {name: str(each.get("description", "")) for name, each in wanted.properties.items()}


def _misfits(wanted: _Arguments, schema: _Arguments) -> Iterator[str]:
    if wanted.properties.keys() != schema.properties.keys():
        yield f"it has {_named(wanted.properties)}, and the function {_named(schema.properties)}"
        return
    required = schema.required or []
    if wanted.required is not None and sorted(wanted.required) != sorted(required):
        yield f"it requires {_named(wanted.required)}, and the function {_named(required)}"
    for name, each in wanted.properties.items():
        for key in sorted(each.keys() - TEXTS):
            if schema.properties[name].get(key) != each[key]:
                yield f"{name} has {key} {json.dumps(each[key])}, and in the signature not"


def _unfit(problem: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(
        f"implementation: {problem}.",
        next_actions=["Change the function so that its signature says what it takes."],
    )


def _named(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
