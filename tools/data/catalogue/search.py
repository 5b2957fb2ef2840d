"""Finding operators by what they are to do: by words, by a pattern, or by a model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from storage.tokenize import tokenize
from tools.core.client import Prompt
from tools.data.catalogue.glossary import translated
from tools.data.catalogue.operator import Operator
from tools.data.catalogue.patterns import matching

__all__ = ["Index", "bundled_index", "by_pattern", "question", "ratings"]

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


class Index:
    """The words of each operator, by their places in the catalogue.

    Args:
        terms: The places that have a term, each with the term's weighted count there.
        lengths: How many terms each place has, weighted.
    """

    def __init__(self, terms: Mapping[str, Mapping[str, float]], lengths: Sequence[float]) -> None:
        self._terms = terms
        self._lengths = lengths

    def scores(self, intent: str) -> dict[int, float]:
        """The BM25 score of each place that has a word of the intent."""
        from storage.retrieval.bm25 import SmallCorpus

        terms = tokenize(translated(intent))
        texts: list[dict[str, float]] = [{} for _ in self._lengths]
        for term in set(terms):
            for place, count in self._terms.get(term, {}).items():
                texts[int(place)][term] = count
        scored = SmallCorpus(texts, lengths=self._lengths).scores(terms)
        return {place: score for place, score in enumerate(scored) if score > 0}


@cache
def bundled_index() -> Index:
    """The index of the release that is pinned, read on first use."""
    text = files(__package__).joinpath("terms.json").read_text(encoding="utf-8")
    return Index(**json.loads(text))


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
