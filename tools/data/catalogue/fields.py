"""An operator's texts: which fields it has, and how much their terms count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from storage.tokenize import tokenize

FIELD_WEIGHTS = {"name": 4.0, "summary": 1.0, "description": 0.25, "tags": 0.5, "parameters": 0.25}
"""What one occurrence of a term in a field counts; quarters, so that sums of them are exact."""


def terms_of(operator: Mapping[str, Any]) -> dict[str, float]:
    """Returns the terms of an operator, each with its weighted number of occurrences."""
    summary, _, description = operator["description"].partition("\n")
    texts = {
        "name": operator["name"].replace("_", " "),
        "summary": summary,
        "description": description,
        "tags": " ".join((operator["type"], *operator["tags"])),
        "parameters": " ".join(each["name"].replace("_", " ") for each in operator["parameters"]),
    }
    terms: defaultdict[str, float] = defaultdict(float)
    for field, weight in FIELD_WEIGHTS.items():
        for term in tokenize(texts[field]):
            terms[term] += weight
    return dict(terms)
