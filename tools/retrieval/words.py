"""The words of tools: weighted fields of a tool's texts, and BM25 over their terms.

The score of a tool is the sum over the query's different terms of
`idf(t) * f / (f + k1 * (1 - b + b * length / average length))`, where f is the weighted number of
occurrences of t in the tool's fields, length the sum of them over all terms, and
`idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))` as Lucene has it (N tools, n with the term). It is the
BM25F of Robertson, Zaragoza and Taylor (2004, https://doi.org/10.1145/1031171.1031181), without
its constant factor: a tool that held every term endlessly often would reach the sum of the idfs.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from storage.index.lexical import K1, B, idf
from storage.tokenize import tokenize
from tools.core.unicode_safety import encodable
from tools.retrieval.models import ToolRecord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ints = NDArray[np.int64]


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


class Postings:
    """The terms of each tool; tools are known by their slot, a small number."""

    def __init__(self) -> None:
        self._weights: dict[str, dict[int, float]] = {}
        self._terms: dict[int, tuple[str, ...]] = {}
        self._lengths = array("d")  # by slot; 0 if free
        self._total = 0.0
        self._arrays: dict[str, tuple[Ints, Floats]] = {}
        self._gains: dict[str, tuple[Ints, Floats]] = {}

    def __len__(self) -> int:
        return len(self._terms)

    def __contains__(self, term: str) -> bool:
        return term in self._weights

    def add(self, slot: int, terms: Mapping[str, float]) -> None:
        """Adds a tool in a free slot, given the weights of its terms."""
        names = tuple(map(sys.intern, terms))  # shares one string per term
        for term, weight in zip(names, terms.values(), strict=True):
            self._weights.setdefault(term, {})[slot] = weight
            self._arrays.pop(term, None)
        self._terms[slot] = names
        if slot >= len(self._lengths):
            self._lengths.extend([0.0] * (slot + 1 - len(self._lengths)))
        self._lengths[slot] = sum(terms.values())
        self._total += self._lengths[slot]
        self._gains.clear()

    def remove(self, slot: int) -> None:
        """Removes a tool if it exists, and terms that no other tool has."""
        if slot not in self._terms:
            return
        for term in self._terms.pop(slot):
            holders = self._weights[term]
            del holders[slot]
            self._arrays.pop(term, None)
            if not holders:
                del self._weights[term]
        self._total -= self._lengths[slot]
        self._lengths[slot] = 0.0
        self._gains.clear()

    def idf(self, term: str) -> float:
        """Returns a term's inverse document frequency, which is highest for an unknown term."""
        holders = len(self._weights.get(term, ()))
        return idf(len(self), holders)

    def scores(self, terms: Iterable[str], size: int) -> Floats:
        """Returns the scores of all slots below `size` for distinct terms."""
        import numpy as np

        scores = np.zeros(size, dtype=np.float32)
        for term in terms:
            if term in self._weights:
                slots, gains = self._gain(term)
                scores[slots] += gains
        return scores

    def _gain(self, term: str) -> tuple[Ints, Floats]:
        """Returns the slots that have a term, and what it adds to their scores."""
        import numpy as np

        if term not in self._gains:
            slots, weights = self._array(term)
            lengths = np.array(self._lengths)[slots]  # a copy, since a view would prevent growing
            norms = K1 * (1 - B + B * lengths * (len(self) / self._total))
            gains = self.idf(term) * weights / (weights + norms)
            self._gains[term] = slots, gains.astype(np.float32)
        return self._gains[term]

    def _array(self, term: str) -> tuple[Ints, Floats]:
        import numpy as np

        if term not in self._arrays:
            holders = self._weights[term]
            self._arrays[term] = (
                np.fromiter(holders, np.int64, len(holders)),
                np.fromiter(holders.values(), np.float32, len(holders)),
            )
        return self._arrays[term]
