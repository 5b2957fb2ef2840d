"""Finds the entities that a query names, by any of their names, and entities related to them.

Their cards become candidates of a search, whatever their words, as do the cards of entities one or
two relationships away. Like the surroundings of a chunk, this raises a score and never lowers it. A
name may be given by some of its words, and with a typo if no stored text has that word; its correct
words are then searched for too.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from storage.database import identity_clause
from storage.index.lexical import UserIndex
from storage.models import FORMERLY, ContextType, Identity
from storage.people.name_matching import FUZZY_FLOOR, letters, plain_name
from storage.retrieval.query_signals import asks_for_past
from storage.retrieval.ranking import Around
from storage.tokenize import STOP_WORDS, fold, is_spaceless, terms_of

if TYPE_CHECKING:
    from storage.contexts.filters import Seqs

WEIGHT = 0.5  # the weight of a named entity's card; the chunk's own score has the weight 1
# The nearness of named entities, of their neighbours, and of the neighbours of those.
STEPS = (1.0, 0.5, 0.25)
USER = 0.5  # the nearness of the user, if a query says "I" or "the user"
MOST_NAMED = 10  # maximum entities a query can name; a word shared by more names identifies none
MOST_NEAR = 100  # maximum neighbours per step; further ones are found only by their words
MOST_WORDS = 64
LEAST_SHARE = 0.4  # the share of a name's letters that a query must contain to name it
_SHORTEST = 4  # minimum letters of a word in which a typo is recognized

# Not before an "I" that asks for advice rather than for facts about the user.
_NO_ADVICE = "".join(
    rf"(?<!\b{before} )"
    for before in ("how do", "how can", "how should", "can", "could", "should", "kann", "soll")
)

_OF_USER = (
    rf"(?i)(?:{_NO_ADVICE}\b(?:i|ich)|\b(?:about|of|to|for|know) me|\bmy|\bmine|\bthe user|\bmir"
    r"|\bmich|\bmeine?[mnrs]?|\bnutzers?|\bbenutzers?)\b|我|用户|用戶"
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Named:
    """The cards of named entities and of their neighbours."""

    # The nearness of each of their chunks, 0 to 1.
    near: Mapping[int, float] = field(default_factory=dict)
    # The terms of stored names that differ from the query's words, each with the stored word.
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def seqs(self) -> Seqs:
        """The seqs of the chunks."""
        import numpy as np

        return np.fromiter(self.near, dtype=np.int64)

    def around(self, own: Mapping[int, float], fitting: Collection[int]) -> dict[int, Around]:
        """Returns the effect on fitting chunks; two steps away only if the query matches too."""
        return {
            seq: Around(own.get(seq, 0.0) + (1 - own.get(seq, 0.0)) * near, WEIGHT)
            for seq, near in self.near.items()
            if seq in fitting and (own.get(seq, 0.0) or near > STEPS[-1])
        }


@dataclass(frozen=True, slots=True)
class _Names:
    """The folded names of some entities."""

    owners: Mapping[str, Sequence[int]]  # the entities of each name
    holding: Mapping[str, Sequence[str]]  # the names that contain each word
    words: Sequence[str]
    spaceless: Sequence[str]  # the names in scripts without spaces


NOBODY = Named()


def find_named(
    connection: sqlite3.Connection, identity: Identity, query: str, index: UserIndex
) -> Named:
    """Finds what a query names, within what an identity sees."""
    entities, words = _named_entities(connection, identity, query, index)
    near = _within_two_steps(connection, identity, entities)
    chunks = _chunks_of(connection, identity, near, query)
    return Named(chunks, words) if chunks else NOBODY


def _named_entities(
    connection: sqlite3.Connection, identity: Identity, query: str, index: UserIndex
) -> tuple[dict[int, float], dict[str, str]]:
    """Returns the named entities, the share of each name in the query, and words for typos."""
    known = _names(connection, identity)
    asked = fold(query)
    shares = {name: 1.0 for name in known.spaceless if name in asked}
    spoken = list(dict.fromkeys(_WORD.findall(asked)))[:MOST_WORDS]
    content = [word for word in spoken if word not in STOP_WORDS or len(spoken) == 1]
    # Each word with the same or a similar word of names, and the similarity.
    meant = {word: (word, 1.0) for word in content if word in known.holding}
    meant |= _typos([word for word in content if word not in meant], known.words, index)
    shares |= _shares(meant, known.holding)
    best: dict[int, float] = {}
    for name, share in shares.items():
        for seq in known.owners[name]:
            best[seq] = max(best.get(seq, 0.0), share)
    if len(best) > MOST_NAMED:
        whole = {seq: share for seq, share in best.items() if share == 1}
        best = whole if len(whole) <= MOST_NAMED else {}
    words = {
        term: word
        for word, (stored, alike) in meant.items()
        if alike < 1 and not shares.keys().isdisjoint(known.holding[stored])
        for term in terms_of(stored)
    }
    return best, words


def _names(connection: sqlite3.Connection, identity: Identity) -> _Names:
    owner = identity_clause(identity, "e")
    also = ""
    if owner.narrows:
        also = f" AND EXISTS (SELECT 1 FROM entities e WHERE e.seq = n.entity_seq AND {owner.sql})"
    folded, owners = connection.execute(
        "SELECT json_group_array(n.folded), json_group_array(n.entity_seq) FROM entity_names n"
        f" WHERE n.user_id = ?{also}",
        (identity.user_id, *(owner.values if owner.narrows else ())),
    ).fetchone()
    return _read_names(folded, owners)


@lru_cache(maxsize=4)
def _read_names(folded: str, owners: str) -> _Names:
    """Parses names from JSON; cached, because names rarely change between searches."""
    owning: defaultdict[str, list[int]] = defaultdict(list)
    for name, seq in zip(json.loads(folded), json.loads(owners), strict=True):
        owning[name].append(seq)
    holding: defaultdict[str, list[str]] = defaultdict(list)
    spaceless = []
    for name in owning:
        if is_spaceless(name):
            spaceless.append(name)
        else:
            for part in plain_name(name).split():
                holding[part].append(name)
    return _Names(dict(owning), dict(holding), list(holding), spaceless)


def _shares(
    meant: Mapping[str, tuple[str, float]], holding: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Returns the share of each name in the query, if it is large enough."""
    spoken: defaultdict[str, float] = defaultdict(float)
    for stored, alike in meant.values():
        for name in holding[stored]:
            spoken[name] += len(stored) * alike
    shares = {name: count / letters(plain_name(name).split()) for name, count in spoken.items()}
    return {name: min(1.0, share) for name, share in shares.items() if share >= LEAST_SHARE}


