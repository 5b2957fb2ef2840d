"""Imports an export.

Each record is matched to the stored row with its id or its natural key, or gets a new row. A stored
row is replaced only by a later change, so a second import changes nothing. The file is validated to
its end before anything is stored. It is then stored in transactions of some hundred records: if one
fails, the earlier ones are kept, and repeating the call continues.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from storage.agent.plans import planned_of, progress_of
from storage.agent.steps import Step
from storage.contexts.ingestion import as_json
from storage.database import Database, View, insert_row, update_row
from storage.keeping.import_contexts import ContextImporter
from storage.keeping.records import (
    ContextRecord,
    EntityRecord,
    EntryRecord,
    Outcome,
    PlanRecord,
    ProfileRecord,
    Record,
    RelationshipRecord,
    SessionRecord,
    check_export,
    read_records,
)
from storage.models import Identity
from storage.people.entities import MAX_ALIASES, entity_of, index_entity
from storage.people.fact_history import restore_former
from storage.people.models import MAX_VALUES, FormerFact
from storage.tokenize import fold

BATCH = 200  # records per transaction: less than a second, during which other writers wait

OnStored = Callable[[int, int], None]
"""Called with (done, total) records; may raise to cancel, and what is stored is kept."""

Values = dict[str, Any]

Moment = tuple[float, str, str]
"""The time, kind and action of an entry, which identify it in its session."""

_JSON = {"facts", "metadata", "aliases"}


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The outcome of an import."""

    outcomes: Counter[Outcome]  # the number of records by outcome
    identities: frozenset[Identity]


def import_jsonl(
    database: Database, source: Path, identity: Identity | None, on_stored: OnStored | None = None
) -> ImportResult:
    """Imports an export.

    Without an identity, each record keeps its owner. Raises UnreadableDocumentError if the file is
    damaged, incomplete or of a newer format. It says where, and nothing was stored.
    """
    summary = check_export(source)
    contexts = ContextImporter(summary.context_ids)
    entries = EntryImporter(contexts.seqs)
    people = PeopleImporter()
    adders: Mapping[type[Record], Callable[[View, Any], Outcome]] = {
        ProfileRecord: people.add_profile,
        EntityRecord: people.add_entity,
        RelationshipRecord: people.add_relationship,
        ContextRecord: contexts.add,
        SessionRecord: add_session,
        PlanRecord: add_plan,
        EntryRecord: entries.add,
    }
    outcomes: Counter[Outcome] = Counter()
    records = (record for _, record in read_records(source))
    while batch := list(islice(records, BATCH)):
        with database.write() as connection:
            added = [
                adders[type(record)](View(connection, identity or record.identity), record)
                for record in batch
            ]
        outcomes.update(added)
        if on_stored is not None:
            on_stored(outcomes.total(), summary.records)
    are_left = True
    while are_left:
        with database.write() as connection:
            are_left = contexts.tie(connection, entries.seqs, BATCH)
    owner = summary.identities if identity is None else frozenset({identity})
    return ImportResult(outcomes, owner)


class PeopleImporter:
    """Imports the people data of one export; of two values, the later one wins."""

    def __init__(self) -> None:
        self._seqs: dict[int, int] = {}  # of the entities, by their ids in the export

    def add_profile(self, view: View, record: ProfileRecord) -> Outcome:
        """Stores a profile."""
        values = record.model_dump(
            include={"summary", "facts", "metadata", "create_time", "update_time"}
        )
        outcome = _merge(view, "profiles", view.owner, values)
        return _with_former(view, record, None, outcome)

    def add_entity(self, view: View, record: EntityRecord) -> Outcome:
        """Stores an entity, under its id if that is free."""
        name = {"folded": fold(record.name), "entity_type": record.entity_type}
        values = record.model_dump(
            include={"summary", "metadata", "importance", "create_time", "update_time"}
        )
        values["aliases"] = list(record.aliases)
        first = {"seq": _free_seq(view, "entities", record.id), "name": record.name}
        outcome = _merge(view, "entities", view.owner | name, values, first)
        row = _find(view, "entities", view.owner | name)
        self._seqs[record.id] = row["seq"]
        if outcome != "unchanged":
            index_entity(view.connection, entity_of(row))
        return _with_former(view, record, row["seq"], outcome)

    def add_relationship(self, view: View, record: RelationshipRecord) -> Outcome:
        """Stores a relationship between two entities that were imported before it."""
        key = view.owner | {
            "source_seq": self._seqs[record.source_id],
            "target_seq": self._seqs[record.target_id],
            "folded": fold(record.relation),
        }
        values = record.model_dump(
            include={"description", "metadata", "create_time", "update_time", "until"}
        )
        return _merge(view, "relationships", key, values, {"relation": record.relation})


