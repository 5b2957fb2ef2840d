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

Hits are ordered by it, and equally likely ones by the engine. The weights were fitted by
`python -m benchmarks.calibration` on judged questions, half of which nothing stored answers;
docs/benchmarks.md reports the results on the held-out halves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from storage.errors import StorageUnavailableError
from storage.index.embedders import bundled
from storage.index.embedders.bundled import (
    PIECES_A_WORD,
    load_session,
    load_tokenizer,
    run_each,
    shared_model,
)
from storage.index.embedding_models import Models, understands
from storage.models import ContextType, SearchHit, SearchResult
from storage.retrieval.query_signals import asks_for_former, names_in
from storage.retrieval.ranking import UnifiedHit
from storage.retrieval.snippets import Passage, snippets
from storage.tokenize import SPACELESS_LETTERS, fold_accents, is_spaceless, terms_of, tokenize

MODEL_FILE = "crossencoder.onnx"
MODEL_SHA256 = "e3aaea591afa84aaed291434989dc818a99208e74d56e4c25f744fd1d53af52a"

# The tokens of question and passage together; later ones are cut, because an answer waits.
MAX_TOKENS = 160


class Reading(NamedTuple):
    """The score of a question and a passage."""

    logit: float  # how well the passage answers: about -11 for not at all, to 9; 0 is undecided
    is_english: bool  # whether they are in English; otherwise the score is less reliable


class CrossEncoder:
    """ms-marco-MiniLM-L12-v2 as int8 ONNX, for English and, less well, for similar languages.

    `assets/make_crossencoder.py` builds the model. It is checked against its SHA-256 and loaded on
    first use, once per process. Can be shared between threads.
    """

    def __init__(self, folder: Path = Path(__file__).parent) -> None:
        self._model = shared_model(_load_crossencoder, folder, "The bundled cross-encoder")

    def read(self, question: str, passages: Sequence[str]) -> list[Reading | None]:
        """Scores each passage; None if it cannot read the question's script."""
        import numpy as np

        if is_spaceless(question):
            return [None] * len(passages)
        tokenizer, session = self._model()
        pairs = tokenizer.encode_batch([(question, passage) for passage in passages])
        readings: list[Reading | None] = [None] * len(pairs)

        def read(row: int) -> None:
            pair = pairs[row]
            asked = {
                "input_ids": np.array([pair.ids], dtype=np.int64),
                "token_type_ids": np.array([pair.type_ids], dtype=np.int64),
            }
            logit = float(session.run(None, asked)[0][0, 0])
            readings[row] = Reading(logit, _is_english(pair.sequence_ids, pair.word_ids))

        run_each(read, sorted(range(len(pairs)), key=lambda row: -len(pairs[row].ids)))
        return readings


def _is_english(texts: Sequence[int | None], words: Sequence[int | None]) -> bool:
    """Returns whether words are mostly single tokens, given each token's text and word."""
    inside = [each for each in zip(texts, words, strict=True) if each[1] is not None]
    return len(inside) <= PIECES_A_WORD * len(set(inside))


def _load_crossencoder(folder: Path) -> tuple[Any, Any]:
    tokenizer = load_tokenizer(Path(bundled.__file__).parent, MAX_TOKENS)
    return tokenizer, load_session(folder / MODEL_FILE, MODEL_SHA256)


Hit = TypeVar("Hit", SearchHit, UnifiedHit)
FLOOR = 0.25  # below this probability a hit is not an answer
BESIDE = 0.1  # from this probability on, a hit is shown in addition to an answer
UNSURE = 3  # the nearest hits shown if none answers outside English, where scores are less sure
ALIKE = 0.8  # minimum similarity of a word to a name in another spelling or with another ending
LONG = 4  # minimum letters of a name to match in another spelling
NEARLY = 0.75  # minimum share of a probability from which another is nearly equal
SHARED = 0.5  # minimum share of the words that two versions of a statement have in common
READ = 10  # the hits that the cross-encoder reads, best first; each takes 12 ms of a processor
# Kinds of which a newer one corrects no older one.
_UNDATED = (ContextType.ENTITY, ContextType.PROFILE, ContextType.EVENT)
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
    multilingual: bool = False  # whether the embedder understands Chinese

    @property
    def weights_key(self) -> Known:
        """The key of the weights for this hit."""
        language: Literal["English", "foreign", "unread"] = "unread"
        if self.reading is not None:
            language = "English" if self.reading.is_english else "foreign"
        return language, self.nearness is not None

    @property
    def probability(self) -> float:
        """The probability that the hit answers, 0 to 1."""
        weights = (MULTILINGUAL if self.multilingual else WEIGHTS)[self.weights_key]
        logit = weights.constant + weights.coverage * self.coverage
        logit += weights.told * math.log1p(self.told) + weights.missing * self.missing
        logit += weights.reading * (self.reading.logit if self.reading else 0.0)
        logit += weights.nearness * (self.nearness or 0.0)
        return 1 / (1 + math.exp(-logit))


class Weights(NamedTuple):
    """A row of the regression; unused features have the weight 0."""

    constant: float
    reading: float
    nearness: float
    coverage: float
    told: float
    missing: float


WEIGHTS: Mapping[Known, Weights] = {
    ("English", True): Weights(0.07, 0.24, 9.04, 0.0, 0.0, -5.00),
    ("English", False): Weights(1.38, 0.33, 0.0, 1.31, 0.0, -5.00),
    ("foreign", True): Weights(-3.03, 0.13, 3.85, 6.37, 0.52, -2.55),
    ("foreign", False): Weights(-2.34, 0.17, 0.0, 6.65, 0.57, -2.90),
    ("unread", True): Weights(-4.53, 0.0, 4.36, 6.71, 1.40, -2.93),
    ("unread", False): Weights(-5.82, 0.0, 0.0, 8.20, 2.07, -1.94),
}

