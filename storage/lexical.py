"""The lexical index: BM25 over the terms of `tokenize`, in SQLite's FTS5, current at once.

Scores are those of FTS5's bm25() (Robertson's BM25 with k1 = 1.2 and b = 0.75), with their sign
turned so that more is better; a context without any of the terms scores 0.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence

from storage.filters import Where

__all__ = ["MAX_QUERY_TERMS", "add_terms", "best_matches", "score_matches"]

TITLE_WEIGHT = 2.0
BODY_WEIGHT = 1.0

MAX_QUERY_TERMS = 64
"""A longer query is cut: it is a pasted text, and its first terms tell what it is about."""

_SCORE = f"-bm25(lexical, {TITLE_WEIGHT}, {BODY_WEIGHT})"


def add_terms(
    connection: sqlite3.Connection, rows: Iterable[tuple[int, Sequence[str], Sequence[str]]]
) -> None:
    """Adds contexts: rows of (seq, title terms, body terms)."""
    connection.executemany(
        "INSERT INTO lexical (rowid, title, body) VALUES (?, ?, ?)",
        ((seq, " ".join(title), " ".join(body)) for seq, title, body in rows),
    )


def best_matches(
    connection: sqlite3.Connection, terms: Sequence[str], where: Where, limit: int
) -> dict[int, float]:
    """The best contexts that contain any of the terms: seq → score, best first."""
    if not terms:
        return {}
    rows = connection.execute(
        f"SELECT c.seq, {_SCORE} AS score FROM lexical"
        " JOIN contexts c ON c.seq = lexical.rowid JOIN documents d ON d.seq = c.document_seq"
        f" WHERE lexical MATCH ? AND {where.sql} ORDER BY score DESC, c.seq LIMIT ?",
        (_any_of(terms), *where.values, limit),
    )
    return {int(row[0]): float(row[1]) for row in rows}


def score_matches(
    connection: sqlite3.Connection, terms: Sequence[str], seqs: Collection[int]
) -> dict[int, float]:
    """The scores of given contexts: seq → score, without those that contain none of the terms."""
    if not terms or not seqs:
        return {}
    rows = connection.execute(
        f"SELECT rowid, {_SCORE} FROM lexical"
        " WHERE lexical MATCH ? AND rowid IN (SELECT value FROM json_each(?))",
        (_any_of(terms), json.dumps(list(seqs))),
    )
    return {int(row[0]): float(row[1]) for row in rows}


def _any_of(terms: Sequence[str]) -> str:
    unique = list(dict.fromkeys(terms))[:MAX_QUERY_TERMS]
    return " OR ".join(f'"{term}"' for term in unique)
