"""Builds the definitions of created tools and checks them before they are stored.

The schemas come from the process that loaded the agent's source. Nothing else is taken from there,
and of the schemas only what can be shown as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped]  # ships no types
from pydantic import BaseModel, ValidationError

from tools.conversion.callables.docstrings import description
from tools.conversion.schema_reading import subschemas
from tools.core.errors import InvalidArgumentsError
from tools.functions.programs.source_analysis import Draft, check_text

OWN = "#/$defs/"
"""The prefix of references within a schema."""

LONGEST = 20_000  # maximum characters of a definition

TEXTS = frozenset({"title", "description", "examples"})
"""Keywords that only inform the reader of a schema."""


class _Object(BaseModel, extra="allow"):
    type: Literal["object"]


class _Arguments(_Object):
    type: Literal["object"] = "object"  # optional for callers
    properties: dict[str, dict[str, Any]] = {}
    required: list[str] | None = None


class _Sent(BaseModel):
    input_schema: _Arguments
    output_schema: _Object | None


def definition_of(
    draft: Draft, sent: Mapping[str, Any], told: str, parameters: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Returns the description and the schemas of a tool.

    `told`: the given description; empty for the docstring's.
    """
    try:
        found = _Sent.model_validate(sent)
        for each in (sent["input_schema"], sent["output_schema"]):
            _check_schema(each)
    except (ValidationError, SchemaError, RecursionError):
        raise _unfit("it did not load as a tool") from None
    schema = found.input_schema
    if sorted(schema.properties) != sorted(draft.parameters):
        takes, loaded = _name_list(draft.parameters), _name_list(schema.properties)
        raise _unfit(f"its parameters are {takes}, but it loaded with {loaded}")
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
        raise _unfit("its schemas have numbers that JSON cannot express") from None
    check_text("implementation", said)
    if len(said) > LONGEST:
        raise _unfit(
            f"its definition has {len(said):,} characters; at most {LONGEST:,} are allowed"
        )
    return definition


def _check_schema(schema: Mapping[str, Any] | None) -> None:
    """Rejects schemas that clients may reject, together with the whole tool list."""
    if schema is None:
        return
    if len(json.dumps(schema)) > LONGEST:  # before anything looks at its parts
        raise SchemaError("It is too long.")
    Draft202012Validator.check_schema(schema)
    references = (each["$ref"] for each in subschemas(schema, schema) if "$ref" in each)
    if not all(each.removeprefix(OWN) in schema.get("$defs", {}) for each in references):
        raise SchemaError("A reference leads nowhere.")


def _texts(given: Mapping[str, Any] | None, schema: _Arguments) -> dict[str, str]:
    if given is None:
        return {}
    try:
        wanted = _Arguments.model_validate(given)
        problems = [*_misfits(wanted, schema)]
    except ValidationError:
        problems = ["it is not the JSON Schema of an object"]
    if problems:
        raise InvalidArgumentsError(
            f"parameters: {'; '.join(problems)}.",
            next_actions=["Make it match the signature, or leave it out."],
        )
    return {name: str(each.get("description", "")) for name, each in wanted.properties.items()}


def _misfits(wanted: _Arguments, schema: _Arguments) -> Iterator[str]:
    if wanted.properties.keys() != schema.properties.keys():
        own = _name_list(schema.properties)
        yield f"it has {_name_list(wanted.properties)}, but the function has {own}"
        return
    required = schema.required or []
    if wanted.required is not None and sorted(wanted.required) != sorted(required):
        yield (
            f"it requires {_name_list(wanted.required)}, "
            f"but the function requires {_name_list(required)}"
        )
    for name, each in wanted.properties.items():
        for key in sorted(each.keys() - TEXTS):
            if schema.properties[name].get(key) != each[key]:
                yield f"{name} has {key} {json.dumps(each[key])}, but not in the signature"


def _unfit(problem: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(
        f"implementation: {problem}.",
        next_actions=["Change the function so that its signature describes its arguments."],
    )


def _name_list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
