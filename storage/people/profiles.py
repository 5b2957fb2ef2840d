"""Stores profiles: one per identity."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping
from typing import Any

from storage.database import exactly, identity_clause
from storage.models import Identity
from storage.people.former import keep_former, respelled
from storage.people.models import Profile, merged_values


def find_profile(connection: sqlite3.Connection, identity: Identity) -> Profile | None:
    """Returns the profile of exactly this identity, else the last saved one that it sees."""
    owner = identity_clause(identity, "p")
    own = exactly(identity, "p")
    row = connection.execute(
        f"SELECT p.* FROM profiles p WHERE {owner.sql}"
        f" ORDER BY ({own.sql}) DESC, p.update_time DESC LIMIT 1",
        (*owner.values, *own.values),
    ).fetchone()
    return None if row is None else _profile(row)


def own_profile(connection: sqlite3.Connection, identity: Identity) -> Profile | None:
    """Returns the profile of exactly this identity."""
    own = exactly(identity, "p")
    row = connection.execute(f"SELECT p.* FROM profiles p WHERE {own.sql}", own.values).fetchone()
    return None if row is None else _profile(row)


def save_profile(
    connection: sqlite3.Connection,
    identity: Identity,
    *,
    summary: str | None,
    facts: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> tuple[Profile, bool]:
    """Merges new data into the profile of exactly this identity; replaced facts become former.

    Returns the stored profile, and whether it is new.
    """
    now = time.time()
    own = exactly(identity, "p")
    known = own_profile(connection, identity)
    earlier = known or Profile(identity, "", {}, {}, now, now)
    facts = respelled(earlier.facts, facts)
    profile = Profile(
        identity,
        earlier.summary if summary is None else summary,
        merged_values("facts", earlier.facts, facts),
        merged_values("metadata", earlier.metadata, metadata),
        earlier.create_time,
        now,
    )
    connection.execute(
        "INSERT OR REPLACE INTO profiles (user_id, device_id, agent_id, summary, facts, metadata,"
        " create_time, update_time) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *own.values,
            profile.summary,
            json.dumps(profile.facts, ensure_ascii=False),
            json.dumps(profile.metadata, ensure_ascii=False),
            profile.create_time,
            profile.update_time,
        ),
    )
    keep_former(connection, identity, None, earlier.facts, facts)
    return profile, known is None


def _profile(row: sqlite3.Row) -> Profile:
    return Profile(
        Identity(row["user_id"], row["device_id"], row["agent_id"]),
        row["summary"],
        json.loads(row["facts"]),
        json.loads(row["metadata"]),
        row["create_time"],
        row["update_time"],
    )
