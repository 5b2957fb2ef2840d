"""Definitions of created tools: what callers are told of them, checked before they are kept.

The schemas come from the process that loaded the source, and so from whoever wrote that: nothing
else is taken from there, and of the schemas only what shows what it holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tools.conversion.callables.docstrings import description
from tools.core.errors import InvalidArgumentsError
from tools.functions.programs.drafts import Draft, check_text

__all__ = ["definition_of"]

LONGEST = 20_000
"""Characters of both schemas together."""

TEXTS = frozenset({"title", "description", "examples"})
"""What a schema says to its reader alone."""

Schema = Mapping[str, Any]


def definition_of(
    draft: Draft, sent: Mapping[str, Any], told: str, parameters: Schema | None
) -> dict[str, Any]:
    """Returns the description and the schemas of a tool.

    Args:
        draft: Its source.
        sent: What its process says of it.
        told: The description that was given; empty for that of the docstring.
        parameters: The JSON Schema of the arguments that was given, if any.

    Raises:
        InvalidArgumentsError: If the parts do not fit each other.
    """
    schema, output = sent.get("input_schema"), sent.get("output_schema")
    if not isinstance(schema, Mapping) or not isinstance(output, Mapping | None):
        raise _unfit(["what it loaded as is no tool"])
    properties = schema.get("properties", {})
    if sorted(properties) != sorted(draft.parameters):
        raise _unfit([f"it takes {_named(draft.parameters)}, and loaded as {_named(properties)}"])
    texts = dict(draft.said.parameters)
    if parameters is not None:
        if problems := [*_misfits(parameters, schema)]:
            raise InvalidArgumentsError(
                f"parameters: {'; '.join(problems)}.",
                next_actions=["Make it say what the signature says, or leave it out."],
            )
        for name, each in parameters.get("properties", {}).items():
            texts[name] = str(each.get("description", texts.get(name, "")))
    described = {
        name: {**each, "description": texts[name]} if texts.get(name) else each
        for name, each in properties.items()
    }
    definition = {
        "function": draft.function,
        "description": told or description(draft.said),
        "input_schema": {**schema, "properties": described},
        "output_schema": output,
    }
    said = json.dumps(definition, ensure_ascii=False)
    check_text("implementation", said)
    if len(said) > LONGEST:
        raise _unfit([f"its definition has {len(said):,} characters, {LONGEST:,} are allowed"])
    return definition


def _unfit(problems: list[str]) -> InvalidArgumentsError:
    return InvalidArgumentsError(
        f"implementation: {'; '.join(problems)}.",
        next_actions=["Change the function so that its signature says what it takes."],
    )


def _misfits(given: Schema, schema: Schema) -> Iterator[str]:
    """Where a schema that was given says something else than the signature."""
    wanted, there = given.get("properties", {}), schema.get("properties", {})
    if not isinstance(wanted, Mapping) or wanted.keys() != there.keys():
        yield f"it has {_named(wanted)}, and the function {_named(there)}"
        return
    needed, required = given.get("required"), schema.get("required", [])
    if needed is not None and sorted(map(str, needed)) != sorted(required):
        yield f"it requires {_named(needed)}, and the function {_named(required)}"
    for name, each in wanted.items():
        if not isinstance(each, Mapping):
            yield f"{name} is no schema"
            continue
        for key in each.keys() - TEXTS:
            if there[name].get(key) != each[key]:
                yield f"{name} has {key} {json.dumps(each[key])}, and in the signature not"


def _named(names: Any) -> str:  # noqa: ANN401  # any collection of names
    return ", ".join(map(str, names)) or "none"
