"""Filters of a question: parses the `filters` object and documents it in the schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from storage.contexts.labels import LONGEST_LABEL, label_of
from storage.models import ContextType, SearchFilter
from storage.retrieval.routing import Source
from tools.answers.params import Names, RawId, RawType, TimeWindow
from tools.conversion.arguments.descriptions import show
from tools.conversion.arguments.validation_errors import nearest, unknown_name
from tools.core.errors import InvalidArgumentsError
from tools.core.result import ToolModel

MOST_KEYS = 100
"""Limit on the metadata keys in a call: each becomes a condition of the search."""


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
            max_length=MOST_KEYS,
            description="For each metadata key the value, or a list of values",
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
    standard = STANDARD_FILTERS if not sources else _without_metadata(STANDARD_FILTERS)
    known = [*keys, *standard]
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


def _without_metadata(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name != "metadata")


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
