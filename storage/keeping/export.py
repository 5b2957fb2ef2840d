"""Exports stored data: one record after the other, in two formats.

A record is a JSON object. `record` names its kind: `toolcrib` (the first, with the `format`),
`profile`, `entity`, `relationship`, `context`, `session`, `plan` or `entry` (of memory layer 1), in
this order. Records of a kind are ordered by identity, then entities by name and all others by age.
Every record has `user_id`, `device_id` and `agent_id`; times are Unix seconds, ids those that the
tools show. A context has its whole `text`, the `passages` of that text that are indexed, and if it
is a conversation, its `turns`. A memory lists the entries it was `made_from`. Everything is read
from one snapshot.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from storage.database import Database, Where, identity_clause
from storage.errors import BackupError
from storage.keeping.atomic import atomic_file, atomic_folder, write_errors
from storage.models import Chunk, Identity, places_in_whole, whole_text

FORMAT = 1  # the version of the record format

OnExported = Callable[[int, int], None]
"""Called with (done, total) records; may raise to cancel, and nothing is left behind."""

_JSON_COLUMNS = {
    *("facts", "metadata", "former", "aliases", "keywords", "entities", "made_from"),
    *("arguments", "context_ids", "is_recall", "steps"),
}


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of record."""

    name: str
    alias: str
    columns: str
    tables: str
    order: str  # the order within one identity

    @property
    def owner(self) -> str:
        """The columns of the identity."""
        return ", ".join(f"{self.alias}.{key}" for key in ("user_id", "device_id", "agent_id"))


def _former(alias: str, of: str) -> str:
    """Returns SQL for the former facts of the user or an entity, under a row's identity."""
    same = " AND ".join(f"f.{key} = {alias}.{key}" for key in ("user_id", "device_id", "agent_id"))
    return (
        "(SELECT json_group_array(json_object('name', name, 'value', json(value), 'until', until))"
        f" FROM (SELECT * FROM former_facts f WHERE {same} AND f.entity_seq {of}"
        " ORDER BY f.until, f.seq)) AS former"
    )


_KINDS = (
    _Kind(
        "profile",
        "p",
        f"p.summary, p.facts, p.metadata, {_former('p', 'IS NULL')}, p.create_time, p.update_time",
        "profiles p",
        "p.create_time",
    ),
    _Kind(
        "entity",
        "e",
        "e.seq AS id, e.name, e.entity_type, e.summary, e.aliases, e.metadata,"
        f" {_former('e', '= e.seq')}, e.importance, e.create_time, e.update_time",
        "entities e",
        "e.folded, e.entity_type, e.seq",
    ),
    _Kind(
        "relationship",
        "r",
        "s.seq AS source_id, s.name AS source, r.relation, t.seq AS target_id, t.name AS target,"
        " r.description, r.metadata, r.create_time, r.update_time, r.until",
        "relationships r JOIN entities s ON s.seq = r.source_seq"
        " JOIN entities t ON t.seq = r.target_seq",
        "r.seq",
    ),
    _Kind(
        "context",
        "x",
        "x.seq, x.id, x.context_type, x.raw_type, x.raw_id, x.title, x.summary, x.keywords,"
        " x.entities, x.metadata, x.confidence, x.importance, x.create_time, x.update_time,"
        " x.event_time, x.media_type, x.file_path, x.sha256, x.merge_count, x.hierarchy_level,"
        " x.time_bucket, x.of_turns,"
        " coalesce((SELECT p.id FROM contexts p WHERE p.seq = x.parent_seq), '') AS parent_id,"
        " coalesce(m.layer, 0) AS memory_layer, coalesce(m.session_id, '') AS session_id,"
        " coalesce(m.uses, 0) AS uses, m.last_used,"
        " (SELECT json_group_array(json_object('entry_id', p.entry_seq,"
        " 'is_copy', json(CASE p.is_copy WHEN 0 THEN 'false' ELSE 'true' END)))"
        " FROM memory_parts p WHERE p.memory_seq = x.seq) AS made_from",
        "(SELECT * FROM contexts WHERE context_type NOT IN ('profile', 'entity')) x"
        " LEFT JOIN memories m ON m.context_seq = x.seq",
        "x.create_time, x.seq",
    ),
    _Kind(
        "session",
        "s",
        "s.id, s.client, s.project, s.start_time, s.last_time, s.told_until",
        "sessions s",
        "s.start_time, s.id",
    ),
    _Kind(
        "plan",
        "p",
        "p.id, p.session_id, p.continued_in, p.goal, p.reasoning, p.status, p.message, p.output,"
        " p.create_time, p.update_time, (SELECT json_group_array(json_object("
        "'id', s.value ->> 0, 'title', s.value ->> 1, 'detail', s.value ->> 2,"
        " 'blocked_by', s.value -> 3, 'status', g.value ->> 0, 'note', g.value ->> 1,"
        " 'session_id', g.value ->> 2)) FROM json_each(p.steps) s"
        " JOIN json_each(p.progress) g ON g.key = s.key) AS steps",
        "plans p",
        "p.seq",
    ),
    _Kind(
        "entry",
        "e",
        "e.seq AS id, e.session_id, e.kind, e.time, e.action, e.target, e.arguments, e.outcome,"
        " e.said, e.milliseconds, e.importance,"
        " CASE e.is_recall WHEN 0 THEN 'false' ELSE 'true' END AS is_recall,"
        " (SELECT json_group_array(told.id) FROM (SELECT x.id FROM entry_contexts l"
        " JOIN contexts x ON x.seq = l.context_seq WHERE l.entry_seq = e.seq"
        " AND x.context_type NOT IN ('profile', 'entity') ORDER BY x.id) told)"
        " AS context_ids",
        "entries e",
        "e.seq",
    ),
)


