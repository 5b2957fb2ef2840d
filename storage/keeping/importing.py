"""Import: what an export holds, stored again.

Every record finds its place: that which has it already, by its id or by what makes it the same
thing, or a new one. Where the place is taken, what was changed last stays, so that a second import
changes nothing. The file is read to its end before anything is stored; then it is stored in
transactions of some hundred records. When one fails, what those before it stored is kept, and the
same call goes on from there.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from storage.database import Database
from storage.keeping.import_contexts import ContextImporter
from storage.keeping.import_entries import EntryImporter
from storage.keeping.import_people import PeopleImporter
from storage.keeping.import_plans import add_plan
from storage.keeping.records import (
    ContextRecord,
    EntityRecord,
    EntryRecord,
    PlanRecord,
    ProfileRecord,
    Record,
    RelationshipRecord,
    SessionRecord,
    check_export,
    read_records,
)
from storage.keeping.rows import Outcome
from storage.models import Identity

BATCH = 200
"""Records of one transaction: less than a second, for which other writers wait."""

OnStored = Callable[[int, int], None]
"""Told (done, total) records; may raise to give up, and what is stored is kept."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What came of an import.

    Attributes:
        outcomes: How many records were added, replaced and unchanged.
        identities: Whose the records are now.
    """

    outcomes: Counter[Outcome]
    identities: frozenset[Identity]


def import_jsonl(
    database: Database,
    source: Path,
    identity: Identity | None,
    on_stored: OnStored | None = None,
) -> ImportResult:
    """Stores what an export holds.

    Args:
        database: The record.
        source: A file that `storage.keeping.export.export_jsonl` wrote.
        identity: Whose everything is to be; None leaves each record to whose it is.
        on_stored: Told how far it is.

    Raises:
        UnreadableDocumentError: If the file is damaged, half-written or of a newer form; it says
            where, and nothing was stored.
        StorageUnavailableError: If the record cannot be written.
        OSError: If the file cannot be read.
    """
    summary = check_export(source)
    importer = _Importer(identity, summary.context_ids)
    outcomes: Counter[Outcome] = Counter()
    records = (record for _, record in read_records(source))
    while batch := list(islice(records, BATCH)):
        with database.write() as connection:
            added = [importer.add(connection, record) for record in batch]
        outcomes.update(added)
        if on_stored is not None:
            on_stored(outcomes.total(), summary.records)
    are_left = True
    while are_left:
        with database.write() as connection:
            are_left = importer.contexts.tie(connection, importer.entries.seqs, BATCH)
    owner = summary.identities if identity is None else frozenset({identity})
    return ImportResult(outcomes, owner)


class _Importer:
    """Has each record stored by those who know its kind."""

    def __init__(self, identity: Identity | None, context_ids: frozenset[str]) -> None:
        self.contexts = ContextImporter(identity, context_ids)
        self.entries = EntryImporter(identity, self.contexts.seqs)
        people = PeopleImporter(identity)
        self._adders: Mapping[type[Record], Callable[[sqlite3.Connection, Any], Outcome]] = {
            ProfileRecord: people.add_profile,
            EntityRecord: people.add_entity,
            RelationshipRecord: people.add_relationship,
            ContextRecord: self.contexts.add,
            SessionRecord: self.entries.add_session,
            PlanRecord: partial(add_plan, identity),
            EntryRecord: self.entries.add_entry,
        }

    def add(self, connection: sqlite3.Connection, record: Record) -> Outcome:
        return self._adders[type(record)](connection, record)
