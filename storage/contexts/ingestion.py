"""Ingestion: writes the rows of a context, in the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from storage.errors import InvalidSourceError
from storage.events.buckets import SECOND, Bucket
from storage.index import lexical
from storage.index.embed_queue import await_vectors
from storage.models import Context, ContextType, Identity, NewContext, Turn
from storage.people.names import fold
from storage.reading.chunk import TextChunk, chunk
from storage.tokenize import tokenize

OnProgress = Callable[[int, int], None]
"""Called with (done, total) chunks; may raise to abort before anything is written."""


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A chunk ready to be stored."""

    heading: str
    content: str
    start: int
    title_terms: tuple[str, ...]
    body_terms: tuple[str, ...]


def normalized(new: NewContext) -> NewContext:
    """Returns the context with stripped, unique names and keywords, and its text's SHA-256."""
    text = new.text or "\n\n".join(turn.content for turn in new.turns)
    return replace(
        new,
        keywords=_strip_names(new.keywords),
        entities=_strip_names(new.entities),
        sha256=new.sha256 or sha256(text.encode()).hexdigest(),
    )


def is_same(earlier: Context, new: NewContext) -> bool:
    """Returns whether a document adds nothing to its earlier version."""
    return (
        earlier.sha256 == new.sha256
        and earlier.title == new.title
        and earlier.summary == new.summary
        and earlier.media_type == new.media_type
        and earlier.file_path == new.file_path
        and set(earlier.keywords) == set(new.keywords)
        and set(earlier.entities) == set(new.entities)
        and earlier.confidence == new.confidence
        and earlier.importance == new.importance
        and dict(earlier.metadata) == dict(new.metadata)
        and new.event_time in (None, earlier.event_time)
    )


def prepare(new: NewContext, on_progress: OnProgress | None = None) -> list[PreparedChunk]:
    """Splits a context into its chunks, in order."""
    pieces = _turns(new.turns) if new.turns else chunk(new.text, markdown=new.markdown)
    if not pieces:
        raise InvalidSourceError(
            f"{new.title!r} has no text.", suggestions=("Provide a text that contains words.",)
        )
    return list(_prepare_chunks(new, pieces, on_progress))


def chunk_terms(
    title: str, heading: str, content: str, about: Sequence[str] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the search terms of a chunk.

    Those of title and heading, then those of the text. `about` are the context's summary and
    keywords, for its first chunk only.
    """
    return tuple(tokenize(f"{title}\n{heading}")), tuple(tokenize("\n".join([content, *about])))


def insert_context(
    connection: sqlite3.Connection,
    identity: Identity,
    new: NewContext,
    *,
    create_time: float,
    update_time: float,
) -> int:
    """Adds the row of a context and returns its seq."""
    event_time = update_time if new.event_time is None else new.event_time
    is_event = new.context_type is ContextType.EVENT
    row: dict[str, object] = {
        "id": uuid.uuid4().hex,
        "context_type": new.context_type,
        "user_id": identity.user_id,
        "device_id": identity.device_id,
        "agent_id": identity.agent_id,
        "raw_type": new.raw_type,
        "raw_id": new.raw_id,
        "title": new.title,
        "summary": new.summary,
        "keywords": as_json(new.keywords),
        "entities": as_json(new.entities),
        "metadata": as_json(dict(new.metadata)),
        "confidence": new.confidence,
        "importance": new.importance,
        "create_time": create_time,
        "update_time": update_time,
        "event_time": event_time,
        "media_type": new.media_type,
        "file_path": new.file_path,
        "sha256": new.sha256,
        "merge_count": 0,
        "hierarchy_level": 0,
        "of_turns": bool(new.turns),
        "time_bucket": Bucket.of(SECOND, event_time).label if is_event else "",
    }
    cursor = connection.execute(
        f"INSERT INTO contexts ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
        tuple(row.values()),
    )
    seq = int(cursor.lastrowid or 0)
    if new.memory_layer:
        connection.execute(
            "INSERT INTO memories (context_seq, user_id, layer, session_id) VALUES (?, ?, ?, ?)",
            (seq, identity.user_id, new.memory_layer, new.session_id),
        )
    return seq


def as_json(value: object) -> str:
    """Serializes a value as the record stores it."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def insert_chunks(
    connection: sqlite3.Connection,
    context_seq: int,
    user_id: str,
    chunks: Sequence[PreparedChunk],
    *,
    one_of_many: bool = False,
) -> list[int]:
    """Adds a context's chunks, searchable by keyword at once, and queues them for embedding."""
    seqs = [
        int(
            connection.execute(
                "INSERT INTO chunks (context_seq, user_id, position, start, heading, content)"
                " VALUES (?, ?, ?, ?, ?, ?) RETURNING seq",
                (context_seq, user_id, position, piece.start, piece.heading, piece.content),
            ).fetchone()[0]
        )
        for position, piece in enumerate(chunks)
    ]
    lexical.add_terms(
        connection,
        user_id,
        (
            (seq, piece.title_terms, piece.body_terms)
            for seq, piece in zip(seqs, chunks, strict=True)
        ),
    )
    await_vectors(connection, user_id, seqs, one_of_many=one_of_many)
    return seqs


def insert_mentions(
    connection: sqlite3.Connection, context_seq: int, user_id: str, names: Iterable[str]
) -> None:
    """Adds the names under which a context is found."""
    connection.executemany(
        "INSERT OR IGNORE INTO mentions (user_id, folded, context_seq, name) VALUES (?, ?, ?, ?)",
        ((user_id, fold(name), context_seq, name) for name in names),
    )


def _strip_names(given: Iterable[str]) -> tuple[str, ...]:
    """Returns the stripped names without empty ones and duplicates."""
    return tuple(dict.fromkeys(name.strip() for name in given if name.strip()))


def _turns(turns: Iterable[Turn]) -> list[TextChunk]:
    """Returns each turn as one piece, or as several if it is long."""
    pieces: list[TextChunk] = []
    start = 0
    for turn in turns:
        pieces.extend(
            TextChunk(heading=turn.heading, content=piece.content, start=start + piece.start)
            for piece in chunk(turn.content, markdown=False)
        )
        start += len(turn.content) + 2  # the empty line between two turns
    return pieces


def _prepare_chunks(
    new: NewContext, pieces: Sequence[TextChunk], on_progress: OnProgress | None
) -> Iterator[PreparedChunk]:
    for done, piece in enumerate(pieces):
        if on_progress is not None:
            on_progress(done, len(pieces))
        heading = piece.heading.removeprefix(new.title).removeprefix(" > ")
        about = () if done else (new.summary, *new.keywords)
        title_terms, body_terms = chunk_terms(new.title, heading, piece.content, about)
        yield PreparedChunk(
            heading=heading,
            content=piece.content,
            start=piece.start,
            title_terms=title_terms,
            body_terms=body_terms,
        )
