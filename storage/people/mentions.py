"""The names that stored contexts declare that they are about."""

from __future__ import annotations

import sqlite3

from storage.database import identity_clause
from storage.models import Identity


def is_mentioned(connection: sqlite3.Connection, identity: Identity, folded: str) -> bool:
    """Whether a context that the identity may see mentions a folded name; a card is none."""
    owner = identity_clause(identity, "x")
    row = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM mentions m JOIN contexts x ON x.seq = m.context_seq"
        f" WHERE m.user_id = ? AND m.folded = ? AND x.context_type <> 'entity' AND {owner.sql})",
        (identity.user_id, folded, *owner.values),
    ).fetchone()
    return bool(row[0])


def mentioned_names(connection: sqlite3.Connection, identity: Identity) -> list[str]:
    """Every folded name that the identity's contexts mention, each once.

    Goes from name to name by the index: its time is that of the names, however often each stands.
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