def _typos(
    words: Sequence[str], stored: Sequence[str], index: UserIndex
) -> dict[str, tuple[str, float]]:
    """Maps words that no text contains to words of names a typo away."""
    from rapidfuzz.distance import OSA
    from rapidfuzz.process import extractOne

    found = {}
    for word in words:
        if len(word) < _SHORTEST:
            continue
        if next(index.holders(list(terms_of(word))), None) is not None:
            continue
        scorer = OSA.normalized_similarity
        nearest = extractOne(word, stored, scorer=scorer, score_cutoff=FUZZY_FLOOR)
        if nearest is not None:
            found[word] = (nearest[0], nearest[1])
    return found


def _within_two_steps(
    connection: sqlite3.Connection, identity: Identity, entities: Mapping[int, float]
) -> dict[int, float]:
    near = dict(entities)
    edge: Iterable[int] = entities
    for step in STEPS[1:]:
        owner = identity_clause(identity, "r")
        listed = json.dumps(list(edge))
        rows = connection.execute(
            f"SELECT r.source_seq, r.target_seq FROM relationships r WHERE {owner.sql}"
            " AND r.source_seq IN (SELECT value FROM json_each(?))"
            f" UNION SELECT r.source_seq, r.target_seq FROM relationships r WHERE {owner.sql}"
            " AND r.target_seq IN (SELECT value FROM json_each(?)) LIMIT ?",
            (*owner.values, listed, *owner.values, listed, MOST_NEAR),
        ).fetchall()
        neighbours = dict.fromkeys(seq for row in rows for seq in row if seq not in near)
        near |= dict.fromkeys(neighbours, step)
        edge = neighbours
    return near


def _chunks_of(
    connection: sqlite3.Connection, identity: Identity, near: Mapping[int, float], query: str
) -> dict[int, float]:
    """Returns the chunks of entities' cards, and of the user's if the query mentions the user.

    Former facts are included only if the query asks about the past.
    """
    cards = {(ContextType.ENTITY.value, str(seq)): share for seq, share in near.items()}
    if re.search(_OF_USER, query):
        cards[ContextType.PROFILE.value, ""] = USER
    if not cards:
        return {}
    owner = identity_clause(identity, "x")
    cursor = connection.execute(
        "SELECT c.seq, c.heading, x.raw_type, x.raw_id"
        " FROM (SELECT json_extract(value, '$[0]') AS raw_type,"
        " json_extract(value, '$[1]') AS raw_id FROM json_each(?)) j"
        f" CROSS JOIN contexts x ON {owner.sql} AND x.raw_type = j.raw_type"
        " AND x.raw_id = j.raw_id AND x.context_type = x.raw_type"
        " CROSS JOIN chunks c ON c.context_seq = x.seq",
        (json.dumps(list(cards)), *owner.values),
    )
    cursor.row_factory = None
    past = asks_for_past(query)
    return {
        seq: cards[kind, name] for seq, heading, kind, name in cursor if past or heading != FORMERLY
    }
