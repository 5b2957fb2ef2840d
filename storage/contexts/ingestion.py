"""Ingestion: writes the rows of a context, in the caller's transaction."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from storage.database import View, insert_row
from storage.errors import InvalidSourceError
from storage.events.buckets import SECOND, Bucket
from storage.index import lexical
from storage.index.embed_queue import await_vectors
from storage.models import Context, ContextType, NewContext, Turn
from storage.reading.chunk import TextChunk, chunk
from storage.tokenize import fold, tokenize

OnProgress = Callable[[int, int], None]
"""Called with (done, total) chunks; may raise to abort before anything is written."""


_TAKEN = (
    *("context_type", "raw_type", "raw_id", "title", "summary", "confidence", "importance"),
    *("media_type", "file_path", "sha256"),
)
"""The columns of a context that take the given values."""


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


def insert_context(view: View, new: NewContext, *, create_time: float, update_time: float) -> int:
    """Adds the row of a context and returns its seq."""
    event_time = update_time if new.event_time is None else new.event_time
    is_event = new.context_type is ContextType.EVENT
    row = view.owner | {name: getattr(new, name) for name in _TAKEN}
    row |= {
        "id": uuid.uuid4().hex,
        "keywords": as_json(new.keywords),
        "entities": as_json(new.entities),
        "metadata": as_json(dict(new.metadata)),
        "create_time": create_time,
        "update_time": update_time,
        "event_time": event_time,
        "merge_count": 0,
        "hierarchy_level": 0,
        "of_turns": bool(new.turns),
        "time_bucket": Bucket.of(SECOND, event_time).label if is_event else "",
    }
    seq = insert_row(view.connection, "contexts", row)
    if new.memory_layer:
        memory = {"context_seq": seq, "user_id": view.user_id, "layer": new.memory_layer}
        insert_row(view.connection, "memories", {**memory, "session_id": new.session_id})
    return seq


def as_json(value: object) -> str:
    """Serializes a value as the record stores it."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def insert_chunks(
    view: View,
    context_seq: int,
    chunks: Sequence[PreparedChunk],
    *,
    one_of_many: bool = False,
    first_position: int = 0,
) -> list[int]:
    """Adds a context's chunks, searchable by keyword at once, and queues them for embedding."""
    seqs = [
        view.rows(
            "INSERT INTO chunks (context_seq, user_id, position, start, heading, content)"
            " VALUES (?, ?, ?, ?, ?, ?) RETURNING seq",
            (context_seq, view.user_id, position, piece.start, piece.heading, piece.content),
        )[0]["seq"]
        for position, piece in enumerate(chunks, first_position)
    ]
    terms = (
        (seq, piece.title_terms, piece.body_terms) for seq, piece in zip(seqs, chunks, strict=True)
    )
    lexical.add_terms(view.connection, view.user_id, terms)
    await_vectors(view.connection, view.user_id, seqs, one_of_many=one_of_many)
    return seqs


def insert_mentions(view: View, context_seq: int, names: Iterable[str]) -> None:
    """Adds the names under which a context is found."""
    view.connection.executemany(
        "INSERT OR IGNORE INTO mentions (user_id, folded, context_seq, name) VALUES (?, ?, ?, ?)",
        ((view.user_id, fold(name), context_seq, name) for name in names),
    )


def replace_text(
    view: View,
    context_seq: int,
    chunks: Sequence[PreparedChunk],
    names: Iterable[str],
    *,
    one_of_many: bool = False,
) -> list[int]:
    """Replaces a context's chunks and names; returns the seqs of the chunks."""
    for table in ("chunks", "mentions"):
        view.connection.execute(f"DELETE FROM {table} WHERE context_seq = ?", (context_seq,))
    insert_mentions(view, context_seq, names)
    return insert_chunks(view, context_seq, chunks, one_of_many=one_of_many)


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
