"""Extracts a tool's texts: weighted fields for words, and texts for embedders."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from storage.tokenize import tokenize
from tools.core.invisible import encodable
from tools.retrieval.models import ToolRecord

ANALYSIS = "terms-1"  # the version of the analysis; cached analyses of other versions are not used

# The weight of a term's occurrence in each field; halves, so that sums are exact.
FIELD_WEIGHTS = {
    "names": 2.0,
    "description": 1.0,
    "tags": 1.0,
    "parameters": 1.0,
    "parameter_texts": 0.5,
}

MAX_CHARS = 4_000  # maximum characters of a field that are read; enough to say what a tool does
MAX_TEXT_CHARS = 1_500  # maximum characters that an embedder gets
MAX_DEPTH = 4  # maximum levels of nested parameters that are read
MAX_PARAMETERS = 200
_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[_\-./:\s]+")
_NESTED = ("items", "additionalProperties")
_CHOICES = ("anyOf", "oneOf", "allOf", "prefixItems")


def fields_of(record: ToolRecord) -> dict[str, str]:
    """Returns the text of each field of a tool; equal texts have equal terms."""
    found = list(_parameters(record.parameters))
    tags = (*record.tags, *record.capabilities, record.server)
    names = dict.fromkeys((record.bare_name, *record.aliases))
    texts = {
        "names": "\n".join(names),
        "description": record.description,
        "tags": "\n".join(tags),
        "parameters": "\n".join(name for name, _ in found),
        "parameter_texts": "\n".join(text for _, text in found),
    }
    return {field: text[:MAX_CHARS] for field, text in texts.items()}


def terms_of(fields: Mapping[str, str]) -> dict[str, float]:
    """Returns the terms of all fields with their weighted number of occurrences."""
    terms: defaultdict[str, float] = defaultdict(float)
    for field, weight in FIELD_WEIGHTS.items():
        for term in tokenize(fields[field]):
            terms[term] += weight
    return dict(terms)


def brief_text(record: ToolRecord) -> str:
    """Returns a tool's text for MiniLM: its name in words and its description."""
    return encodable(f"{spaced(record.bare_name)}: {record.description}"[:MAX_TEXT_CHARS])


def full_text(record: ToolRecord) -> str:
    """Returns a tool's text for the static embedder: also its tags and parameter names."""
    parameters = ", ".join(spaced(name) for name, _ in _parameters(record.parameters))
    tags = ", ".join((*record.tags, *record.capabilities))
    text = " ".join(filter(None, (brief_text(record), tags, parameters)))
    return encodable(text[:MAX_TEXT_CHARS])


def spaced(name: str) -> str:
    """Splits a name into words: `getWeather_v2` becomes `get Weather v2`."""
    return _SEPARATORS.sub(" ", _WORD_STARTS.sub(" ", name)).strip()


def _parameters(schema: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Yields names and descriptions of parameters, outer ones first, up to a limit."""
    level: list[Any] = [schema]
    left = MAX_PARAMETERS
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for each in level:
            if not isinstance(each, Mapping):
                continue
            properties = each.get("properties")
            for name, said in properties.items() if isinstance(properties, Mapping) else ():
                if not left:
                    return
                left -= 1
                described = said.get("description") if isinstance(said, Mapping) else None
                yield str(name), described if isinstance(described, str) else ""
                inner.append(said)
            inner += _subschemas(each)
        level = inner


def _subschemas(schema: Mapping[str, Any]) -> Iterator[Any]:
    for word in _NESTED:
        yield schema.get(word)
    for word in _CHOICES:
        choices = schema.get(word)
        yield from choices if isinstance(choices, list) else ()
    defined = schema.get("$defs")
    yield from defined.values() if isinstance(defined, Mapping) else ()
