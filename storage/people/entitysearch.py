"""Finds entities by name, by similar names, and by words of their text.

The word score is Robertson's BM25 (k1 = 1.2; b = 0, because the texts are short), divided by its
limit for an entity that repeats every word endlessly: 0 to 1, independent of other results. Name
and words combine like probabilities, `1 - (1 - name) * (1 - words)`, so that a certain name stays
first.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from storage.database import Where
from storage.people.entities import entity_of, folded_names, matches_of, sure_matches
from storage.people.likeness import Likeness, likely, nearest
from storage.people.models import Entity, EntityMatch
from storage.people.names import fold
from storage.tokenize import tokenize

_K1 = 1.2
_SURE_WAYS = ("exact", "alias", "folded")


def find_entities(
    connection: sqlite3.Connection, where: Where, user_id: str, name: str
) -> list[EntityMatch]:
    """Returns the entities that a name matches, best first, by the same methods as `resolve`."""
    sure = sure_matches(connection, where, user_id, name)
    for way in _SURE_WAYS:
        surest = [match for match in sure if match.how == way]
        if surest:
            return surest
    return _alike(connection, where, user_id, name, likely)


def near_entities(
    connection: sqlite3.Connection, where: Where, user_id: str, name: str
) -> list[EntityMatch]:
    """Returns entities with similar names, best first, including unlikely ones."""
    sure = sure_matches(connection, where, user_id, name)
    return _best([*sure, *_alike(connection, where, user_id, name, nearest)])


def search_entities(
    connection: sqlite3.Connection, where: Where, user_id: str, query: str
) -> list[EntityMatch]:
    """Returns entities that match a query by name or by words of names, summary and metadata."""
    named = {match.entity.id: match for match in find_entities(connection, where, user_id, query)}
    by_words = _words(connection, where, user_id, query)
    loaded = _load(connection, by_words.keys() - named.keys())
    matches = [
        replace(match, score=1 - (1 - match.score) * (1 - by_words.get(seq, 0.0)))
        for seq, match in named.items()
    ]
    matches += [EntityMatch(entity, by_words[entity.id], "words", "") for entity in loaded]
    return _best(matches)


def _alike(
    connection: sqlite3.Connection,
    where: Where,
    user_id: str,
    name: str,
    way: Callable[[str, Iterable[str]], list[Likeness]],
) -> list[EntityMatch]:
    found = way(fold(name), folded_names(connection, where))
    owners = matches_of(connection, where, user_id, [each.folded for each in found])
    return _best(
        EntityMatch(entity, each.score, each.how, spelling)
        for each in found
        for entity, spelling in owners[each.folded]
    )


def _best(matches: Iterable[EntityMatch]) -> list[EntityMatch]:
    """Returns each entity once with its best match; ties by importance."""
    best: dict[int, EntityMatch] = {}
    for match in matches:
        known = best.get(match.entity.id)
        if known is None or match.score > known.score:
            best[match.entity.id] = match
    return sorted(best.values(), key=_rank)


def _rank(match: EntityMatch) -> tuple[float, float, str, int]:
    return -match.score, -match.entity.importance, fold(match.entity.name), match.entity.id


def _words(
    connection: sqlite3.Connection, where: Where, user_id: str, query: str
) -> dict[int, float]:
    """Returns each entity's share of the query's words, 0 to 1."""
    from storage.retrieval.bm25 import SmallCorpus  # it imports numpy

    terms = tokenize(query)
    rows = connection.execute(
        "SELECT w.term, w.entity_seq, w.weight FROM entity_terms w"
        " JOIN entities e ON e.seq = w.entity_seq"
        f" WHERE w.user_id = ? AND w.term IN (SELECT value FROM json_each(?)) AND {where.sql}",
        (user_id, json.dumps(list(dict.fromkeys(terms))), *where.values),
    ).fetchall()
    if not rows:
        return {}
    total = connection.execute(
        f"SELECT count(*) FROM entities e WHERE {where.sql}", where.values
    ).fetchone()[0]
    weights: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for row in rows:
        weights[row["entity_seq"]][row["term"]] = row["weight"]
    corpus = SmallCorpus(list(weights.values()), total=total, k1=_K1)
    most = sum((_K1 + 1) * corpus.weight(term) for term in terms)
    return {seq: score / most for seq, score in zip(weights, corpus.scores(terms), strict=True)}


def _load(connection: sqlite3.Connection, seqs: Iterable[int]) -> Sequence[Entity]:
    rows = connection.execute(
        "SELECT * FROM entities WHERE seq IN (SELECT value FROM json_each(?))",
        (json.dumps(list(seqs)),),
    )
    return [entity_of(row) for row in rows]
