"""Finds operators by what they are to do: by the words of an intent, and by its meaning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple

from storage.index.embedders.static import StaticEmbedder
from storage.tokenize import tokenize
from tools.data.catalogue.catalogue import bundled, read_bundled
from tools.data.catalogue.operator import Operator

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors

ALPHA = 0.35
"""Weight of meaning against words."""

UNLIKE, ALIKE = 0.2, 0.6
"""Cosines up to which meanings have nothing in common, and from which they are the same."""

MISSING = 4.0
"""Weight of words that no operator has: their idf, times this and the root of their number."""

FLOOR = 0.32
"""Score from which an operator serves an intent; measured with `benchmarks.operators`."""

OTHER_MEDIUM = 0.85
"""Share of its score that an operator keeps that works on another medium than the intent names."""

OTHER_EXECUTOR = 0.8
"""The same for one that needs Ray where the intent does not name it, or the other way around."""

SET_UP = {"here": 1.0, "full": 0.97, "no": 0.93}
"""The same by `Operator.runs`: what cannot run here comes after what fits nearly as well."""

MEDIA = {tokenize(medium)[0]: medium for medium in ("image", "audio", "video")}
"""The media that an intent may name, by their terms; one that names none is about text."""


class Score(NamedTuple):
    """How well an operator fits, from 0 to 1, with its BM25 and, if it was computed, its cosine."""

    score: float
    bm25: float
    cosine: float | None = None


@dataclass(frozen=True)
class Index:
    """Operators by their words and their meaning.

    `terms` has the places of each term with its weighted count there, and `lengths` the weighted
    number of terms at each place.
    """

    operators: Sequence[Operator]
    terms: Mapping[str, Mapping[str, float]]
    lengths: Sequence[float]
    embedder: StaticEmbedder = field(default_factory=StaticEmbedder)

    def search(self, intent: str, *, with_meaning: bool = True) -> dict[str, Score]:
        """Returns the score of each operator by name.

        Words count as the share of what an operator could have at most: BM25, divided by the sum
        of the best BM25 that any operator has for each phrase. So a score does not depend on what
        else an intent finds, and words that no operator has lower it.
        """
        import numpy as np

        from storage.retrieval.bm25 import SmallCorpus

        phrases = list(_phrases(intent))
        terms = {term for _, each in phrases for term in each}
        texts: list[dict[str, float]] = [{} for _ in self.lengths]
        for term in terms:
            for place, count in self.terms.get(term, {}).items():
                texts[int(place)][term] = count
        corpus = SmallCorpus(texts, lengths=self.lengths)
        found = [np.array(corpus.scores(each)) for _, each in phrases]
        best = [float(each.max()) for each in found]
        missing = MISSING * corpus.weight("") * best.count(0) ** 0.5
        bm25 = np.sum([np.zeros(len(texts)), *found], axis=0)
        fits = bm25 / ((sum(best) + missing) or 1.0)
        cosines = [None] * len(texts)
        if with_meaning:
            words = (intent.encode("ascii", "ignore").decode(), *(said for said, _ in phrases))
            cosine = self._vectors @ self.embedder.embed_query(" ".join(words))
            near = np.clip((cosine - UNLIKE) / (ALIKE - UNLIKE), 0, 1)
            fits = ALPHA * near + (1 - ALPHA) * fits
            cosines = cosine.tolist()
        scores = zip((fits * self._priorities(terms)).tolist(), bm25.tolist(), cosines, strict=True)
        return {
            operator.name: Score(round(score, 4), *kinds)
            for operator, (score, *kinds) in zip(self.operators, scores, strict=True)
        }

    def _priorities(self, terms: set[str]) -> list[float]:
        """Returns the share of its score that each operator keeps."""
        named = {MEDIA[term] for term in terms & MEDIA.keys()}
        executor = "ray" if "ray" in terms else "default"
        return [
            (1 if not media or (media & named if named else media == {"text"}) else OTHER_MEDIUM)
            * (1 if executor in operator.modes else OTHER_EXECUTOR)
            * SET_UP[operator.runs]
            for operator, media in zip(self.operators, self._media, strict=True)
        ]

    @cached_property
    def _media(self) -> list[set[str]]:
        texts = (f"{each.name} {' '.join(each.tags)} {each.summary}" for each in self.operators)
        return [{each for each in ("text", *MEDIA.values()) if each in text} for text in texts]

    @cached_property
    def _vectors(self) -> Vectors:
        texts = (f"{each.name.replace('_', ' ')}: {each.summary}" for each in self.operators)
        return self.embedder.embed_passages(list(texts))


@cache
def bundled_index() -> Index:
    """Returns the index of the operators that come with the product."""
    return Index(list(bundled().operators.values()), **json.loads(read_bundled("terms.json")))


def _phrases(intent: str) -> Iterator[tuple[str, list[str]]]:
    """Yields the release's words for each phrase of an intent, and the terms to search for.

    The longest phrase of the glossary comes first; every word outside of them is its own phrase.
    """
    glossary, pattern = _glossary()
    for found in pattern.finditer(intent):
        if words := glossary[_plain(found[0])]:
            yield words, tokenize(f"{found[0]} {words}")
    for term in tokenize(pattern.sub(" ; ", intent)):
        if not term.isdigit():
            yield "", [term]


@cache
def _glossary() -> tuple[Mapping[str, str], re.Pattern[str]]:
    """Returns the release's words by phrase, and a pattern that finds phrases."""
    phrases: dict[str, str] = {}
    for line in read_bundled("glossary.txt").splitlines():
        said, separator, words = line.partition("=")
        if separator and not line.startswith("#"):
            phrases |= {_plain(phrase): words.strip() for phrase in said.split("|")}
    patterns = (
        rf"\b{re.escape(each)}s?\b".replace(r"\ ", r"\s+") if each.isascii() else re.escape(each)
        for each in sorted(phrases, key=len, reverse=True)
    )
    return phrases, re.compile("|".join(patterns), re.IGNORECASE)


def _plain(phrase: str) -> str:
    """Returns a phrase in lower case, with single spaces and without a plural's s."""
    plain = " ".join(phrase.lower().split())
    return plain.removesuffix("s") if plain.isascii() else plain
