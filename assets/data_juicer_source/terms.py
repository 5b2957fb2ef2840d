"""The terms by which an operator is found, and how much each counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from storage.tokenize import tokenize

__all__ = ["terms_of"]


def terms_of(operator: Mapping[str, Any]) -> dict[str, float]:
    """Returns the terms of an operator's record, each with its weighted number of occurrences."""
    summary, _, description = operator["description"].partition("\n")
    parameters = " ".join(each["name"].replace("_", " ") for each in operator["parameters"])
    weighted = (  # in quarters, so that sums are exact
        (4.0, operator["name"].replace("_", " ")),
        (1.0, summary),
        (0.25, description),
        (0.5, " ".join((operator["type"], *operator["tags"]))),
        (0.25, parameters),
    )
    terms: defaultdict[str, float] = defaultdict(float)
    for weight, text in weighted:
        for term in tokenize(text):
            terms[term] += weight
    return dict(terms)
