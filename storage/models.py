"""What is kept on the shelves, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = [
    "Chunk",
    "ContextType",
    "Document",
    "Identity",
    "IndexStatus",
    "NewDocument",
    "SearchFilter",
    "SearchHit",
    "SearchResult",
    "TimeRange",
    "TimeType",
]


class ContextType(StrEnum):
    """The kinds of context."""

    DOCUMENT = "document"


class TimeType(StrEnum):
    """Which of a context's times a range is about."""

    EVENT = "event_time_ts"
    CREATE = "create_time_ts"
    UPDATE = "update_time_ts"


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose context it is.

    Attributes:
        user_id: The person. Every read and every write is bound to exactly one.
        device_id: The device; empty means any of the user's when reading.
        agent_id: The agent; empty means any of the user's when reading.
    """

    user_id: str = "local"
    device_id: str = ""
    agent_id: str = ""


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A range of one of the three times; both ends are included.

    Attributes:
        start: Unix seconds, UTC; None leaves this end open (0 is a real bound).
        end: Unix seconds, UTC; None leaves this end open.
        time_type: The time that is compared.
    """

    start: float | None = None
    end: float | None = None
    time_type: TimeType = TimeType.EVENT


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """What narrows a search, beside the identity.

    Attributes:
        time_range: Only contexts in this range.
        entities: Only contexts that name at least one of these.
        raw_type: Only contexts of this kind of source.
    """

    time_range: TimeRange | None = None
    entities: tuple[str, ...] = ()
    raw_type: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """One stored piece of a document.

    Attributes:
        id: Stable identifier.
        position: Place in the document, from 0.
        start: Where the content begins in the document's text; it may overlap the chunk before.
        heading: The headings it stands under below the title, outermost first, joined by " > ".
        content: The text itself.
    """

    id: str
    position: int
    start: int
    heading: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDocument:
    """A source to be stored, already turned into text.

    Attributes:
        raw_type: Kind of source, for example "file" or "text".
        raw_id: The source's own name, unique within raw_type and identity.
        title: Title.
        text: The whole text.
        markdown: Whether the text is Markdown, and so has headings.
        media_type: MIME type it was read as.
        file_path: Path beneath the root, empty for text given directly.
        sha256: Of the source's bytes.
        event_time: Unix seconds of its own date; None means now.
        entities: Names it is about.
        metadata: Free data of the caller's.
    """

    raw_type: str
    raw_id: str
    title: str
    text: str
    markdown: bool
    media_type: str
    sha256: str
    file_path: str = ""
    event_time: float | None = None
    entities: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """A source that was added, with what is known of it.

    Attributes:
        raw_type: Kind of source, for example "file" or "text".
        raw_id: The source's own name, unique within raw_type and identity.
        title: Title, from the document or its name.
        media_type: MIME type it was read as.
        file_path: Path beneath the root, empty for text given directly.
        sha256: Of the source's bytes.
        create_time: Unix seconds when it was first added.
        update_time: Unix seconds when this version was added.
        event_time: Unix seconds when it was made, by its own date (a file's modification time).
        entities: Names it is about.
        metadata: Free data of the caller's.
        chunk_count: Number of stored chunks.
    """

    raw_type: str
    raw_id: str
    title: str
    media_type: str
    file_path: str
    sha256: str
    create_time: float
    update_time: float
    event_time: float
    entities: tuple[str, ...]
    metadata: Mapping[str, Any]
    chunk_count: int


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One found chunk and why it was found.

    Attributes:
        chunk: The chunk.
        document: The document it belongs to.
        context_type: Its kind.
        score: Fused score, 0 to 1.
        dense: Cosine similarity to the query, -1 to 1; None while it is not embedded.
        lexical: BM25 score, 0 and up.
        matched_terms: The query's words that stand in it, as the query wrote them.
    """

    chunk: Chunk
    document: Document
    context_type: ContextType
    score: float
    dense: float | None
    lexical: float
    matched_terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """How much of what is stored can be found by meaning.

    Attributes:
        total: Stored chunks.
        embedded: Chunks with a vector.
        problem: Why embedding stands still, or empty.
    """

    total: int
    embedded: int
    problem: str = ""

    @property
    def complete(self) -> bool:
        """Whether every chunk has its vector."""
        return self.embedded >= self.total


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits, best first, and how complete the search was.

    Attributes:
        hits: Best first.
        mode: "hybrid", "lexical" (no vectors to ask yet) or "listing" (no query).
        status: Coverage of the index for this identity at the moment of the search.
    """

    hits: tuple[SearchHit, ...]
    mode: str
    status: IndexStatus = field(default_factory=lambda: IndexStatus(0, 0))
