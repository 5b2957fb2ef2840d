"""Former facts: earlier values of what is known of the user or an entity."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Mapping, Sequence
from typing import Any

from storage.database import exactly
from storage.models import ContextType, Identity, SearchHit
from storage.people.models import FormerFact
from storage.people.names import fold

FORMERLY = "Formerly"
"""The heading in cards and knowledge for facts that no longer hold."""

MOST_FORMER = 20
"""Maximum former values stored per fact; a counter would otherwise grow forever."""

# Kept as strings, which `re` compiles and caches on first use.
_SPACED = (
    "before|former|formerly|previous|previously|earlier|past|once|ex|used to|did|was|were|had"
    "|history|historically|until|fr\u00fcher|fr\u00fchere[nrs]?|vorher|vorherige[nrs]?|zuvor|damals"
    "|ehemals|ehemalige[nrs]?|einst|war|waren|hatte|hatten|bisher|bis"
)
_SPACELESS = "以前|之前|过去|過去|曾|原来|原來|从前|從前|前任|先前|旧|舊"
_PAST = rf"(?i)\b(?:{_SPACED})\b|{_SPACELESS}"
_SUBJECT = "user_id = ? AND device_id = ? AND agent_id = ? AND entity_seq IS ?"


def asks_for_past(question: str) -> bool:
    """Returns whether a question may be about the past, in English, German or Chinese."""
    return re.search(_PAST, question) is not None


def is_former(hit: SearchHit) -> bool:
    """Returns whether a passage is a former fact; a document's heading with that name is not."""
    kind = hit.context.context_type
    return (kind.is_card or kind is ContextType.KNOWLEDGE) and hit.chunk.heading == FORMERLY


def respelled(stored: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the facts under the names already stored: "Home city" becomes "home_city"."""
    known = {fold(name): name for name in stored}
    return {
        name if name in stored else known.get(fold(name), name): value
        for name, value in given.items()
    }


def keep_former(
    connection: sqlite3.Connection,
    identity: Identity,
    entity_seq: int | None,
    stored: Mapping[str, Any],
    given: Mapping[str, Any],
) -> None:
    """Stores the values that are replaced; removing a fact removes its former values too.

    `given` are the new facts under the names of the stored ones. No entity means the user.
    """
    subject = _subject(identity, entity_seq)
    for name, value in given.items():
        if value is None:
            connection.execute(
                f"DELETE FROM former_facts WHERE {_SUBJECT} AND name = ?", (*subject, name)
            )
        elif name in stored and stored[name] != value:
            _insert(connection, subject, FormerFact(name, stored[name], time.time()))


def former_facts(
    connection: sqlite3.Connection, identity: Identity, entity_seq: int | None
) -> list[FormerFact]:
    """Returns the former facts of the user or an entity, latest first."""
    rows = connection.execute(
        f"SELECT name, value, until FROM former_facts WHERE {_SUBJECT}"
        " ORDER BY until DESC, seq DESC",
        _subject(identity, entity_seq),
    )
    return [FormerFact(row["name"], json.loads(row["value"]), row["until"]) for row in rows]


def restore_former(
    connection: sqlite3.Connection,
    identity: Identity,
    entity_seq: int | None,
    facts: Sequence[FormerFact],
) -> bool:
    """Adds the former facts of an export, and returns whether any was new."""
    known = former_facts(connection, identity, entity_seq)
    fresh = [fact for fact in facts if fact not in known]
    for fact in fresh:
        _insert(connection, _subject(identity, entity_seq), fact)
    return bool(fresh)


def _insert(connection: sqlite3.Connection, subject: tuple[object, ...], fact: FormerFact) -> None:
    connection.execute(
        "INSERT INTO former_facts (user_id, device_id, agent_id, entity_seq, name, value, until)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*subject, fact.name, json.dumps(fact.value, ensure_ascii=False), fact.until),
    )
    connection.execute(
        f"DELETE FROM former_facts WHERE {_SUBJECT} AND name = ? AND seq NOT IN"
        f" (SELECT seq FROM former_facts WHERE {_SUBJECT} AND name = ?"
        " ORDER BY until DESC, seq DESC LIMIT ?)",
        (*subject, fact.name, *subject, fact.name, MOST_FORMER),
    )


def _subject(identity: Identity, entity_seq: int | None) -> tuple[object, ...]:
    return *exactly(identity, "f").values, entity_seq
