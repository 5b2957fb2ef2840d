"""The tool index: which of all tools fit a need."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.tokenize import tokenize
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec

if TYPE_CHECKING:
    from rank_bm25 import BM25Okapi

__all__ = ["ToolIndex", "ToolMatch"]

NAME_WEIGHT = 3
"""How often a tool's names count, against once for what is said of it."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class ToolMatch:
    """A tool that fits a need.

    Attributes:
        spec: The tool.
        score: BM25 score, above 0; of a tool that the query names it may be 0.
    """

    spec: ToolSpec
    score: float


@dataclass(frozen=True, slots=True)
class _Ranking:
    """The index of the tools as they were at one moment."""

    changes: int
    specs: tuple[ToolSpec, ...]
    terms: BM25Okapi


class ToolIndex:
    """Ranks the tools of a registry, as they are at the moment of the question.

    Args:
        registry: The tools.
    """

    def __init__(self, registry: ToolRegistry) -> None:
        self.registry = registry
        self._ranking: _Ranking | None = None

    def search(self, query: str, top_k: int) -> list[ToolMatch]:
        """The tools that fit, best first: those that the query names, then by BM25.

        Args:
            query: What is needed, in words.
            top_k: Tools at most.
        """
        ranking = self._current()
        if not ranking.specs:
            return []
        scores = map(float, ranking.terms.get_scores(tokenize(query)))
        matches = [ToolMatch(*pair) for pair in zip(ranking.specs, scores, strict=True)]
        named = set(self._named(query))
        found = [match for match in matches if match.score > 0 or match.spec.name in named]
        found.sort(key=lambda match: (match.spec.name not in named, -match.score))
        return found[:top_k]

    def _named(self, query: str) -> Iterator[str]:
        for word in _WORD.findall(query):
            spec = self.registry.get(word) or self.registry.get(word.lower())
            if spec is not None:
                yield spec.name

    def _current(self) -> _Ranking:
        changes = self.registry.changes
        if self._ranking is None or self._ranking.changes != changes:
            specs = self.registry.specs()
            self._ranking = _Ranking(changes, specs, _bm25([_terms(spec) for spec in specs]))
        return self._ranking


def _terms(spec: ToolSpec) -> list[str]:
    """What a tool is found by, its names weighing more than what is said of it."""
    names = [spec.name, *spec.aliases]
    said = [spec.title, spec.description, *spec.tags, *spec.capabilities]
    parameters = spec.input_schema.get("properties", {})
    return tokenize("\n".join([*names * NAME_WEIGHT, *said, *parameters]))


def _bm25(corpus: list[list[str]]) -> BM25Okapi:
    from rank_bm25 import BM25Okapi  # noqa: PLC0415  # imported on first use

    index = BM25Okapi(corpus or [[""]])
    found_in = Counter(term for frequencies in index.doc_freqs for term in frequencies)
    # Lucene's form of the weight, above 0 for every term: rank-bm25 gives one that stands in half
    # of so few tools nothing at all.
    index.idf = {
        term: math.log1p((index.corpus_size - count + 0.5) / (count + 0.5))
        for term, count in found_in.items()
    }
    return index
