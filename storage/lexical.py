"""The lexical index: BM25 over the terms of `tokenize`, in SQLite's FTS5, current at once.

The score is Robertson's BM25 with k1 = 1.2 and b = 0.75, summed over the query's terms:
`idf(t) * f * (k1 + 1) / (f + k1 * (1 - b + b * length / average length))`, where f counts a term in
a title twice, and `idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))` as Lucene has it (N contexts, n with
the term). FTS5's own idf is 0 for a term in half of all contexts, so that in a young library no
word would count; its bm25() of each term is brought to ours. No term found means 0.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Collection, Iterable, Sequence

from storage.filters import Where

__all__ = ["MAX_QUERY_TERMS", "add_terms", "find_matches"]

TITLE_WEIGHT = 2.0
BODY_WEIGHT = 1.0

MAX_QUERY_TERMS = 64
"""A longer query is cut: it is a pasted text, and its first terms tell what it is about."""

_LEAST_IDF = 1e-6
"""What FTS5 takes for an idf of 0 and less (https://sqlite.org/src/file/ext/fts5/fts5_aux.c)."""


def add_terms(
    connection: sqlite3.Connection, rows: Iterable[tuple[int, Sequence[str], Sequence[str]]]
) -> None:
    """Adds contexts: rows of (seq, title terms, body terms)."""
    connection.executemany(
        "INSERT INTO lexical (rowid, title, body) VALUES (?, ?, ?)",
        ((seq, " ".join(title), " ".join(body)) for seq, title, body in rows),
    )


def find_matches(
    connection: sqlite3.Connection,
    terms: Sequence[str],
    where: Where,
    limit: int,
    also: Collection[int] = (),
) -> dict[int, float]:
    """The best contexts that contain any of the terms, and the scores of given ones.

    Args:
        connection: The record.
        terms: The query's terms.
        where: What the best contexts must fit.
        limit: How many of the best at most.
        also: Contexts whose scores are wanted however low, fit or not.

    Returns:
        seq → score, best first, of contexts that contain at least one of the terms.
    """
    factors = _factors(connection, terms)
    if not factors:
        return {}
    rows = connection.execute(
        f"WITH found AS MATERIALIZED ({_summed(factors)}), best AS ("
        " SELECT c.seq, score FROM found CROSS JOIN chunks c ON c.seq = found.seq"
        " JOIN contexts x ON x.seq = c.context_seq"
        f" WHERE {where.sql} ORDER BY score DESC, c.seq LIMIT ?)"
        " SELECT seq, score FROM best UNION"
        " SELECT seq, score FROM found WHERE seq IN (SELECT value FROM json_each(?))"
        " ORDER BY score DESC, seq",
        (*_values(factors), *where.values, limit, json.dumps(list(also))),
    )
    return {int(row[0]): float(row[1]) for row in rows}


def _factors(connection: sqlite3.Connection, terms: Sequence[str]) -> dict[str, float]:
    """Each term that stands anywhere, with what brings FTS5's score of it to ours."""
    unique = list(dict.fromkeys(terms))[:MAX_QUERY_TERMS]
    total = connection.execute("SELECT count(*) FROM chunks").fetchone()[0]
    found = connection.execute(
        "SELECT term, doc FROM lexical_terms WHERE term IN (SELECT value FROM json_each(?))",
        (json.dumps(unique),),
    )
    return {term: _idf(total, holders) / _fts5_idf(total, holders) for term, holders in found}


def _idf(total: int, holders: int) -> float:
    return math.log1p((total - holders + 0.5) / (holders + 0.5))


def _fts5_idf(total: int, holders: int) -> float:
    return max(math.log((total - holders + 0.5) / (holders + 0.5)), _LEAST_IDF)


def _summed(factors: Collection[str]) -> str:
    one = (
        f"SELECT rowid AS seq, ? * -bm25(lexical, {TITLE_WEIGHT}, {BODY_WEIGHT}) AS score"
        " FROM lexical WHERE lexical MATCH ?"
    )
    if len(factors) == 1:  # SQLite would merge it into the sum, where bm25() does not work
        return one
    each = " UNION ALL ".join([one] * len(factors))
    return f"SELECT seq, sum(score) AS score FROM ({each}) GROUP BY seq"


def _values(factors: dict[str, float]) -> list[object]:
    return [value for term, factor in factors.items() for value in (factor, f'"{term}"')]