def export_jsonl(
    database: Database,
    target: Path,
    identity: Identity | None,
    on_exported: OnExported | None = None,
) -> int:
    """Writes the records of an identity, or of all, to a new private file; returns their number."""
    written = -1
    with (
        write_errors(target),
        atomic_file(target, replace=False) as path,
        path.open("w", encoding="utf-8", newline="\n") as file,
    ):
        for record in _records(database, identity, on_exported):
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            written += 1
    return written


def export_markdown(
    database: Database,
    target: Path,
    identity: Identity | None,
    on_exported: OnExported | None = None,
) -> int:
    """Writes each profile, entity and context to a file in a new folder.

    An entity's file includes its relationships. The folder must be empty or missing and is readable
    by its owner only. No identity means all. Returns the number of files.
    """
    written = 0
    relations: dict[int, list[dict[str, Any]]] = {}
    with write_errors(target):
        if target.exists() and any(target.iterdir()):
            raise BackupError(f"{target} is not empty.", suggestions=("Name another folder.",))
    with write_errors(target), atomic_folder(target) as folder:
        entities = []
        for record in _records(database, identity, on_exported):
            match record["record"]:
                case "entity":
                    entities.append(record)  # written once its relationships are read
                case "relationship":
                    shown = ("relation", "target", "description", "metadata", "until")
                    fields = {key: record[key] for key in shown if record[key] is not None}
                    relations.setdefault(record["source_id"], []).append(fields)
                case "profile" | "context":
                    write_note(folder, record)
                    written += 1
        for entity in entities:
            write_note(folder, {**entity, "relationships": relations.get(entity["id"], [])})
            written += 1
    return written


def _records(
    database: Database, identity: Identity | None, on_exported: OnExported | None
) -> Iterator[dict[str, Any]]:
    with database.read() as connection:
        yield {"record": "toolcrib", "format": FORMAT}
        total = sum(_count(connection, kind, identity) for kind in _KINDS)
        done = 0
        for kind in _KINDS:
            for record in _of_kind(connection, kind, identity):
                yield record
                done += 1
                if on_exported is not None:
                    on_exported(done, total)


def _count(connection: sqlite3.Connection, kind: _Kind, identity: Identity | None) -> int:
    where = _visible(kind, identity)
    row = connection.execute(
        f"SELECT count(*) FROM {kind.tables} WHERE {where.sql}", where.values
    ).fetchone()
    return int(row[0])


def _of_kind(
    connection: sqlite3.Connection, kind: _Kind, identity: Identity | None
) -> Iterator[dict[str, Any]]:
    where = _visible(kind, identity)
    rows = connection.execute(
        f"SELECT {kind.owner}, {kind.columns} FROM {kind.tables} WHERE {where.sql}"
        f" ORDER BY {kind.owner}, {kind.order}",
        where.values,
    )
    for row in rows:
        record = {"record": kind.name, **_decode_row(row)}
        if kind.name == "context":
            of_turns = bool(record.pop("of_turns"))
            record |= _texts(connection, record.pop("seq"), of_turns=of_turns)
        yield record


