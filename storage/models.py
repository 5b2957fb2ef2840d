"""Data classes of stored contexts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal


class ContextType(StrEnum):
    """The kinds of context."""

    DOCUMENT = "document"
    KNOWLEDGE = "knowledge"
    EVENT = "event"
    PROFILE = "profile"
    ENTITY = "entity"

    @property
    def is_card(self) -> bool:
        """Whether it is a profile's or an entity's card."""
        return self in {ContextType.PROFILE, ContextType.ENTITY}


class TimeType(StrEnum):
    """The time of a context that a range applies to."""

    EVENT = "event_time_ts"
    CREATE = "create_time_ts"
    UPDATE = "update_time_ts"


@dataclass(frozen=True, slots=True)
class Identity:
    """The owner of stored data.

    Attributes:
        user_id: The user. Every read and every write is bound to exactly one.
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
    """The filters of a search, in addition to the identity.

    Attributes:
        ids: Only these contexts; empty means any.
        context_types: Only contexts of these types; empty means any.
        levels: Only events of these levels of the hierarchy (0 is an event itself), and contexts of
            other types; empty means any.
        time_range: Only contexts in this range; a summary matches if its bucket overlaps it.
        entities: Only contexts that name at least one of these.
        said_in: Chunks whose text mentions one of `entities`; their contexts match too.
        raw_types: Only contexts of these types of source.
        raw_id: Only contexts of the source with this name.
        under: Only contexts of sources whose name has this prefix, such as a folder.
        labels: For each pair, only contexts with one of the values under the key in their metadata;
            case is ignored.
        memory: Only memories, or only other contexts; None means both.
        memory_layers: Only memories of these layers; empty means any.
        cards: Whether cards match too, if `context_types` is empty; also in addition to memories.
    """

    ids: tuple[str, ...] = ()
    context_types: tuple[ContextType, ...] = ()
    levels: tuple[int, ...] = ()
    time_range: TimeRange | None = None
    entities: tuple[str, ...] = ()
    said_in: tuple[int, ...] = ()
    raw_types: tuple[str, ...] = ()
    raw_id: str | None = None
    under: str = ""
    labels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    memory: bool | None = None
    memory_layers: tuple[int, ...] = ()
    cards: bool = False


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stored piece of a context's text.

    Attributes:
        position: Its position in the context, from 0.
        start: Offset in the context's text; it may overlap the previous chunk.
        heading: The headings above it, outermost first, joined by " > "; for a turn of a
            conversation, the speaker and the time.
        content: The text itself.
    """

    position: int
    start: int
    heading: str
    content: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a conversation, or another ordered piece that is not split further.

    Attributes:
        heading: The speaker and the time.
        content: The text.
    """

    heading: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewContext:
    """A context to store, already converted to text.

    Attributes:
        context_type: Its type, which decides how it is stored: a document replaces its earlier
            version, knowledge merges into near-duplicates, an event is appended.
        title: Title.
        text: The whole text; empty for a conversation.
        turns: The turns of a conversation, instead of a text.
        markdown: Whether the text is Markdown, and so has headings.
        summary: A short summary.
        keywords: Its topics.
        entities: Names it mentions.
        confidence: How sure it is, 0 to 10.
        importance: How much it matters, 0 to 10.
        event_time: Unix seconds of the content's date; None means now.
        metadata: The caller's data.
        raw_type: Type of source, for example "file" or "text".
        raw_id: The source's name; for a document unique within raw_type and identity. Events with
            the same source are turns in order.
        media_type: MIME type it was read as.
        file_path: Path inside the root, empty for text given directly.
        sha256: Hash of the source's bytes; empty means of the text.
        memory_layer: 2 (important), 3 (summary) or 4 (semantic) for a memory; else 0.
        session_id: The session that a memory comes from.
        one_of_many: Whether it is part of an import; contexts added on their own are embedded
            before it.
    """

    context_type: ContextType = ContextType.DOCUMENT
    title: str
    text: str = ""
    turns: tuple[Turn, ...] = ()
    markdown: bool = False
    summary: str = ""
    keywords: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    confidence: float = 5.0
    importance: float = 5.0
    event_time: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    raw_type: str = ""
    raw_id: str = ""
    media_type: str = "text/plain"
    file_path: str = ""
    sha256: str = ""
    memory_layer: int = 0
    session_id: str = ""
    one_of_many: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """The columns of a stored context; its text is in its chunks.

    Attributes:
        id: Permanent identifier.
        context_type: Its type.
        identity: The owner.
        raw_type: Type of source, for example "file" or "text".
        raw_id: The source's name.
        title: Title, from the document or its name.
        summary: A short summary.
        keywords: Its topics.
        entities: Names it mentions.
        confidence: How sure it is, 0 to 10.
        importance: How much it matters, 0 to 10.
        create_time: Unix seconds when it was first added.
        update_time: Unix seconds when this version was added.
        event_time: Unix seconds of the content's date (a file's modification, a bucket's start).
        metadata: The caller's data.
        media_type: MIME type it was read as.
        file_path: Path inside the root, empty for text given directly.
        sha256: Hash of the source's bytes.
        merge_count: How often near-duplicates were merged into it.
        hierarchy_level: 1, 2 or 3 for the summary of a day, a week or a month; else 0.
        time_bucket: An event's second, or the day (2026-11-22), ISO week (2026-W47) or month
            (2026-11) of a summary, UTC; empty for other types.
        parent_id: The summary that includes it; empty if there is none.
        chunk_count: Number of stored chunks.
        memory_layer: 2 (important), 3 (summary) or 4 (semantic) for a memory; else 0.
    """

    id: str
    context_type: ContextType
    identity: Identity
    raw_type: str
    raw_id: str
    title: str
    summary: str
    keywords: tuple[str, ...]
    entities: tuple[str, ...]
    confidence: float
    importance: float
    create_time: float
    update_time: float
    event_time: float
    metadata: Mapping[str, Any]
    media_type: str
    file_path: str
    sha256: str
    merge_count: int
    hierarchy_level: int
    time_bucket: str
    parent_id: str
    chunk_count: int
    memory_layer: int


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A found chunk, with the scores that explain it.

    Attributes:
        chunk: The chunk.
        context: The context it belongs to.
        score: Its score, 0 to 1: the confidence that it answers the query or, directly from the
            engine, the fused score that hits are ordered by.
        dense: Cosine similarity to the query, -1 to 1; None while it is not embedded.
        lexical: BM25 score, 0 and up.
        told: The lexical score divided by that of a word that appears in no other chunk: its worth
            in rare words, whatever the size of the library.
        coverage: Share of the query's words that appear in it, 0 to 1, weighted by idf.
        surroundings: How well its neighbouring turns, session and date match, 0 to 1; None if none
            of them counts.
        surroundings_weight: The weight of that; the chunk's own score has the weight 1.
        matched_terms: The query's words that appear in it, as written in the query.
        before: The previous turn and its speaker, if it is a turn of a conversation.
        missing: Share of the query's names that appear nowhere in its context or session, 0 to 1.
    """

    chunk: Chunk
    context: Context
    score: float
    dense: float | None
    lexical: float
    told: float
    coverage: float
    surroundings: float | None
    surroundings_weight: float
    matched_terms: tuple[str, ...]
    before: str = ""
    missing: float = 0.0


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """How much of the stored data semantic search covers.

    Attributes:
        total: Stored chunks.
        embedded: Chunks with a vector.
        problem: Why embedding has stopped, or empty.
        next_embedded: Chunks with a vector of the next embedder, which takes over once it has all;
            None if there is none.
        rough: Chunks with only a rough vector so far.
    """

    total: int
    embedded: int
    problem: str = ""
    next_embedded: int | None = None
    rough: int = 0

    @property
    def complete(self) -> bool:
        """Whether every chunk has its vector."""
        return self.embedded >= self.total


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits, best first, and how complete the search was.

    Attributes:
        hits: Best first.
        mode: "hybrid", "lexical" (no vectors yet) or "listing" (no query).
        status: Coverage of the index for this identity at the moment of the search.
        unknown_names: Requested entities that resemble no stored name.
        nearest: The best hit that does not answer, if none does; None if there is no such hit, or
            the hits were not judged.
    """

    hits: tuple[SearchHit, ...]
    mode: str
    status: IndexStatus = field(default_factory=lambda: IndexStatus(0, 0))
    unknown_names: tuple[str, ...] = ()
    nearest: SearchHit | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """The outcome of adding a context.

    Attributes:
        context: The stored context.
        outcome: "added"; "replaced", an earlier version of the document; "unchanged", nothing was
            written because the same version is stored; "merged", into near-duplicate knowledge;
            or "superseded", earlier knowledge about the same attribute.
        similarity: The similarity of merged knowledge, 0 to 1.
        former: The text that superseded knowledge had, which is kept as former.
    """

    context: Context
    outcome: Literal["added", "replaced", "unchanged", "merged", "superseded"]
    similarity: float | None = None
    former: str = ""