# The weights for an embedder that understands Chinese; fitted with the bundled one.
MULTILINGUAL = {
    **WEIGHTS,
    ("English", True): Weights(0.15, 0.24, 12.92, 0.0, 0.0, -5.00),
    ("foreign", True): Weights(-4.59, 0.02, 15.31, 3.59, 1.17, -0.53),
    ("unread", True): Weights(-5.86, 0.0, 10.81, 6.64, 0.31, 0.0),
}


@dataclass(frozen=True, slots=True)
class Confidence:
    """Rates hits; its methods block."""

    models: Models
    encoder: CrossEncoder

    def judge(self, question: str, found: SearchResult) -> SearchResult:
        """Keeps the hits that answer, each scored by its probability.

        If none is likely enough, the likeliest become `nearest`.
        """
        answers, nearest = self.divide(question, found.hits, found.hits)
        return replace(found, hits=answers, nearest=nearest)

    def divide(
        self, question: str, hits: Sequence[Hit], passages: Sequence[SearchHit]
    ) -> tuple[tuple[Hit, ...], tuple[Hit, ...]]:
        """Returns the hits whose passages answer, likeliest first, or else none and the nearest."""
        evidence = self.evidence(question, passages)
        likely = self.rate(question, passages, evidence)
        rated = by_score(replace(hit, score=sure) for hit, sure in zip(hits, likely, strict=True))
        least = least_shown(likely)
        answers = tuple(hit for hit in rated if hit.score >= least)
        is_unsure = any(each.weights_key[0] != "English" for each in evidence[:READ])
        return answers, () if answers else tuple(rated[: UNSURE if is_unsure else 1])

    def rate(
        self, question: str, hits: Sequence[SearchHit], evidence: Sequence[Evidence] | None = None
    ) -> list[float]:
        """Returns the probability of each hit, at least the floor for hits with all words.

        Hits beyond those that were read are no likelier than the least likely of those.
        """
        words = set(terms_of(question).values())
        likely = [
            max(each.probability, FLOOR if _is_spelled_out(words, hit) else 0)
            for each, hit in zip(evidence or self.evidence(question, hits), hits, strict=True)
        ]
        most = min(likely[:READ], default=1.0)
        read = likely[:READ] if asks_for_former(question) else newer_first(hits, likely[:READ])
        return [*read, *(min(each, most) for each in likely[READ:])]

    def rate_texts(self, question: str, texts: Mapping[str, float]) -> list[float]:
        """Rates texts without vectors, each given with its share of the question's words."""
        readings = self._read(question, list(texts))
        names = _words(" ".join(names_in(question)))
        words = len(set(terms_of(question).values()))
        evidence = [
            Evidence(reading, None, share, share * words, _lacking(text, names))
            for reading, (text, share) in zip(readings, texts.items(), strict=True)
        ]
        return [each.probability for each in evidence]

    def evidence(self, question: str, hits: Sequence[SearchHit]) -> list[Evidence]:
        """Returns the features of each hit."""
        readings = self._readings(question, hits[:READ])
        readings += [None] * (len(hits) - len(readings))
        floor, multilingual = None, False
        with suppress(StorageUnavailableError):  # the other features remain
            embedder = self.models.current()[1]
            floor = embedder.floor if understands(embedder, question) else None
            multilingual = embedder.unread != SPACELESS_LETTERS
        names = _words(" ".join(names_in(question)))
        evidence = []
        for reading, hit in zip(readings, hits, strict=True):
            nearness = None
            if hit.dense is not None and floor is not None:
                nearness = max(hit.dense - floor, 0.0) / (1 - floor)
            missing = hit.missing
            if missing and names:  # they may be there in another spelling
                text = f"{hit.context.title} {hit.chunk.heading} {hit.chunk.content}"
                missing = min(missing, _lacking(text, names))
            evidence.append(
                Evidence(reading, nearness, hit.coverage, hit.told, missing, multilingual)
            )
        return evidence

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
            return self.encoder.read(question, texts)
        except StorageUnavailableError:
            return [None] * len(texts)  # the other features remain


def newer_first(hits: Sequence[SearchHit], likely: Sequence[float]) -> list[float]:
    """Exchanges the probabilities of hits that say nearly the same, so that the newer is first.

    They are near-equal, of different contexts, and have most words in common. The newer has every
    word of the question that the older has, so that both are about the name that it asks for.
    """
    likely = list(likely)
    words = cache(lambda at: set(tokenize(hits[at].chunk.content)))
    ages = [(hit.context.event_time, hit.context.create_time) for hit in hits[: len(likely)]]
    for pair in combinations(range(len(likely)), 2):
        older, newer = sorted(pair, key=ages.__getitem__)
        if (
            likely[older] >= likely[newer] >= NEARLY * likely[older]
            and hits[older].context.id != hits[newer].context.id
            and not any(hits[at].context.context_type in _UNDATED for at in pair)
            and {*hits[older].matched_terms} <= {*hits[newer].matched_terms}
            and len(words(older) & words(newer))
            >= SHARED * max(len(words(older)), len(words(newer)))
        ):
            lower = min(likely[newer], math.nextafter(likely[older], 0))
            likely[newer], likely[older] = likely[older], lower
    return likely


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


def by_score(hits: Iterable[Hit]) -> list[Hit]:
    """Returns hits by the score that they show, and equal ones in their order."""
    return sorted(hits, key=attrgetter("score"), reverse=True)


def least_shown(likely: Iterable[float]) -> float:
    """Returns the minimum probability to show; infinite if no hit reaches the floor."""
    return BESIDE if max(likely, default=0.0) >= FLOOR else math.inf
