"""Confidence: the probability that a hit answers the query, on one scale for all searches.

The engine's scores are relative to the other candidates: one of them is always the best. The
confidence of a hit is the probability that it answers. It comes from a logistic regression on
features with the same meaning in every library:

- the cross-encoder's score of the question with the best sentences of the passage, which is strong
in English, and weak in other languages with spaces. It is costly: it is left out where the other
features decide, and in languages that the embedder understands better;
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


# Of a question and a passage; the cross-encoder cannot read the script of what is "unread".
Language: TypeAlias = Literal["English", "foreign", "unread"]


class CrossEncoder:
    """ms-marco-MiniLM-L12-v2 as int8 ONNX, for English and, less well, for similar languages.

    `assets/make_crossencoder.py` builds the model. It is checked against its SHA-256 and loaded on
    first use, once per process. Can be shared between threads.
    """

    def __init__(self, folder: Path = Path(__file__).parent) -> None:
        self._model = shared_model(_load_crossencoder, folder, "The bundled cross-encoder")

    def languages(self, question: str, passages: Sequence[str]) -> list[Language]:
        """Returns the language of each passage with the question."""
        if is_spaceless(question):
            return ["unread"] * len(passages)
        pairs = self._model()[0].encode_batch([(question, passage) for passage in passages])
        return [
            "unread" if is_spaceless(passage) else _language(pair.sequence_ids, pair.word_ids)
            for pair, passage in zip(pairs, passages, strict=True)
        ]

    def read(self, question: str, passages: Sequence[str]) -> list[float]:
        """Scores how well each passage answers: about -11 for not at all, to 9; 0 is undecided."""
        import numpy as np

        tokenizer, session = self._model()
        pairs = tokenizer.encode_batch([(question, passage) for passage in passages])
        logits = [0.0] * len(pairs)

        def read(row: int) -> None:
            pair = pairs[row]
            asked = {
                "input_ids": np.array([pair.ids], dtype=np.int64),
                "token_type_ids": np.array([pair.type_ids], dtype=np.int64),
            }
            logits[row] = float(session.run(None, asked)[0][0, 0])

        run_each(read, sorted(range(len(pairs)), key=lambda row: -len(pairs[row].ids)))
        return logits


def _language(texts: Sequence[int | None], words: Sequence[int | None]) -> Language:
    """Returns "English" if words are mostly single tokens, given each token's text and word."""
    inside = [each for each in zip(texts, words, strict=True) if each[1] is not None]
    return "English" if len(inside) <= PIECES_A_WORD * len(set(inside)) else "foreign"


def _load_crossencoder(folder: Path) -> tuple[Any, Any]:
    tokenizer = load_tokenizer(Path(bundled.__file__).parent, MAX_TOKENS)
    return tokenizer, load_session(folder / MODEL_FILE, MODEL_SHA256)


Hit = TypeVar("Hit", SearchHit, UnifiedHit)
FLOOR = 0.25  # below this probability a hit is not an answer, unless it is clearly the best
LONE = 0.15  # from this probability on, a hit that is clearly the best is an answer
CLEAR = (2.2, 3.7)  # its odds as a multiple of those of the next hit: in English, and elsewhere
BESIDE = 0.1  # from this probability on, a hit is shown in addition to an answer
UNSURE = 3  # the nearest hits shown if none answers outside English, where scores are less sure
ALIKE = 0.8  # minimum similarity of a word to a name in another spelling or with another ending
LONG = 4  # minimum letters of a name to match in another spelling
NEARLY = 0.75  # minimum share of a probability from which another is nearly equal
SHARED = 0.5  # minimum share of the words that two versions of a statement have in common
READ = 10  # the hits that the cross-encoder may read, best first; each takes 8 ms of a processor
# Probabilities without the cross-encoder: a hit in English below the first is not read, and none is
# if one is above the second. Fitted with the weights: reading more makes no fewer mistakes.
UNDECIDED = (0.07, 0.8)
# Kinds of which a newer one corrects no older one.
_UNDATED = (ContextType.ENTITY, ContextType.PROFILE, ContextType.EVENT)
# The file name to read passages as: Markdown syntax is removed, whatever is shown.
READ_AS = "note.md"
# The characters of a passage's best sentences that the cross-encoder reads with its title.
READ_CHARACTERS = 240


# The language of a hit, "skimmed" if it is in English and not read, and if its nearness is known.
Known: TypeAlias = tuple[Language | Literal["skimmed"], bool]


class Evidence(NamedTuple):
    """The features of a hit."""

    language: Language
    reading: float | None  # the cross-encoder's score; None if it did not read the hit
    nearness: float | None  # the semantic nearness, 0 to 1; None if unknown
    coverage: float  # share of the question's words that appear in it, 0 to 1
    told: float  # their total weight in rare words, 0 and up
    missing: float = 0.0  # share of the question's names that appear nowhere around it, 0 to 1
    multilingual: bool = False  # whether the embedder understands Chinese

    @property
    def weights_key(self) -> Known:
        """The key of the weights for this hit."""
        is_skimmed = self.language == "English" and self.reading is None
        return "skimmed" if is_skimmed else self.language, self.nearness is not None

    @property
    def is_rated(self) -> bool:
        """Whether there are weights for the hit, as far as it was read."""
        weights = self._table.get(self.weights_key)
        return weights is not None and (self.reading is not None or not weights.reading)

    @property
    def probability(self) -> float:
        """The probability that the hit answers, 0 to 1."""
        return self._table[self.weights_key].probability(self)

    @property
    def _table(self) -> Mapping[Known, Weights]:
        return MULTILINGUAL if self.multilingual else WEIGHTS


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
        logit += self.reading * (evidence.reading or 0.0)
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

