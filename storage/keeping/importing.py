"""Imports an export.

Each record is matched to the stored row with its id or its natural key, or gets a new row. A stored
row is replaced only by a later change, so a second import changes nothing. The file is validated to
its end before anything is stored. It is then stored in transactions of some hundred records: if one
fails, the earlier ones are kept, and repeating the call continues.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from storage.agent.plans import planned_of, progress_of
from storage.agent.steps import Step
from storage.contexts.ingestion import as_json
from storage.database import Database, exactly
from storage.keeping.import_contexts import ContextImporter
from storage.keeping.import_people import PeopleImporter
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
from storage.keeping.rows import Outcome, insert_row, update_row
from storage.models import Identity

Moment = tuple[float, str, str]
"""The time, kind and action of an entry, which identify it in its session."""


class EntryImporter:
    """Imports the sessions and entries of one export.

    Without an identity, each record keeps its owner. `contexts` has the seqs of the contexts
    imported before, by their ids in the export.
    """

    def __init__(self, identity: Identity | None, contexts: Mapping[str, int]) -> None:
        self._identity = identity
        self._contexts = contexts
        self._stored: dict[tuple[Identity, str], dict[Moment, list[int]]] = {}
        self._last = 0
        self.seqs: dict[int, int] = {}

    def add_session(self, connection: sqlite3.Connection, record: SessionRecord) -> Outcome:
        """Stores a session; of one that continued, the later end."""
        identity = self._identity or record.identity
        key = {"id": record.id, **asdict(identity)}
        values = record.model_dump(include={"client", "start_time", "last_time", "told_until"})
        owner = exactly(identity, "s")
        row = connection.execute(
            f"SELECT s.start_time, s.last_time FROM sessions s WHERE {owner.sql} AND s.id = ?",
            (*owner.values, record.id),
        ).fetchone()
        if row is None:
            insert_row(connection, "sessions", key | values)
            return "added"
        if row["last_time"] >= record.last_time:
            return "unchanged"
        values["start_time"] = min(row["start_time"], record.start_time)
        update_row(connection, "sessions", values, key)
        return "replaced"

    def add_entry(self, connection: sqlite3.Connection, record: EntryRecord) -> Outcome:
        """Stores an entry, under its id if that is free; a stored entry stays unchanged."""
        identity = self._identity or record.identity
        outcome: Outcome = "unchanged"
        seq = self._claim(connection, identity, record)
        if seq is None:
            outcome = "added"
            row = {"seq": self._free_seq(connection, record.id), **_row(identity, record)}
            seq = self._last = insert_row(connection, "entries", row)
        self.seqs[record.id] = seq
        connection.executemany(
            "INSERT OR IGNORE INTO entry_contexts (entry_seq, context_seq) VALUES (?, ?)",
            ((seq, self._contexts[each]) for each in record.context_ids if each in self._contexts),
        )
        return outcome

    def _claim(
        self, connection: sqlite3.Connection, identity: Identity, record: EntryRecord
    ) -> int | None:
        """Returns the stored entry that matches a record, so that no other record matches it."""
        session = (identity, record.session_id)
        if session not in self._stored:
            self._stored[session] = _moments(connection, *session)
        same = self._stored[session].get((record.time, record.kind, record.action))
        if not same:
            return None
        return same.pop(same.index(record.id) if record.id in same else 0)

    def _free_seq(self, connection: sqlite3.Connection, seq: int) -> int | None:
        """Returns a seq if it is free and above the earlier ones: seqs follow the order of time."""
        taken = connection.execute("SELECT 1 FROM entries WHERE seq = ?", (seq,)).fetchone()
        return None if taken or seq <= self._last else seq


def _moments(
    connection: sqlite3.Connection, identity: Identity, session_id: str
) -> dict[Moment, list[int]]:
    owner = exactly(identity, "e")
    rows = connection.execute(
        f"SELECT e.time, e.kind, e.action, e.seq FROM entries e WHERE {owner.sql}"
        " AND e.session_id = ? ORDER BY e.seq",
        (*owner.values, session_id),
    )
    moments: dict[Moment, list[int]] = {}
    for time, kind, action, seq in rows:
        moments.setdefault((time, kind, action), []).append(seq)
    return moments


def _row(identity: Identity, record: EntryRecord) -> dict[str, object]:
    values = record.model_dump(exclude={"record", "id", "context_ids"})
    return {**values, **asdict(identity), "arguments": as_json(record.arguments)}


def add_plan(
    identity: Identity | None, connection: sqlite3.Connection, record: PlanRecord
) -> Outcome:
    """Stores a plan; of a stored one, the version changed last."""
    owner = identity or record.identity
    own = exactly(owner, "p")
    row = connection.execute(
        f"SELECT p.seq, p.update_time FROM plans p WHERE {own.sql} AND p.id = ?",
        (*own.values, record.id),
    ).fetchone()
    if row is not None and row["update_time"] >= record.update_time:
        return "unchanged"
    steps = [Step(**step.model_dump()) for step in record.steps]
    values = record.model_dump(exclude={"record"}) | asdict(owner)
    values |= {"steps": planned_of(steps), "progress": progress_of(steps)}
    if row is not None:
        values["seq"] = row["seq"]
        connection.execute("DELETE FROM plans WHERE seq = ?", (row["seq"],))
    insert_row(connection, "plans", values)
    return "added" if row is None else "replaced"


BATCH = 200
"""Records per transaction: less than a second, during which other writers wait."""

OnStored = Callable[[int, int], None]
"""Called with (done, total) records; may raise to cancel, and what is stored is kept."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The outcome of an import."""

    outcomes: Counter[Outcome]  # the number of records by outcome
    identities: frozenset[Identity]


def import_jsonl(
    database: Database,
    source: Path,
    identity: Identity | None,
    on_stored: OnStored | None = None,
) -> ImportResult:
    """Imports an export.

    Without an identity, each record keeps its owner. Raises UnreadableDocumentError if the file is
    damaged, incomplete or of a newer format. It says where, and nothing was stored.
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
    """Dispatches each record to the importer of its kind."""

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
