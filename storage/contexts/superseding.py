"""Superseding: knowledge that gives an attribute another value takes the earlier one's place.

What held is kept in the same context, each sentence a passage of its own under a heading that tells
it from what holds.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from storage.contexts.contexts import read_context
from storage.contexts.filters import Selection
from storage.contexts.ingestion import PreparedChunk, chunk_terms
from storage.contexts.statements import Statement, statement_of
from storage.index.lexical import UserIndex
from storage.models import Context, NewContext
from storage.people.former import FORMERLY, MOST_FORMER
from storage.people.names import fold
from storage.tokenize import is_spaceless, tokenize

MOST_COMPARED = 200
"""Passages with the words of subject and attribute that are read, the newest."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """Knowledge of which something holds no longer.

    Attributes:
        seq: The context.
        standing: The lines of it that still hold.
        ended: Those that do not.
    """

    seq: int
    standing: tuple[str, ...]
    ended: tuple[str, ...]

    def former(self, until: float) -> list[str]:
        """What ended as it is kept, with the day on which something else took its place."""
        day = datetime.fromtimestamp(until, UTC).date().isoformat()
        return [f"Until {day}: {line}" for line in self.ended]


def find_superseded(
    connection: sqlite3.Connection, user_id: str, new: NewContext, selection: Selection
) -> Superseded | None:
    """The newest knowledge that a piece of knowledge contradicts, where that is sure.

    Args:
        connection: The record.
        user_id: Whose.
        new: The piece.
        selection: The knowledge that it may contradict.
    """
    said = statement_of(new.text)
    if said is None:
        return None
    # A lone character of Chinese is in texts a pair with its neighbour.
    terms = [term for term in tokenize(said.words) if len(term) > 1 or not is_spaceless(term)]
    holding = selection.keep(UserIndex(connection, user_id).holding(terms))
    rows = connection.execute(
        "SELECT DISTINCT c.context_seq FROM json_each(?) j CROSS JOIN chunks c ON c.seq = j.value"
        " ORDER BY c.seq DESC",
        (json.dumps(holding[-MOST_COMPARED:].tolist()),),
    ).fetchall()
    for (seq,) in rows:
        lines = contents_of(connection, seq)[0].split("\n")
        statements = [statement_of(line) for line in lines]
        ended = [each is not None and said.replaces(each) for each in statements]
        if not any(ended) or None in statements:
            continue
        known = read_context(connection, seq)
        if _is_later(new, known) and _is_named(connection, said, new, known):
            told = list(zip(lines, ended, strict=True))
            return Superseded(
                seq,
                standing=tuple(line for line, is_over in told if not is_over),
                ended=tuple(line for line, is_over in told if is_over),
            )
    return None


def contents_of(connection: sqlite3.Connection, seq: int) -> tuple[str, list[str]]:
    """The text of a piece of knowledge as it holds, and the sentences that held before."""
    rows = connection.execute(
        "SELECT heading, content FROM chunks WHERE context_seq = ? ORDER BY position", (seq,)
    ).fetchall()
    standing = [row["content"] for row in rows if row["heading"] != FORMERLY]
    return "\n".join(standing), [row["content"] for row in rows if row["heading"] == FORMERLY]


def former_chunks(new: NewContext, past: Sequence[str]) -> list[PreparedChunk]:
    """The passages of what held before, the latest first, after the text of a context."""
    chunks: list[PreparedChunk] = []
    start = len(new.text) + 2
    for line in past[:MOST_FORMER]:
        chunks.append(PreparedChunk(FORMERLY, line, start, *chunk_terms(new.title, FORMERLY, line)))
        start += len(line) + 1
    return chunks


def _is_later(new: NewContext, known: Context) -> bool:
    """Whether the new is of a later time, no less sure, and not from elsewhere or of others."""
    sources = {(each.raw_type, each.raw_id) for each in (new, known) if each.raw_id}
    names = [set(map(fold, each.entities)) for each in (new, known)]
    return (
        (new.event_time is None or new.event_time >= known.event_time)
        and new.confidence >= known.confidence
        and len(sources) <= 1
        and (not all(names) or bool(names[0] & names[1]))
    )


def _is_named(
    connection: sqlite3.Connection, said: Statement, new: NewContext, known: Context
) -> bool:
    """Whether both surely speak of one subject: by how it is written, or as its name is known."""
    if said.is_named or said.subject in map(fold, (*new.entities, *known.entities)):
        return True
    found = connection.execute(
        "SELECT 1 FROM entity_names WHERE user_id = ? AND folded = ? LIMIT 1",
        (known.identity.user_id, said.subject),
    )
    return found.fetchone() is not None
