"""Finds entities by name, by similar names, and by words of their text.

The word score is Robertson's BM25 (k1 = 1.2; b = 0, because the texts are short), divided by its
limit for an entity that repeats every word endlessly: 0 to 1, independent of other results. Name
and words combine like probabilities, `1 - (1 - name) * (1 - words)`, so that a certain name stays
first.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from storage.database import View, Where, identity_clause
from storage.models import Identity
from storage.people.entities import entity_of
from storage.people.models import Entity, EntityMatch, EntityType, How
from storage.people.name_matching import Likeness, likely, nearest
from storage.tokenize import fold, tokenize

_K1 = 1.2
_NAMED = "FROM entity_names n JOIN entities e ON e.seq = n.entity_seq WHERE n.user_id = ?"


def visible(identity: Identity, entity_type: EntityType | None = None) -> Where:
    """Returns the condition on `entities AS e` for those an identity sees, optionally of a type."""
    owner = identity_clause(identity, "e")
    if entity_type is None:
        return owner
    return Where(f"{owner.sql} AND e.entity_type = ?", (*owner.values, entity_type))


@dataclass(frozen=True)
class EntitySearch:
    """Finds the entities that an identity sees, of any type or of one."""

    view: View
    entity_type: EntityType | None = None

    def named(self, name: str) -> list[Entity]:
        """Returns the entities with a name, or else those with it as an alias."""
        sure = [match.entity for match in self._sure(name)]
        asked = fold(name)
        return [entity for entity in sure if fold(entity.name) == asked] or sure

    def find(self, name: str) -> list[EntityMatch]:
        """Returns the entities that a name matches, best first, by the surest method."""
        sure = self._sure(name)
        for way in ("exact", "alias", "folded"):
            surest = [match for match in sure if match.how == way]
            if surest:
                return surest
        return self._matches(likely(fold(name), self.folded_names()))

    def near(self, name: str) -> list[EntityMatch]:
        """Returns entities with similar names, best first, including unlikely ones."""
        return _best([*self._sure(name), *self._matches(nearest(fold(name), self.folded_names()))])

    def search(self, query: str) -> list[EntityMatch]:
        """Returns entities that match by name or by words of names, summary and metadata."""
        named = {match.entity.id: match for match in self.find(query)}
        by_words = self._word_scores(query)
        rows = self.view.rows(
            "SELECT * FROM entities WHERE seq IN (SELECT value FROM json_each(?))",
            (json.dumps(list(by_words.keys() - named.keys())),),
        )
        matches = [
            replace(match, score=1 - (1 - match.score) * (1 - by_words.get(seq, 0.0)))
            for seq, match in named.items()
        ]
        matches += [EntityMatch(entity_of(row), by_words[row["seq"]], "words", "") for row in rows]
        return _best(matches)

    def listed(self, limit: int, offset: int) -> list[Entity]:
        """Returns entities ordered by name."""
        rows = self.view.rows(
            f"SELECT e.* FROM entities e WHERE {self._where.sql}"
            " ORDER BY e.folded, e.entity_type, e.seq LIMIT ? OFFSET ?",
            (*self._where.values, limit, offset),
        )
        return list(map(entity_of, rows))

    def count(self) -> int:
        """Returns the number of entities."""
        found = f"SELECT count(*) FROM entities e WHERE {self._where.sql}"
        return int(self.view.rows(found, self._where.values)[0][0])

    def folded_names(self) -> list[str]:
        """Returns the distinct folded names and aliases."""
        rows = self.view.rows(
            "SELECT DISTINCT n.folded FROM entities e JOIN entity_names n ON n.entity_seq = e.seq"
            f" WHERE {self._where.sql}",
            self._where.values,
        )
        return [str(row[0]) for row in rows]

    def owners(self, folded: Iterable[str]) -> dict[str, list[tuple[Entity, str]]]:
        """Returns the entities with these folded names, each with its spelling."""
        rows = self.view.rows(
            f"SELECT e.*, n.spelling, n.folded AS found {_NAMED}"
            f" AND n.folded IN (SELECT value FROM json_each(?)) AND {self._where.sql}",
            (self.view.user_id, json.dumps(list(folded)), *self._where.values),
        )
        owners: dict[str, list[tuple[Entity, str]]] = {}
        for row in rows:
            owners.setdefault(row["found"], []).append((entity_of(row), row["spelling"]))
        return owners

    @cached_property
    def _where(self) -> Where:
        return visible(self.view.identity, self.entity_type)

    def _sure(self, name: str) -> list[EntityMatch]:
        """Returns the entities with this folded name: own names first, then aliases."""
        rows = self.view.rows(
            f"SELECT e.*, n.spelling, n.is_alias {_NAMED} AND n.folded = ? AND {self._where.sql}"
            " ORDER BY n.is_alias, e.folded, e.entity_type, e.seq",
            (self.view.user_id, fold(name), *self._where.values),
        )
        matches = []
        for row in rows:
            same: How = "alias" if row["is_alias"] else "exact"
            how: How = same if row["spelling"] == name else "folded"
            matches.append(EntityMatch(entity_of(row), 1.0, how, row["spelling"]))
        return matches

    def _matches(self, found: Sequence[Likeness]) -> list[EntityMatch]:
        owners = self.owners(each.folded for each in found)
        return _best(
            EntityMatch(entity, each.score, each.how, spelling)
            for each in found
            for entity, spelling in owners[each.folded]
        )

    def _word_scores(self, query: str) -> dict[int, float]:
        """Returns each entity's share of the query's words, 0 to 1."""
        from storage.retrieval.bm25 import SmallCorpus  # it imports numpy

        terms = tokenize(query)
        rows = self.view.rows(
            "SELECT w.term, w.entity_seq, w.weight FROM entity_terms w"
            " JOIN entities e ON e.seq = w.entity_seq WHERE w.user_id = ?"
            f" AND w.term IN (SELECT value FROM json_each(?)) AND {self._where.sql}",
            (self.view.user_id, json.dumps(list(dict.fromkeys(terms))), *self._where.values),
        )
        if not rows:
            return {}
        weights: defaultdict[int, dict[str, float]] = defaultdict(dict)
        for row in rows:
            weights[row["entity_seq"]][row["term"]] = row["weight"]
        corpus = SmallCorpus(list(weights.values()), total=self.count(), k1=_K1)
        most = sum((_K1 + 1) * corpus.weight(term) for term in terms)
        return {seq: score / most for seq, score in zip(weights, corpus.scores(terms), strict=True)}


def _best(matches: Iterable[EntityMatch]) -> list[EntityMatch]:
    """Returns each entity once with its best match; ties by importance."""
    best: dict[int, EntityMatch] = {}
    for match in matches:
        known = best.get(match.entity.id)
        if known is None or match.score > known.score:
            best[match.entity.id] = match
    return sorted(
        best.values(),
        key=lambda match: (
            *(-match.score, -match.entity.importance),
            *(fold(match.entity.name), match.entity.id),
        ),
    )