class EntryImporter:
    """Imports the entries of one export, with links to the contexts imported before."""

    def __init__(self, contexts: Mapping[str, int]) -> None:
        self._contexts = contexts
        self._stored: dict[tuple[Identity, str], dict[Moment, list[int]]] = {}
        self._last = 0
        self.seqs: dict[int, int] = {}

    def add(self, view: View, record: EntryRecord) -> Outcome:
        """Stores an entry, under its id if that is free; a stored entry stays unchanged."""
        outcome: Outcome = "unchanged"
        seq = self._claim(view, record)
        if seq is None:
            outcome = "added"
            # Seqs follow the order of time.
            free = None if record.id <= self._last else _free_seq(view, "entries", record.id)
            row = record.model_dump(exclude={"record", "id", "context_ids"}) | view.owner
            row |= {"seq": free, "arguments": as_json(record.arguments)}
            seq = self._last = insert_row(view.connection, "entries", row)
        self.seqs[record.id] = seq
        view.connection.executemany(
            "INSERT OR IGNORE INTO entry_contexts (entry_seq, context_seq) VALUES (?, ?)",
            ((seq, self._contexts[each]) for each in record.context_ids if each in self._contexts),
        )
        return outcome

    def _claim(self, view: View, record: EntryRecord) -> int | None:
        """Returns the stored entry that matches a record, so that no other record matches it."""
        session = (view.identity, record.session_id)
        if session not in self._stored:
            self._stored[session] = _moments(view, record.session_id)
        same = self._stored[session].get((record.time, record.kind, record.action))
        if not same:
            return None
        return same.pop(same.index(record.id) if record.id in same else 0)


def add_session(view: View, record: SessionRecord) -> Outcome:
    """Stores a session; of one that continued, the later end."""
    key = view.owner | {"id": record.id}
    values = record.model_dump(
        include={"client", "project", "start_time", "last_time", "told_until"}
    )
    row = _find(view, "sessions", key)
    if row is None:
        insert_row(view.connection, "sessions", key | values)
        return "added"
    if row["last_time"] >= record.last_time:
        return "unchanged"
    values["start_time"] = min(row["start_time"], record.start_time)
    update_row(view.connection, "sessions", values, key)
    return "replaced"


def add_plan(view: View, record: PlanRecord) -> Outcome:
    """Stores a plan; of a stored one, the version changed last."""
    row = _find(view, "plans", view.owner | {"id": record.id})
    if row is not None and row["update_time"] >= record.update_time:
        return "unchanged"
    steps = [Step(**step.model_dump()) for step in record.steps]
    values = record.model_dump(exclude={"record"}) | view.owner
    values |= {"steps": planned_of(steps), "progress": progress_of(steps)}
    if row is not None:
        values["seq"] = row["seq"]
        view.connection.execute("DELETE FROM plans WHERE seq = ?", (row["seq"],))
    insert_row(view.connection, "plans", values)
    return "added" if row is None else "replaced"


def _moments(view: View, session_id: str) -> dict[Moment, list[int]]:
    own = view.own("e")
    rows = view.rows(
        f"SELECT e.time, e.kind, e.action, e.seq FROM entries e WHERE {own.sql}"
        " AND e.session_id = ? ORDER BY e.seq",
        (*own.values, session_id),
    )
    moments: dict[Moment, list[int]] = {}
    for time, kind, action, seq in rows:
        moments.setdefault((time, kind, action), []).append(seq)
    return moments


def _with_former(
    view: View, record: ProfileRecord | EntityRecord, seq: int | None, outcome: Outcome
) -> Outcome:
    facts = [FormerFact(each.name, each.value, each.until) for each in record.former]
    is_new = restore_former(view, seq, facts)
    return "replaced" if is_new and outcome == "unchanged" else outcome


def _merge(
    view: View, table: str, key: Values, values: Values, first: Mapping[str, object] = {}
) -> Outcome:
    """Merges values into the row with a key, or into a new one with further columns."""
    row = _find(view, table, key)
    if row is None:
        insert_row(view.connection, table, {**first, **key, **_encode(values)})
        return "added"
    stored = {name: json.loads(row[name]) if name in _JSON else row[name] for name in values}
    joined = _join(stored, values)
    if joined == stored:
        return "unchanged"
    update_row(view.connection, table, _encode(joined), key)
    return "replaced"


def _find(view: View, table: str, key: Values) -> Any:  # noqa: ANN401  # a row, or None
    found = " AND ".join(f"{column} = ?" for column in key)
    return view.row(f"SELECT * FROM {table} WHERE {found}", tuple(key.values()))


def _free_seq(view: View, table: str, seq: int) -> int | None:
    return None if view.rows(f"SELECT 1 FROM {table} WHERE seq = ?", (seq,)) else seq


def _join(stored: Values, values: Values) -> Values:
    """Merges two rows; where both have a value, the later change wins."""
    older, newer = sorted((values, stored), key=lambda each: float(each["update_time"]))
    joined = {name: _both(older[name], newer[name]) for name in newer}
    return {**joined, "create_time": min(stored["create_time"], values["create_time"])}


def _both(older: Any, newer: Any) -> Any:  # noqa: ANN401  # a column's value
    match newer:
        case dict():
            both = {**older, **newer}
            return both if len(json.dumps(both, ensure_ascii=False)) <= MAX_VALUES else newer
        case list():
            spellings: dict[str, str] = {}
            for name in (*newer, *older):
                spellings.setdefault(fold(name), name)
            return list(spellings.values())[:MAX_ALIASES]
        case "":
            return older
        case _:
            return newer


def _encode(values: Values) -> Values:
    return {
        name: json.dumps(value, ensure_ascii=False) if name in _JSON else value
        for name, value in values.items()
    }
