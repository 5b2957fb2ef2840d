"""Customizes tools to the sources, directories and secrets in the settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import shorten
from typing import Any

from storage.retrieval.routing import Source
from tools.answers.filters import supported_filters
from tools.conversion.schema_reading import resolve
from tools.core.collections import Collections
from tools.core.spec import ToolSpec

LONGEST_DESCRIPTION = 1_200
"""Limit on a description that lists sources; describe_tool has the full text."""

_POINTER = " describe_tool explains each."
_VALUE = "FilterValue"
_PLAIN = [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]
_VALUES = {"anyOf": [*_PLAIN, {"type": "array", "items": {"anyOf": _PLAIN}}]}
"""The values that filter a key of metadata: one, or several of which any may match."""


def customized(spec: ToolSpec, collections: Collections) -> ToolSpec:
    """Fits the parameters `source` and `filters` of a tool to the configured sources.

    The description lists the sources. `source` becomes an enum of their names, or is omitted if
    there is no choice. `filters` lists the supported metadata keys, or allows any under `metadata`
    if no source is configured.
    """
    sources = collections.sources
    schema = spec.input_schema
    properties = dict(schema["properties"])
    properties["filters"] = _filters_schema(schema, sources)
    if len(sources) > 1:
        names = [source.name for source in sources]
        properties["source"] = {**_texts(properties["source"]), "type": "string", "enum": names}
    else:
        properties.pop("source")
    whole = _with_sources(spec.description, [_about(source) for source in sources])
    fitting = len(whole) <= LONGEST_DESCRIPTION
    return replace(
        spec,
        description=whole if fitting else _shorten(spec.description, sources),
        details="" if fitting else whole,
        input_schema=_with_definitions({**schema, "properties": properties}),
    )


def with_enum(
    spec: ToolSpec, parameter: str, values: Sequence[str], description: str = ""
) -> ToolSpec:
    """Lists the values of a string parameter in the schema; the tool itself rejects all others."""
    properties = dict(spec.input_schema["properties"])
    listed = {**_texts(properties[parameter]), "type": "string", "enum": list(values)}
    properties[parameter] = listed | ({"description": description} if description else {})
    return replace(
        spec, input_schema=_with_definitions({**spec.input_schema, "properties": properties})
    )


def without(spec: ToolSpec, parameter: str) -> ToolSpec:
    """Hides a parameter that offers no choice."""
    properties = {
        name: each for name, each in spec.input_schema["properties"].items() if name != parameter
    }
    return replace(spec, input_schema={**spec.input_schema, "properties": properties})


def _texts(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key in {"default", "description"}}


def _filters_schema(schema: Mapping[str, Any], sources: Sequence[Source]) -> dict[str, Any]:
    """Returns the schema of `filters`, self-contained except for the values of metadata."""
    given = schema["properties"]["filters"]
    whole = resolve(given, schema)
    standard = {
        name: {**resolve(each, schema), **_texts(each)}
        for name, each in whole["properties"].items()
    }
    if sources:
        del standard["metadata"]
    else:
        standard["metadata"]["additionalProperties"] = _VALUES
    supported = {
        key: {"$ref": f"#/$defs/{_VALUE}", "description": f"Metadata of {', '.join(names)}"}
        for key, names in supported_filters(sources).items()
    }
    return {
        "type": "object",
        "properties": {**supported, **standard},
        "additionalProperties": False,
        **_texts(given),
    }


def _with_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema with only the `$defs` that it uses."""
    known = {**schema.pop("$defs", {}), _VALUE: _VALUES}
    needed: dict[str, Any] = {}
    while missing := [name for name in known if name not in needed and _refers(schema, name)]:
        needed.update({name: known[name] for name in missing})
        schema["$defs"] = needed
    return schema


def _refers(schema: Mapping[str, Any], name: str) -> bool:
    return f'"#/$defs/{name}"' in json.dumps(schema)


def _about(source: Source) -> str:
    """Describes the content and the use of a source in a few words."""
    advice = (
        ("ask it about: ", source.search_hints),
        ("filters: ", source.supported_filters),
    )
    told = "; ".join(label + ", ".join(values) for label, values in advice if values)
    text = f"{source.name}: {source.description}" if source.description else source.name
    return f"{text.rstrip('.')} ({told})." if told else f"{text.rstrip('.')}."


def _with_sources(description: str, sources: Sequence[str]) -> str:
    return f"{description} Sources: {' '.join(sources)}" if sources else description


def _shorten(description: str, sources: Sequence[Source]) -> str:
    """Shortens the description to its limit, giving each source an equal share."""
    room = LONGEST_DESCRIPTION - len(_with_sources(description, [""])) - len(_POINTER)
    share = max(room // len(sources) - 1, 1)
    told = _with_sources(
        description, [shorten(_about(each), share, placeholder="…") for each in sources]
    )
    return f"{told[: LONGEST_DESCRIPTION - len(_POINTER)]}{_POINTER}"
