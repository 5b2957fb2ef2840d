"""Which texts say the name of an entity, worked out when it is asked for and never out of date.

The lexical index tells which chunks hold the words of a name; these are read, and nothing else. A
chunk's text never changes, so what was read is read no more: of each name the chunks that say it
are remembered, and how far was read. So nothing has to be kept in step, neither with contexts that
are added or forgotten nor with entities that are saved, renamed, merged or deleted, and adding
either costs nothing.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.database import Database
from storage.models import Identity
from storage.people.entities import visible
from storage.people.models import EntityType
from storage.people.namepattern import NamePattern
from storage.people.names import fold
from storage.tokenize import is_spaceless, tokenize

if TYPE_CHECKING:
    from storage.index.lexical import UserIndex

REMEMBERED = 1_000
"""Names of which it is remembered where they are said, those asked for last."""


@dataclass(frozen=True, slots=True)
class _Name:
    """A name to look for.

    Attributes:
        spelling: As it is stored.
        of_person: Whether it is a person's.
        is_title: Whether only what has it as its title counts, as no entity has it.
    """

    spelling: str
    of_person: bool = False
    is_title: bool = False


@dataclass(frozen=True, slots=True)
class _Read:
    """The chunks up to one that say a name."""

    until: int
    seqs: tuple[int, ...]


class SaidNames:
    """Where the texts of every user say names; its calls block.

    Args:
        database: The record.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: OrderedDict[tuple[str, _Name], _Read] = OrderedDict()
        self._lock = threading.Lock()

    def chunks(self, identity: Identity, folded: Sequence[str]) -> tuple[int, ...]:
        """The chunks of a user that say one of some names of entities, ascending.

        Some that are deleted by now may be among them.

        Args:
            identity: Whose; entities that it may not see give no names.
            folded: The names, folded. One that no entity has is a note's own if it is its title.
        """
        if not folded:
            return ()
        with self._database.read() as connection:
            reading = _Reading(connection, identity.user_id)
            names = _names(connection, identity, folded)
            said = {seq for name in names for seq in self._said(reading, name).seqs}
        return tuple(sorted(said))

    def saying(self, identity: Identity, spelling: str) -> tuple[int, ...]:
        """The chunks of a user that say a name as it is given, whether or not an entity has it."""
        with self._database.read() as connection:
            return self._said(_Reading(connection, identity.user_id), _Name(spelling)).seqs

    def _said(self, reading: _Reading, name: _Name) -> _Read:
        key = (reading.user_id, name)
        with self._lock:
            known = self._known.get(key, _Read(0, ()))
        if known.until < reading.last:
            new = tuple(reading.saying(name, known.until))
            known = _Read(reading.last, (*known.seqs, *new))
            if not reading.is_indexed:
                return known  # what is not indexed yet is looked for again
        with self._lock:
            self._known[key] = known
            self._known.move_to_end(key)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return known


class _Reading:
    """The texts of one user, during one transaction."""

    def __init__(self, connection: sqlite3.Connection, user_id: str) -> None:
        self._connection = connection
        self._index: UserIndex | None = None
        self.user_id = user_id
        self.last = int(
            connection.execute(
                "SELECT coalesce(max(seq), 0) FROM chunks WHERE user_id = ?", (user_id,)
            ).fetchone()[0]
        )
        self.is_indexed = (
            connection.execute("SELECT 1 FROM lexical_todo LIMIT 1").fetchone() is None
        )

    def saying(self, name: _Name, after: int) -> Iterator[int]:
        """The chunks after one that say a name, ascending."""
        pattern = NamePattern(name.spelling, of_person=name.of_person)
        if not pattern.is_sayable:
            return
        terms = _terms(pattern.folded)
        rows = self._holding(terms, after) if terms else self._spelling(pattern.written, after)
        for row in rows:
            if _is_titled(row, pattern) if name.is_title else _says(row, pattern):
                yield int(row["seq"])

    def _holding(self, terms: Sequence[str], after: int) -> sqlite3.Cursor:
        """The chunks with all of some terms."""
        from storage.index.lexical import UserIndex

        if self._index is None:
            self._index = UserIndex(self._connection, self.user_id)
        seqs = self._index.holding(terms)
        return self._chunks(
            "json_each(?) j CROSS JOIN chunks c ON c.seq = j.value",
            (json.dumps(seqs[seqs > after].tolist()),),
        )

    def _spelling(self, written: str, after: int) -> sqlite3.Cursor:
        """The chunks with some letters: what is no term is in no index."""
        return self._chunks(
            "chunks c",
            (self.user_id, after, written, written, written),
            "c.user_id = ? AND c.seq > ?"
            " AND (instr(c.content, ?) OR instr(c.heading, ?) OR instr(x.title, ?))",
        )

    def _chunks(
        self, tables: str, values: tuple[object, ...], where: str = "true"
    ) -> sqlite3.Cursor:
        return self._connection.execute(
            "SELECT c.seq, c.position, c.heading, c.content, x.title, x.summary, x.keywords"
            f" FROM {tables} CROSS JOIN contexts x ON x.seq = c.context_seq WHERE {where}"
            " ORDER BY c.seq",
            values,
        )


def _terms(folded: str) -> list[str]:
    """The terms of all texts that say a name; none where such texts need not have any."""
    # A lone character of Chinese is in texts a pair with its neighbour.
    return [term for term in tokenize(folded) if len(term) > 1 or not is_spaceless(term)]


def _says(row: sqlite3.Row, pattern: NamePattern) -> bool:
    """Whether a chunk says a name, or its context's keywords or summary do."""
    texts, tags = [row["title"], row["heading"], row["content"]], []
    if row["position"] == 0:
        texts, tags = [*texts, row["summary"]], json.loads(row["keywords"])
    # No name goes on from one to the next.
    return pattern.is_in("\n|\n".join(texts)) or any(map(pattern.is_tag, tags))


def _is_titled(row: sqlite3.Row, pattern: NamePattern) -> bool:
    return row["position"] == 0 and fold(row["title"]) == pattern.folded


def _names(
    connection: sqlite3.Connection, identity: Identity, folded: Sequence[str]
) -> list[_Name]:
    """How the entities with some names spell them; what is no entity's may be a note's title."""
    where = visible(identity)
    rows = connection.execute(
        "SELECT DISTINCT n.folded, n.spelling, e.entity_type = ? AS of_person FROM entity_names n"
        " JOIN entities e ON e.seq = n.entity_seq"
        f" WHERE n.user_id = ? AND n.folded IN (SELECT value FROM json_each(?)) AND {where.sql}",
        (EntityType.PERSON, identity.user_id, json.dumps(list(folded)), *where.values),
    ).fetchall()
    owned = {row["folded"] for row in rows}
    return [
        *(_Name(row["spelling"], of_person=bool(row["of_person"])) for row in rows),
        *(_Name(name, is_title=True) for name in folded if name not in owned),
    ]
