"""Finding operators by what they are to do: by words and meaning, by a pattern, or by a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from storage.index.embedders.static import StaticEmbedder
from storage.tokenize import is_spaceless, tokenize
from tools.core.client import Prompt
from tools.data.catalogue.glossary import translated
from tools.data.catalogue.operator import Operator
from tools.data.catalogue.patterns import matching

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors

ALPHA = 0.4
"""Weight of meaning against words, where the embedder reads the language."""

FLOOR = 0.35
"""Cosine below which an operator with none of the words is not meant."""

MAX_TOKENS = 1_500
"""How long a model's answer may be: a line an operator."""

BEST = 100
"""The score of what fits a need wholly."""

_SYSTEM = (
    "You choose operators of the data processing system Data-Juicer for a need. Answer with the "
    "operators that serve it, the best first, one a line: its name as it is listed, a space, and a "
    f"whole number from 1 to {BEST} that says how well it fits. Name no others; say nothing else."
)
_RATING = re.compile(r"([A-Za-z]\w*)\W+(\d{1,3})\b")


@dataclass(frozen=True, slots=True)
class Score:
    """How well an operator fits.

    Attributes:
        score: What it is ranked by.
        bm25: Of its words; 0 where it has none.
        cosine: Of its meaning; None where that was not asked.
    """

    score: float
    bm25: float
    cosine: float | None = None


class Index:
    """Operators, by their words and their meaning.

    Args:
        operators: The operators, in the order of their places.
        terms: The places that have a term, each with the term's weighted count there.
        lengths: How many terms each place has, weighted.
    """

    def __init__(
        self,
        operators: Sequence[Operator],
        terms: Mapping[str, Mapping[str, float]],
        lengths: Sequence[float],
    ) -> None:
        self._operators = operators
        self._terms = terms
        self._lengths = lengths
        self._embedder = StaticEmbedder()

    def by_words(self, intent: str) -> dict[str, Score]:
        """The BM25 score of each operator that has a word of the intent, by name."""
        return {
            self._operators[place].name: Score(each, each) for place, each in self._bm25(intent)
        }

    def by_both(self, intent: str) -> dict[str, Score]:
        """The scores of those that are near by words or by meaning; by words alone in Chinese."""
        from storage.retrieval.ranking import fuse

        if is_spaceless(intent):
            return self.by_words(intent)
        words = dict(self._bm25(intent))
        cosines = dict(enumerate((self._vectors @ self._embedder.embed_query(intent)).tolist()))
        fused = fuse(cosines, words, ALPHA, FLOOR)
        return {
            self._operators[place].name: Score(score, words.get(place, 0.0), cosines[place])
            for place, score in fused.items()
        }

    @cached_property
    def _vectors(self) -> Vectors:
        texts = (f"{each.name.replace('_', ' ')}: {each.summary}" for each in self._operators)
        return self._embedder.embed_passages(list(texts))

    def _bm25(self, intent: str) -> list[tuple[int, float]]:
        from storage.retrieval.bm25 import SmallCorpus

        terms = tokenize(translated(intent))
        texts: list[dict[str, float]] = [{} for _ in self._lengths]
        for term in set(terms):
            for place, count in self._terms.get(term, {}).items():
                texts[int(place)][term] = count
        scored = SmallCorpus(texts, lengths=self._lengths).scores(terms)
        return [(place, score) for place, score in enumerate(scored) if score > 0]


async def by_pattern(pattern: str, operators: Sequence[Operator]) -> list[Operator]:
    """Those whose name, description or parameters a pattern is found in, by name.

    Raises:
        InvalidArgumentsError: If it is no regular expression.
        DeadlineError: If it takes too long.
    """
    texts = ["\n".join((each.name, each.description, *_parameters(each))) for each in operators]
    return [operators[place] for place in await matching(pattern, texts)]


def question(intent: str, top_k: int, operators: Sequence[Operator]) -> Prompt:
    """What a model is asked, so that its answer can be read by `ratings`."""
    listed = "\n".join(f"{each.name}: {each.summary}" for each in operators)
    text = f"The need: {intent}\n\nAt most {top_k} of these operators:\n{listed}"
    return Prompt(_SYSTEM, text, MAX_TOKENS)


def ratings(answer: str, operators: Sequence[Operator]) -> dict[str, int]:
    """The score of each operator that a model's answer names, the best first."""
    known = {each.name for each in operators}
    found = {
        name: min(int(score), BEST)
        for name, score in reversed(_RATING.findall(answer))  # the first of two counts
        if name in known and int(score)
    }
    return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))


def _parameters(operator: Operator) -> list[str]:
    return [f"{each.name} {each.description}" for each in operator.parameters]
