"""Fits tools to the sources, directories and secrets in the settings, and reads their filters."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from textwrap import shorten
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from storage.models import LONGEST_LABEL, ContextType, SearchFilter, label_of
from storage.retrieval.routing import Source
from tools.answers.params import Names, RawId, RawType, TimeWindow
from tools.conversion.arguments.descriptions import show
from tools.conversion.arguments.validation_errors import nearest, unknown_name
from tools.conversion.schema_reading import resolve
from tools.core.collections import Collections
from tools.core.errors import InvalidArgumentsError
from tools.core.result import ToolModel
from tools.core.spec import ToolSpec

MOST_KEYS = 100  # limit on the metadata keys in a call: each becomes a condition of the search


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


class FilterArguments(ToolModel):
    """Narrows a question.

    Other keys are metadata keys supported by the sources in the settings. Which keys are valid
    depends on the source in the call, so `read_filters` checks them.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})

    entities: Annotated[
        Names,
        BeforeValidator(_as_list),
        Field(description="Names, in any spelling, of which it mentions at least one"),
    ] = []  # noqa: RUF012  # pydantic copies it
    time_range: Annotated[TimeWindow | None, Field(description="When")] = None
    kinds: Annotated[
        list[Literal["document", "knowledge", "event", "profile", "entity"]],
        BeforeValidator(_as_list),
        Field(max_length=5, description="Of one of these kinds"),
    ] = []  # noqa: RUF012  # pydantic copies it
    raw_type: RawType | None = None
    raw_id: RawId | None = None
    metadata: Annotated[
        dict[str, Any] | None,
        Field(
            max_length=MOST_KEYS, description="For each metadata key the value, or a list of values"
        ),
    ] = None


STANDARD_FILTERS = tuple(FilterArguments.model_fields)
"""The keys available under any settings; metadata keys cannot use these names."""


def supported_filters(sources: Iterable[Source]) -> dict[str, list[str]]:
    """Maps each metadata key to the names of the sources that support it."""
    supported: dict[str, list[str]] = {}
    for source in sources:
        for key in source.supported_filters:
            supported.setdefault(key, []).append(source.name)
    return supported


def read_filters(
    filters: FilterArguments, source: Source | None, sources: Sequence[Source]
) -> SearchFilter:
    """Returns the filter for a call, without the source's own limits.

    If sources are configured, metadata keys are given next to the standard keys and must be
    supported by the named source, or by any source if none is named. Without sources, any key is
    allowed under `metadata`.
    """
    given = dict(filters.model_extra or {})
    if sources and filters.metadata is not None:
        given["metadata"] = filters.metadata
    _check_keys(given, source, sources)
    labels = given if sources else filters.metadata or {}
    path = "filters" if sources else "filters.metadata"
    return SearchFilter(
        context_types=tuple(map(ContextType, filters.kinds)),
        time_range=filters.time_range.to_range() if filters.time_range else None,
        entities=tuple(filters.entities),
        raw_types=() if filters.raw_type is None else (filters.raw_type,),
        raw_id=filters.raw_id,
        labels=tuple(_labels(path, labels)),
    )


def _check_keys(given: Mapping[str, Any], source: Source | None, sources: Sequence[Source]) -> None:
    """Rejects the first unsupported key."""
    asked = sources if source is None else (source,)
    keys = list(supported_filters(asked))
    # With sources, keys of metadata stand next to the others.
    known = [*keys, *(each for each in STANDARD_FILTERS if not sources or each != "metadata")]
    for key in given:
        if key in keys:
            continue
        meant = nearest(key, known)
        told = unknown_name("filters", key, known)
        if source is not None and key in supported_filters(sources):
            told = f"`filters.{key}` is not a filter of the source {source.name!r}"
        whose = "The source" if source is not None else "This call"
        raise InvalidArgumentsError(
            told if told.endswith((".", "?")) else f"{told}.",
            suggestions=[meant] if meant else [],
            next_actions=[
                f"{whose} supports these filters: {', '.join(known)}.",
                *(() if sources else ("Put keys of metadata into filters.metadata.",)),
            ],
        )


def _labels(path: str, given: Mapping[str, Any]) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Yields each key with its allowed values; null and an empty list match everything."""
    for key, value in given.items():
        values = value if isinstance(value, list) else [value]
        labels = [_label(f"{path}.{key}", each) for each in values if each is not None]
        if labels:
            yield key, tuple(dict.fromkeys(labels))


def _label(path: str, value: object) -> str:
    label = label_of(value)
    if label is None:
        raise InvalidArgumentsError(
            f"{path}: cannot filter by {show(value)}.",
            next_actions=[
                f"Give a number, a boolean, a text of up to {LONGEST_LABEL} characters, or a list."
            ],
        )
    return label


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
    while missing := [
        name for name in known if name not in needed and f'"#/$defs/{name}"' in json.dumps(schema)
    ]:
        needed.update({name: known[name] for name in missing})
        schema["$defs"] = needed
    return schema


def _about(source: Source) -> str:
    """Describes the content and the use of a source in a few words."""
    advice = (("ask it about: ", source.search_hints), ("filters: ", source.supported_filters))
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
