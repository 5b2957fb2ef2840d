"""The names that stored contexts declare as mentioned."""

from __future__ import annotations

import sqlite3

from storage.database import identity_clause
from storage.models import Identity


def is_mentioned(connection: sqlite3.Connection, identity: Identity, folded: str) -> bool:
    """Returns whether a visible context other than a card mentions a folded name."""
    owner = identity_clause(identity, "x")
    row = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM mentions m JOIN contexts x ON x.seq = m.context_seq"
        f" WHERE m.user_id = ? AND m.folded = ? AND x.context_type <> 'entity' AND {owner.sql})",
        (identity.user_id, folded, *owner.values),
    ).fetchone()
    return bool(row[0])


def mentioned_names(connection: sqlite3.Connection, identity: Identity) -> list[str]:
    """Returns the distinct folded names that the identity's contexts mention.

    It skips through the index, so its time depends on the number of names, not of mentions.
    """
    rows = connection.execute(
        "WITH RECURSIVE names (folded) AS ("
        " SELECT min(folded) FROM mentions WHERE user_id = ?"
        " UNION ALL"
        " SELECT (SELECT min(m.folded) FROM mentions m"
        " WHERE m.user_id = ? AND m.folded > names.folded)"
        " FROM names WHERE names.folded IS NOT NULL)"
        " SELECT folded FROM names WHERE folded IS NOT NULL",
        (identity.user_id, identity.user_id),
    )
    names = [str(row[0]) for row in rows]
    if not identity_clause(identity, "x").narrows:
        return names
    return [name for name in names if is_mentioned(connection, identity, name)]