# The weights for an embedder that understands Chinese; fitted with the bundled one.
MULTILINGUAL = {
    **WEIGHTS,
    ("English", True): Weights(0.15, 0.24, 12.92, 0.0, 0.0, -5.00),
    ("skimmed", True): Weights(-3.10, 0.0, 17.61, 4.21, 0.0, -5.00),
    ("foreign", True): Weights(-4.74, 0.0, 15.25, 3.76, 1.26, -0.59),
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
        is_unsure = any(each.language != "English" for each in evidence[:READ])
        least = least_shown(likely, CLEAR[is_unsure])
        answers = tuple(hit for hit in rated if hit.score >= least)
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
        names = _words(" ".join(names_in(question)))
        words = len(set(terms_of(question).values()))
        evidence = [
            Evidence("unread", None, None, share, share * words, _lacking(text, names))
            for text, share in texts.items()
        ]
        with suppress(StorageUnavailableError):  # the other features remain
            languages = dict(zip(texts, self.encoder.languages(question, list(texts)), strict=True))
            readable = [text for text in texts if languages[text] != "unread"]
            readings = dict(zip(readable, self.encoder.read(question, readable), strict=True))
            evidence = [
                each._replace(language=languages[text], reading=readings.get(text))
                for each, text in zip(evidence, texts, strict=True)
            ]
        return [each.probability for each in evidence]

    def evidence(
        self, question: str, hits: Sequence[SearchHit], *, reads_all: bool = False
    ) -> list[Evidence]:
        """Returns the features of each hit; reads the undecided ones among the first, or all."""
        unread = self._unread(question, hits)
        with suppress(StorageUnavailableError):  # the other features remain
            return self._read(question, hits, unread, reads_all)
        return unread

    def _unread(self, question: str, hits: Sequence[SearchHit]) -> list[Evidence]:
        floor, multilingual = None, False
        with suppress(StorageUnavailableError):  # the other features remain
            embedder = self.models.current()[1]
            floor = embedder.floor if understands(embedder, question) else None
            multilingual = embedder.unread != SPACELESS_LETTERS
        names = _words(" ".join(names_in(question)))
        evidence = []
        for hit in hits:
            nearness = None
            if hit.dense is not None and floor is not None:
                nearness = max(hit.dense - floor, 0.0) / (1 - floor)
            missing = hit.missing
            if missing and names:  # they may be there in another spelling
                text = f"{hit.context.title} {hit.chunk.heading} {hit.chunk.content}"
                missing = min(missing, _lacking(text, names))
            evidence.append(
                Evidence("unread", None, nearness, hit.coverage, hit.told, missing, multilingual)
            )
        return evidence

    def _read(
        self, question: str, hits: Sequence[SearchHit], unread: list[Evidence], reads_all: bool
    ) -> list[Evidence]:
        read = list(unread)
        beginnings = [hit.chunk.content[:READ_CHARACTERS] for hit in hits[:READ]]
        for row, language in enumerate(self.encoder.languages(question, beginnings)):
            read[row] = read[row]._replace(language=language)
        readable = [row for row, each in enumerate(read) if each.language != "unread"]
        rows = readable if reads_all else undecided(read)
        texts = _texts_to_read(question, [hits[row] for row in rows])
        for row, logit in zip(rows, self.encoder.read(question, texts), strict=True):
            read[row] = read[row]._replace(reading=logit)
        return read


def undecided(evidence: Sequence[Evidence]) -> list[int]:
    """Returns which hits to read: in English those that may answer, unless one is likely to."""
    least, most = UNDECIDED
    likely = [each.probability if each.is_rated else least for each in evidence]
    is_open = max(likely, default=0.0) <= most
    return [
        row
        for row, each in enumerate(evidence)
        if not each.is_rated or (is_open and each.language == "English" and likely[row] >= least)
    ]


def _texts_to_read(question: str, hits: Sequence[SearchHit]) -> list[str]:
    passages = [
        Passage.of(hit.chunk.content, hit.context.title, hit.chunk.heading, READ_AS) for hit in hits
    ]
    shown = snippets(question, passages, READ_CHARACTERS)
    return [
        ". ".join(filter(None, (*passage.place, hit.before[:READ_CHARACTERS], text)))
        for hit, passage, text in zip(hits, passages, shown, strict=True)
    ]


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


def least_shown(likely: Iterable[float], clear: float = math.inf) -> float:
    """Returns the minimum probability to show; infinite if no hit is likely enough.

    A hit is from the floor on, or from `LONE` on if its odds are `clear` times those of the next.
    """
    best, second, *_ = *sorted(likely, reverse=True), math.nan, math.nan
    is_clear = best >= LONE and best * (1 - second) >= clear * second * (1 - best)
    return BESIDE if best >= FLOOR or is_clear else math.inf
