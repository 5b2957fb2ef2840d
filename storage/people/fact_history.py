"""Stores profiles, and former facts: earlier values of what is known of the user or an entity."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from typing import Any

from storage.database import View, identity_of, insert_row
from storage.people.models import FormerFact, Profile, merged_values
from storage.tokenize import fold

MOST_FORMER = 20  # maximum former values stored per fact; a counter would otherwise grow forever

_SUBJECT = "user_id = ? AND device_id = ? AND agent_id = ? AND entity_seq IS ?"


def respelled(stored: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the facts under the names already stored: "Home city" becomes "home_city"."""
    known = {fold(name): name for name in stored}
    return {
        name if name in stored else known.get(fold(name), name): value
        for name, value in given.items()
    }


def keep_former(
    view: View, entity_seq: int | None, stored: Mapping[str, Any], given: Mapping[str, Any]
) -> None:
    """Stores replaced values; a removed fact loses its former values too."""
    for name, value in given.items():
        if value is None:
            view.connection.execute(
                f"DELETE FROM former_facts WHERE {_SUBJECT} AND name = ?",
                (*_subject(view, entity_seq), name),
            )
        elif name in stored and stored[name] != value:
            _insert(view, entity_seq, FormerFact(name, stored[name], time.time()))


def former_facts(view: View, entity_seq: int | None) -> list[FormerFact]:
    """Returns the former facts of the user or an entity, latest first."""
    rows = view.rows(
        f"SELECT name, value, until FROM former_facts WHERE {_SUBJECT}"
        " ORDER BY until DESC, seq DESC",
        _subject(view, entity_seq),
    )
    return [FormerFact(row["name"], json.loads(row["value"]), row["until"]) for row in rows]


def restore_former(view: View, entity_seq: int | None, facts: Sequence[FormerFact]) -> bool:
    """Adds the former facts of an export, and returns whether any was new."""
    known = former_facts(view, entity_seq)
    fresh = [fact for fact in facts if fact not in known]
    for fact in fresh:
        _insert(view, entity_seq, fact)
    return bool(fresh)


def _insert(view: View, entity_seq: int | None, fact: FormerFact) -> None:
    value = json.dumps(fact.value, ensure_ascii=False)
    row = {"entity_seq": entity_seq, "name": fact.name, "value": value, "until": fact.until}
    insert_row(view.connection, "former_facts", view.owner | row)
    subject = (*_subject(view, entity_seq), fact.name)
    view.connection.execute(
        f"DELETE FROM former_facts WHERE {_SUBJECT} AND name = ? AND seq NOT IN"
        f" (SELECT seq FROM former_facts WHERE {_SUBJECT} AND name = ?"
        " ORDER BY until DESC, seq DESC LIMIT ?)",
        (*subject, *subject, MOST_FORMER),
    )


def _subject(view: View, entity_seq: int | None) -> tuple[object, ...]:
    return *view.own("f").values, entity_seq


def find_profile(view: View) -> Profile | None:
    """Returns the profile of exactly this identity, else the last saved one that it sees."""
    owner, own = view.seen("p"), view.own("p")
    row = view.row(
        f"SELECT p.* FROM profiles p WHERE {owner.sql}"
        f" ORDER BY ({own.sql}) DESC, p.update_time DESC LIMIT 1",
        (*owner.values, *own.values),
    )
    return None if row is None else _profile(row)


def own_profile(view: View) -> Profile | None:
    """Returns the profile of exactly this identity."""
    own = view.own("p")
    row = view.row(f"SELECT p.* FROM profiles p WHERE {own.sql}", own.values)
    return None if row is None else _profile(row)


def save_profile(
    view: View, *, summary: str | None, facts: Mapping[str, Any], metadata: Mapping[str, Any]
) -> tuple[Profile, bool]:
    """Merges data into the own profile, keeps former facts; returns it, and whether it is new."""
    now = time.time()
    known = own_profile(view)
    earlier = known or Profile(view.identity, "", {}, {}, now, now)
    facts = respelled(earlier.facts, facts)
    profile = Profile(
        view.identity,
        earlier.summary if summary is None else summary,
        merged_values("facts", earlier.facts, facts),
        merged_values("metadata", earlier.metadata, metadata),
        earlier.create_time,
        now,
    )
    row = {
        "summary": profile.summary,
        "facts": json.dumps(profile.facts, ensure_ascii=False),
        "metadata": json.dumps(profile.metadata, ensure_ascii=False),
        "create_time": profile.create_time,
        "update_time": now,
    }
    insert_row(view.connection, "profiles", view.owner | row, replace=True)
    keep_former(view, None, earlier.facts, facts)
    return profile, known is None


def _profile(row: sqlite3.Row) -> Profile:
    return Profile(
        identity_of(row),
        row["summary"],
        json.loads(row["facts"]),
        json.loads(row["metadata"]),
        row["create_time"],
        row["update_time"],
    )
