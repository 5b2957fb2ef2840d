"""A request for several things, as the several requests it is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from storage.tokenize import tokenize

MAX_CLAUSES = 8
"""Clauses that are looked at; a longer query is a story, whose further parts add little."""

MIN_TERMS = 2
"""Different terms that a clause must have; a shorter part belongs to the one before it."""

_BREAK = re.compile(
    r"(?<=[.!?;])\s+|[\n;]+|(?<=[\u3002\uff01\uff1f\uff1b])"  # the ends of sentences
    r"|(?P<joint>,?\s++(?:and\s+then|and\s+also|and|then|also|as\s+well\s+as|additionally|finally"
    r"|lastly|after\s+that|followed\s+by)\s+|,\s+)",
    re.IGNORECASE,
)


def clauses_of(query: str) -> list[tuple[int, int]]:
    """Where the clauses of a query begin and end; none for a query that is but one."""
    clauses: list[tuple[int, int]] = []
    for start, end, goes_on in _parts(query):
        terms = len(set(tokenize(query[start:end])))
        if goes_on and clauses and terms <= MIN_TERMS:
            clauses[-1] = clauses[-1][0], end
        elif terms:
            clauses.append((start, end))
    telling = [
        (start, end) for start, end in clauses if len(set(tokenize(query[start:end]))) >= MIN_TERMS
    ]
    return telling[:MAX_CLAUSES] if len(telling) > 1 else []


def _parts(query: str) -> Iterator[tuple[int, int, bool]]:
    """Start and end of what stands between breaks, and whether it goes on the same sentence."""
    start, goes_on = 0, False
    for found in _BREAK.finditer(query):
        if query[start : found.start()].strip():
            yield start, found.start(), goes_on
            goes_on = found["joint"] is not None
        start = found.end()
    if query[start:].strip():
        yield start, len(query), goes_on