def _visible(kind: _Kind, identity: Identity | None) -> Where:
    return Where("TRUE", ()) if identity is None else identity_clause(identity, kind.alias)


def _decode_row(row: sqlite3.Row) -> dict[str, Any]:
    return {
        key: json.loads(row[key]) if key in _JSON_COLUMNS else row[key]
        for key in row.keys()  # noqa: SIM118  # a Row iterates over its values
    }


def _texts(connection: sqlite3.Connection, context_seq: int, *, of_turns: bool) -> dict[str, Any]:
    """Returns the whole text of a context, its passages, and a conversation's turns."""
    rows = connection.execute(
        "SELECT position, start, heading, content FROM chunks WHERE context_seq = ?"
        " ORDER BY position",
        (context_seq,),
    )
    chunks = [Chunk(*row) for row in rows]
    texts: dict[str, Any] = {
        "text": whole_text(chunks),
        "passages": [
            {"start": start, "end": end, "heading": chunk.heading}
            for (start, end), chunk in zip(places_in_whole(chunks), chunks, strict=True)
        ],
    }
    if of_turns:
        texts["turns"] = [
            {"heading": heading, "content": whole_text(list(run))}
            for heading, run in groupby(chunks, key=lambda chunk: chunk.heading)
        ]
    return texts


MAX_NAME_BYTES = 100  # the bytes of a title in a file name; file systems allow 255 bytes in total
ID_LETTERS = 12  # the letters of an id in a file name; the whole id if that is not unique

_UNSAFE = re.compile(r"[^\w -]+")
_BLANKS = re.compile(r"[\s-]+")
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_TIMES = {"create_time", "update_time", "event_time"}
_BODY = {"record", "text", "turns", "passages", "made_from"}


def write_note(folder: Path, record: Mapping[str, Any]) -> Path:
    """Writes a profile, an entity or a context to its own file."""
    kind, title = _kind_and_title(record)
    into = folder / kind
    into.mkdir(mode=0o700, exist_ok=True)
    text = f"---\n{_front_matter(record)}---\n\n{_body(record, title)}\n"
    name, whole_id = _safe(title), str(record.get("id", ""))
    for ending in (whole_id[:ID_LETTERS], whole_id):
        path = into / ("-".join(filter(None, (name, ending))) + ".md")
        with suppress(FileExistsError), path.open("x", encoding="utf-8", newline="\n") as file:
            path.chmod(0o600)
            file.write(text)
            return path
    raise FileExistsError(str(path))


def _kind_and_title(record: Mapping[str, Any]) -> tuple[str, str]:
    match record["record"]:
        case "profile":
            owner = (record["user_id"], record["device_id"], record["agent_id"])
            return "profiles", " ".join(filter(None, owner))
        case "entity":
            return "entities", record["name"]
        case _:
            return str(record["context_type"]), record["title"]


def _safe(title: str) -> str:
    """Converts a title to a portable file name: letters of any script, digits, hyphens."""
    plain = _UNSAFE.sub("-", unicodedata.normalize("NFC", title))
    short = _BLANKS.sub("-", plain).encode()[:MAX_NAME_BYTES].decode(errors="ignore")
    return short.strip("-_") or "untitled"


def _front_matter(record: Mapping[str, Any]) -> str:
    lines = []
    for key, value in record.items():
        if key in _BODY or value in ("", [], {}, None):
            continue
        shown = _moment(value) if key in _TIMES else value
        text = json.dumps(shown, ensure_ascii=False)
        lines.append(
            f"{'date' if key == 'event_time' else key}: {_UNPRINTABLE.sub(_escape, text)}\n"
        )
    return "".join(lines)


def _moment(seconds: float) -> str | float:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return seconds  # before the year 1 or after 9999


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _body(record: Mapping[str, Any], title: str) -> str:
    if "turns" in record:
        return "\n\n".join(
            part
            for turn in record["turns"]
            for part in (turn["heading"] and f"## {turn['heading']}", turn["content"])
            if part
        )
    if record["record"] == "context":
        return str(record["text"])
    return f"# {title}\n\n{record['summary']}".rstrip()
