"""Rosters: cached names and groups of one identity's records in a directory.

Each use checks the cache against the record: first the library's version, and if that grew, the
number of records and the last one written.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from dataclasses import dataclass
from functools import cached_property

from storage.database import Database, Where, identity_clause
from storage.directory.groups import Groups
from storage.directory.models import Directory
from storage.directory.shelving import values_of
from storage.index.bounded import BoundedDict
from storage.models import ContextType, Identity
from storage.people.likeness import nearest
from storage.people.nameindex import NameIndex
from storage.people.names import fold

NEAREST = 3
"""Names to suggest if no record has the name asked for."""

MOST_KEPT = 8
"""Maximum rosters in memory; one of 8,000 people takes some 15 MB."""

_State = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Listed:
    """A record in a roster."""

    seq: int
    key: str  # identifies it permanently
    name: str
    aliases: tuple[str, ...]
    groups: dict[str, tuple[str, ...]]
    link: str  # its URL; empty if there is none


class Roster:
    """The records of a directory, with indexes of their names and groups."""

    def __init__(self, directory: Directory, listed: list[Listed]) -> None:
        self.directory = directory
        self.listed = listed
        self.places = {each.key: place for place, each in enumerate(listed)}
        self._groups: dict[str, Groups] = {}

    @cached_property
    def names(self) -> NameIndex:
        """The index of names; an owner is a position in `listed`."""
        return NameIndex(
            (place, name, at > 0)
            for place, each in enumerate(self.listed)
            for at, name in enumerate((each.name, *each.aliases))
        )

    def nearest(self, name: str) -> list[str]:
        """Returns the names nearest to an unknown one, nearest first."""
        spellings = {fold(each.name): each.name for each in self.listed}
        return [spellings[each.folded] for each in nearest(fold(name), spellings)[:NEAREST]]

    def groups(self, field: str) -> Groups:
        """Returns the groups of a field; a member is a position in `listed`."""
        if field not in self._groups:
            further = self.directory.groups[field]
            self._groups[field] = Groups(
                (
                    place,
                    each.groups.get(field, ()),
                    [value for name in further for value in each.groups.get(name, ())],
                )
                for place, each in enumerate(self.listed)
            )
        return self._groups[field]


class Rosters:
    """The cached rosters of all identities."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._kept: BoundedDict[tuple[Identity, str], tuple[int, _State, Roster]] = BoundedDict(
            MOST_KEPT
        )

    def of(self, identity: Identity, directory: Directory) -> Roster:
        """Returns the current roster of the records that an identity sees in a directory."""
        where = _records(identity, directory)
        place = (identity, directory.name)
        with self._database.read() as connection:
            version = _version(connection, identity)
            with self._lock:
                kept = self._kept.get(place)
            if kept is not None and kept[0] == version and kept[2].directory == directory:
                return kept[2]
            state = _state(connection, where)
            if kept is not None and kept[1] == state and kept[2].directory == directory:
                roster = kept[2]
            else:
                roster = Roster(directory, _read_records(connection, where, directory))
        with self._lock:
            self._kept[place] = (version, state, roster)
        return roster


def _records(identity: Identity, directory: Directory) -> Where:
    owner = identity_clause(identity, "x")
    return Where(
        f"{owner.sql} AND x.raw_type = ? AND x.context_type = '{ContextType.DOCUMENT}'",
        (*owner.values, directory.name),
    )


def _version(connection: sqlite3.Connection, identity: Identity) -> int:
    row = connection.execute(
        "SELECT coalesce(sum(version), 0) FROM versions WHERE user_id IN (?, '')",
        (identity.user_id,),
    ).fetchone()
    return int(row[0])


def _state(connection: sqlite3.Connection, where: Where) -> _State:
    row = connection.execute(
        "SELECT count(*), coalesce(max(x.seq), 0), coalesce(sum(x.seq), 0) FROM contexts x"
        f" WHERE {where.sql}",
        where.values,
    ).fetchone()
    return int(row[0]), int(row[1]), int(row[2])


def _read_records(
    connection: sqlite3.Connection, where: Where, directory: Directory
) -> list[Listed]:
    """Reads the records, ordered by name; of several devices' records with one key, the newest."""
    rows = connection.execute(
        f"SELECT x.seq, x.raw_id, x.title, x.metadata FROM contexts x WHERE {where.sql}"
        " ORDER BY x.seq",
        where.values,
    )
    by_key = {}
    for row in rows:
        known = json.loads(row["metadata"])
        groups = {field: values_of(known, field) for field in directory.group_fields}
        by_key[row["raw_id"]] = Listed(
            seq=row["seq"],
            key=row["raw_id"],
            name=row["title"],
            aliases=values_of(known, directory.aliases),
            groups={field: values for field, values in groups.items() if values},
            link=str(known.get(directory.link, "")),
        )
    return sorted(by_key.values(), key=lambda each: (each.name.casefold(), each.key))
