"""The recipe for a data set of which only its first rows are known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tools.data.recipe import Step

KEEP_ALL = Step(name="text_length_filter", params={"min_len": 0})
"""A step that keeps every row, where a recipe is to change nothing."""

_TAG = re.compile(
    r"</?(?:p|div|br|span|a|li|ul|table|tr|td|h[1-6]|b|i|em|strong)\b[^>]*>", re.IGNORECASE
)
_MANY = 0.2
"""The share of texts with tags from which they are taken for HTML."""

_SHORT = 40
"""Characters of the middle text below which short ones are what is wanted, such as titles."""


def deduplicating_steps(*, near: bool) -> list[Step]:
    """Returns what drops rows whose text an earlier row has too, in any case.

    With `near`, texts that share 70 % of all sequences of five characters are the same too.
    """
    exact = Step(name="document_deduplicator", params={"lowercase": True})
    if not near:
        return [exact]
    similar: dict[str, Any] = {
        "tokenization": "character",  # words would take all texts of few words for one
        "window_size": 5,
        "lowercase": True,
        "jaccard_threshold": 0.7,
        "num_permutations": 256,
        "num_bands": 25,  # both as Data-Juicer computes them, which needs SciPy
        "num_rows_per_band": 10,
    }
    return [exact, Step(name="document_minhash_deduplicator", params=similar)]


def cleaning_steps(texts: Sequence[str]) -> Iterator[Step]:
    """Yields what mends such texts, and drops rows that hold hardly any."""
    tagged = sum(1 for text in texts if len(_TAG.findall(text)) > 1)
    if texts and tagged / len(texts) >= _MANY:
        yield Step(name="clean_html_mapper")
    yield Step(name="fix_unicode_mapper")
    yield Step(name="whitespace_normalization_mapper")
    lengths = sorted(map(len, texts))
    is_short = bool(lengths) and lengths[len(lengths) // 2] < _SHORT
    yield Step(name="text_length_filter", params={"min_len": 1 if is_short else 10})
    yield Step(name="alphanumeric_filter", params={"tokenization": False, "min_ratio": 0.25})
    if not is_short:
        repeats = {"rep_len": 10, "max_ratio": 0.5}
        yield Step(name="character_repetition_filter", params=repeats)
