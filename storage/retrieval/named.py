"""What a query names: the user, people and things by any of their names, and what is near them.

The cards of those are candidates of a search, whatever their words, and those of their neighbours,
one or two relationships away. How near a card is counts as its surroundings do: it raises a score,
never lowers it. A name may be asked for by some of its words and with a typo, where no stored text
has that word; then its own words are searched for as well.
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
from storage.models import ContextType, Identity
from storage.people.former import FORMERLY, asks_for_past
from storage.people.likeness import FUZZY_FLOOR, letters, plain_name
from storage.people.names import fold
from storage.retrieval.ranking import Around
from storage.tokenize import STOP_WORDS, is_spaceless, terms_of

if TYPE_CHECKING:
    from storage.contexts.filters import Seqs

WEIGHT = 0.5
"""How much it counts that a card is of what the query names; its own score has the weight 1."""

STEPS = (1.0, 0.5, 0.25)
"""How near the named are, their neighbours, and the neighbours of those."""

USER = 0.5
"""How near the user is, where a query says "I" or "the user"."""

MOST_NAMED = 10
"""Entities that a query names at most: a word that many names have in common names none."""

MOST_NEAR = 100
"""Neighbours of one step: of what has more, the others are found by their words alone."""

MOST_WORDS = 64
LEAST_SHARE = 0.4
"""How much of a name's letters a query has to say, so that it names it."""

_SHORTEST = 4
"""Letters of a word in which a typo is recognized."""

_NO_ADVICE = "".join(
    rf"(?<!\b{before} )"
    for before in ("how do", "how can", "how should", "can", "could", "should", "kann", "soll")
)
"""Not before an "I" whom somebody else knows what to do for."""

_OF_USER = (
    rf"(?i)(?:{_NO_ADVICE}\b(?:i|ich)|\b(?:about|of|to|for|know) me|\bmy|\bmine|\bthe user|\bmir"
    r"|\bmich|\bmeine?[mnrs]?|\bnutzers?|\bbenutzers?)\b|我|用户|用戶"
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Named:
    """The cards of what a query names, and of what is near.

    Attributes:
        near: How near each of their chunks is, 0 to 1.
        words: The terms of names that are stored with other words than the query's, each with the
            word that stands for it there.
    """

    near: Mapping[int, float] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def seqs(self) -> Seqs:
        """The chunks."""
        import numpy as np

        return np.fromiter(self.near, dtype=np.int64)

    def around(self, own: Mapping[int, float], fitting: Collection[int]) -> dict[int, Around]:
        """What it counts for each chunk; two steps away only where the query speaks of it too.

        Args:
            own: Each chunk's own score, 0 to 1; 0 for one that is not given.
            fitting: Those that the search lets through.
        """
        return {
            seq: Around(own.get(seq, 0.0) + (1 - own.get(seq, 0.0)) * near, WEIGHT)
            for seq, near in self.near.items()
            if seq in fitting and (own.get(seq, 0.0) or near > STEPS[-1])
        }


@dataclass(frozen=True, slots=True)
class _Names:
    """The folded names of some entities.

    Attributes:
        owners: Whose each is.
        holding: Those that hold each word.
        words: The words.
        spaceless: Those in scripts without spaces.
    """

    owners: Mapping[str, Sequence[int]]
    holding: Mapping[str, Sequence[str]]
    words: Sequence[str]
    spaceless: Sequence[str]


NOBODY = Named()


def find_named(
    connection: sqlite3.Connection, identity: Identity, query: str, index: UserIndex
) -> Named:
    """What a query names, of what an identity may see.

    Args:
        connection: The record, in the search's transaction.
        identity: Whose.
        query: What to look for.
        index: The lexical index of the user, which knows the words of all texts.
    """
    entities, words = _named_entities(connection, identity, query, index)
    near = _within_two_steps(connection, identity, entities)
    chunks = _chunks_of(connection, identity, near, query)
    return Named(chunks, words) if chunks else NOBODY


def _named_entities(
    connection: sqlite3.Connection, identity: Identity, query: str, index: UserIndex
) -> tuple[dict[int, float], dict[str, str]]:
    """The entities that a query names, how much of a name it says, and words for its typos."""
    known = _names(connection, identity)
    asked = fold(query)
    said = {name: 1.0 for name in known.spaceless if name in asked}
    meant = _meant(list(dict.fromkeys(_WORD.findall(asked)))[:MOST_WORDS], known, index)
    said |= _shares(meant, known.holding)
    best: dict[int, float] = {}
    for name, share in said.items():
        for seq in known.owners[name]:
            best[seq] = max(best.get(seq, 0.0), share)
    if len(best) > MOST_NAMED:
        whole = {seq: share for seq, share in best.items() if share == 1}
        best = whole if len(whole) <= MOST_NAMED else {}
    words = {
        term: word
        for word, (stored, alike) in meant.items()
        if alike < 1 and not said.keys().isdisjoint(known.holding[stored])
        for term in terms_of(stored)
    }
    return best, words


def _names(connection: sqlite3.Connection, identity: Identity) -> _Names:
    """The names of the entities that an identity sees."""
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
    """Names from JSON, which two searches have in common for as long as nobody gets another."""
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
    """How much of each name is said, of those of which enough is."""
    spoken: defaultdict[str, float] = defaultdict(float)
    for stored, alike in meant.values():
        for name in holding[stored]:
            spoken[name] += len(stored) * alike
    shares = {name: count / letters(plain_name(name).split()) for name, count in spoken.items()}
    return {name: min(1.0, share) for name, share in shares.items() if share >= LEAST_SHARE}


def _meant(words: Sequence[str], known: _Names, index: UserIndex) -> dict[str, tuple[str, float]]:
    """For words of a query those of names that they are, or a typo away from, and how alike."""
    content = [word for word in words if word not in STOP_WORDS or len(words) == 1]
    exact = {word: (word, 1.0) for word in content if word in known.holding}
    return exact | _typos([word for word in content if word not in exact], known.words, index)


def _typos(
    words: Sequence[str], stored: Sequence[str], index: UserIndex
) -> dict[str, tuple[str, float]]:
    """For words that no text has, the words of names that they are a typo away from."""
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
        beside = dict.fromkeys(seq for row in rows for seq in row if seq not in near)
        near |= dict.fromkeys(beside, step)
        edge = beside
    return near


def _chunks_of(
    connection: sqlite3.Connection, identity: Identity, near: Mapping[int, float], query: str
) -> dict[int, float]:
    """The chunks of the cards of entities, and of the user's where the query speaks of them.

    What held once is near where the query asks for the past, and is left out elsewhere.
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
