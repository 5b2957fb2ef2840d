"""Finds operators: by the words and the meaning of an intent, by a pattern, or by a model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from storage.errors import UnreadableDocumentError
from storage.index.embedders.bundled import StaticEmbedder
from storage.reading.isolated import run_isolated
from storage.tokenize import tokenize
from tools.core.client import Prompt
from tools.core.errors import DeadlineError, InvalidArgumentsError
from tools.data.catalogue.catalogue import Operator, bundled, read_bundled

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors

ALPHA = 0.35  # weight of meaning against words
UNLIKE, ALIKE = 0.2, 0.6  # cosines up to which meanings differ, and from which they agree
MISSING = 4.0  # weight of words that no operator has: times their idf and the root of their number
FLOOR = 0.32  # score from which an operator serves an intent, by `benchmarks.operators`

# The share of its score that an operator keeps:
OTHER_MEDIUM = 0.85  # which works on another medium than the intent names
OTHER_EXECUTOR = 0.8  # which needs Ray where the intent does not name it, or the other way around
SET_UP = {"here": 1.0, "full": 0.97, "no": 0.93}  # by `runs`: of equals, what runs here comes first

MEDIA = {tokenize(medium)[0]: medium for medium in ("image", "audio", "video")}
"""The media that an intent may name, by their terms; one that names none is about text."""

SECONDS = 5.0  # of a processor, for a pattern: some never end
BEST = 100  # the score that a model gives to what serves a need wholly

_SYSTEM = (
    "You choose operators of the data processing system Data-Juicer for a need. Answer with JSON "
    'alone: {"operators": [{"name": "its_name", "score": 90}]}. Put the best first. Write names as '
    f"they are listed; a score from 1 to {BEST} says how well an operator serves the need. Leave "
    "out operators that do not serve it; the list may be empty."
)
_FENCED = re.compile(r"```\w*\s(.*?)```", re.DOTALL)


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


def rank(
    intent: str, operators: Sequence[Operator], *, with_meaning: bool = True
) -> list[tuple[Operator, Score]]:
    """Returns operators with their scores, the best first; blocks."""
    scores = bundled_index().search(intent, with_meaning=with_meaning)
    ranked = [(each, scores[each.name]) for each in operators]
    return sorted(ranked, key=lambda each: (-each[1].score, each[0].name))


def _phrases(intent: str) -> Iterator[tuple[str, list[str]]]:
    """Yields the release's words for each phrase of an intent, and the terms to search for.

    The longest phrase of the glossary comes first; every word outside of them is its own phrase.
    """
    glossary, pattern = _glossary()
    for found in pattern.finditer(intent):
        if words := glossary[_normalize(found[0])]:
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
            phrases |= {_normalize(phrase): words.strip() for phrase in said.split("|")}
    patterns = (
        rf"\b{re.escape(each)}s?\b".replace(r"\ ", r"\s+") if each.isascii() else re.escape(each)
        for each in sorted(phrases, key=len, reverse=True)
    )
    return phrases, re.compile("|".join(patterns), re.IGNORECASE)


def _normalize(phrase: str) -> str:
    """Returns a phrase in lower case, with single spaces and without a plural's s."""
    plain = " ".join(phrase.lower().split())
    return plain.removesuffix("s") if plain.isascii() else plain


class _Rating(BaseModel):
    name: str
    score: Annotated[FiniteFloat, Field(strict=True, ge=0, le=BEST)]


class _Answer(BaseModel):
    operators: list[_Rating]


async def by_pattern(pattern: str, operators: Sequence[Operator]) -> list[Operator]:
    """Returns the operators whose name, description or parameters match a pattern in any case."""
    texts = [
        "\n".join((op.name, op.description, *(f"{p.name} {p.description}" for p in op.parameters)))
        for op in operators
    ]
    shown = repr(pattern[:200])
    try:
        match = partial(_match, pattern, texts)
        places = await run_isolated(match, name=shown, timeout=SECONDS)
    except UnreadableDocumentError:
        raise DeadlineError(
            f"The pattern {shown} did not finish matching within {SECONDS:g} s.",
            next_actions=["Give a simpler pattern, or mode='bm25'."],
        ) from None
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidArgumentsError(
            f"intent: {shown} is not a regular expression: {error}",
            next_actions=["Correct the pattern, or search by words: mode='bm25'."],
        ) from None
    return [operators[place] for place in places]


def _match(pattern: str, texts: Sequence[str]) -> list[int]:
    """Returns the places of the texts that match; runs in a process of its own."""
    search = re.compile(pattern, re.IGNORECASE).search
    return [place for place, text in enumerate(texts) if search(text)]


def question(intent: str, top_k: int, operators: Sequence[Operator]) -> Prompt:
    """Returns what a model is asked, so that `ratings` can read its answer."""
    listed = "\n".join(f"{each.name}: {each.summary}" for each in operators)
    text = f"The need: {intent}\n\nAt most {top_k} of these operators:\n{listed}"
    return Prompt(_SYSTEM, text, max_tokens=1_500)


def ratings(answer: str, operators: Sequence[Operator]) -> list[tuple[Operator, float]]:
    """Reads the operators that a model chose, the best first, with their scores from 0 to 1."""
    fenced = _FENCED.search(answer)
    text = (fenced[1] if fenced else answer).strip()
    if text.startswith("["):  # the list without the object around it
        text = f'{{"operators": {text}}}'
    known = {each.name: each for each in operators}
    try:
        chosen = _Answer.model_validate_json(text).operators
    except ValidationError as error:
        problem = error.errors()[0]
        raise ValueError(": ".join((*map(str, problem["loc"]), problem["msg"]))) from None
    if unknown := [each.name for each in chosen if each.name not in known]:
        raise ValueError(f"{unknown[0][:100]!r} is not among the operators that it was given")
    scores = {each.name: each.score / BEST for each in reversed(chosen) if each.score}
    return sorted(
        ((known[name], score) for name, score in scores.items()),
        key=lambda each: (-each[1], each[0].name),
    )
