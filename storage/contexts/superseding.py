"""Superseding: knowledge that gives an attribute a new value replaces the earlier value.

Former values stay in the same context, each sentence in its own passage under a heading that marks
it as former.
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
from storage.database import View
from storage.index.lexical import UserIndex
from storage.models import FORMERLY, Context, NewContext
from storage.people.fact_history import MOST_FORMER
from storage.tokenize import fold, tokenize

MOST_COMPARED = 50  # maximum passages that are read, those with most of the text's words


@dataclass(frozen=True, slots=True)
class Superseded:
    """Knowledge with lines that no longer hold."""

    seq: int
    standing: tuple[str, ...]
    ended: tuple[str, ...]

    def former(self, until: float) -> list[str]:
        """Returns the ended lines as they are stored, with the day they were replaced."""
        day = datetime.fromtimestamp(until, UTC).date().isoformat()
        return [f"Until {day}: {line}" for line in self.ended]


def find_superseded(view: View, new: NewContext, selection: Selection) -> Superseded | None:
    """Finds the newest knowledge that a new piece certainly contradicts."""
    said = statement_of(new.text)
    if said is None or not said.may_end:
        return None
    index = UserIndex(view.connection, view.user_id)
    found = index.matches(tokenize(new.text), selection, MOST_COMPARED)
    rows = view.rows(
        "SELECT DISTINCT c.context_seq FROM json_each(?) j CROSS JOIN chunks c ON c.seq = j.value"
        " ORDER BY c.seq DESC",
        (json.dumps(list(found)),),
    )
    for (seq,) in rows:
        lines = contents_of(view.connection, seq)[0].split("\n")
        statements = [statement_of(line) for line in lines]
        ended = [each is not None and said.ends(each) for each in statements]
        is_note = len(lines) > 1 and not all(each and each.subject for each in statements)
        if is_note or not any(ended):
            continue
        known = read_context(view.connection, seq)
        if _is_later(new, known) and _has_same_subject(view, said, new, known):
            told = list(zip(lines, ended, strict=True))
            return Superseded(
                seq,
                standing=tuple(line for line, is_over in told if not is_over),
                ended=tuple(line for line, is_over in told if is_over),
            )
    return None


def contents_of(connection: sqlite3.Connection, seq: int) -> tuple[str, list[str]]:
    """Returns the current text of a piece of knowledge, and its former sentences."""
    rows = connection.execute(
        "SELECT heading, content FROM chunks WHERE context_seq = ? ORDER BY position", (seq,)
    ).fetchall()
    standing = [row["content"] for row in rows if row["heading"] != FORMERLY]
    return "\n".join(standing), [row["content"] for row in rows if row["heading"] == FORMERLY]


def former_chunks(new: NewContext, past: Sequence[str]) -> list[PreparedChunk]:
    """Returns the passages of former sentences, latest first, placed after the current text."""
    chunks: list[PreparedChunk] = []
    start = len(new.text) + 2
    for line in past[:MOST_FORMER]:
        chunks.append(PreparedChunk(FORMERLY, line, start, *chunk_terms(new.title, FORMERLY, line)))
        start += len(line) + 1
    return chunks


def _is_later(new: NewContext, known: Context) -> bool:
    """Returns whether the new is no older and no less sure, and its source and names agree."""
    sources = {(each.raw_type, each.raw_id) for each in (new, known) if each.raw_id}
    names = [set(map(fold, each.entities)) for each in (new, known)]
    return (
        (new.event_time is None or new.event_time >= known.event_time)
        and new.confidence >= known.confidence
        and len(sources) <= 1
        and (not all(names) or bool(names[0] & names[1]))
    )


def _has_same_subject(view: View, said: Statement, new: NewContext, known: Context) -> bool:
    """Returns whether the subject surely is the same; texts of two titles may mean two."""
    if new.title and known.title and fold(new.title) != fold(known.title):
        return said.is_named and (said.is_change or said.is_denied)
    if said.is_certain or said.owner in map(fold, (*new.entities, *known.entities)):
        return True
    found = "SELECT 1 FROM entity_names WHERE user_id = ? AND folded = ? LIMIT 1"
    return bool(view.rows(found, (view.user_id, said.owner)))
