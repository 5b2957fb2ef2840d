"""What is kept on the shelves, as plain values."""

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
        """Whether it is what a profile or an entity is found by, and is stored there."""
        return self in {ContextType.PROFILE, ContextType.ENTITY}


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
        ids: Only these contexts; empty means any.
        context_types: Only contexts of these kinds; empty means of any.
        levels: Only events of these levels of the hierarchy (0 is an event itself) and contexts of
            other kinds; empty means of any.
        time_range: Only contexts in this range; a summary fits if its bucket overlaps it.
        entities: Only contexts that name at least one of these.
        said_in: Chunks whose text says one of `entities`; their contexts name it too.
        raw_types: Only contexts of these kinds of source.
        raw_id: Only contexts of the source with this name.
        under: Only contexts of sources whose name begins with this, such as a folder.
        labels: Only contexts with, for each pair, one of the values under the key in their
            metadata; case does not count.
        memory: Only memories, or only what is none; None means both.
        memory_layers: Only memories of these layers; empty means of any.
        cards: Whether those of profiles and entities fit where no kinds are asked for; they do
            beside memories too.
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
    """One stored piece of a context's text.

    Attributes:
        position: Place in the context, from 0.
        start: Where the content begins in the context's text; it may overlap the chunk before.
        heading: The headings it stands under below the title, outermost first, joined by " > "; of
            a turn of a conversation, who said it and when.
        content: The text itself.
    """

    position: int
    start: int
    heading: str
    content: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation, or another piece of an order that is not cut further.

    Attributes:
        heading: Who said it, and when.
        content: What was said.
    """

    heading: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewContext:
    """Something to be stored, already turned into text.

    Attributes:
        context_type: Its kind, which decides what happens to what is stored already: a document
            replaces its earlier version, knowledge merges into what says nearly the same, an event
            is appended.
        title: Title.
        text: The whole text; of a conversation empty.
        turns: The turns of a conversation, instead of a text.
        markdown: Whether the text is Markdown, and so has headings.
        summary: What it says in short.
        keywords: What it is about.
        entities: Names it is about.
        confidence: How sure it is, 0 to 10.
        importance: How much it matters, 0 to 10.
        event_time: Unix seconds of its own date; None means now.
        metadata: Free data of the caller's.
        raw_type: Kind of source, for example "file" or "text".
        raw_id: The source's own name; of a document unique within raw_type and identity. Events
            with the same source are turns of one order.
        media_type: MIME type it was read as.
        file_path: Path beneath the root, empty for text given directly.
        sha256: Of the source's bytes; empty means of the text.
        memory_layer: 2 (important), 3 (summary) or 4 (semantic) of a memory; else 0.
        session_id: The session that a memory comes from.
        one_of_many: Whether it comes with many others, as in an import: what was added by itself
            is embedded before it.
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
    """What is known of a stored context; its text is in its chunks.

    Attributes:
        id: Stable identifier.
        context_type: Its kind.
        identity: Whose it is.
        raw_type: Kind of source, for example "file" or "text".
        raw_id: The source's own name.
        title: Title, from the document or its name.
        summary: What it says in short.
        keywords: What it is about.
        entities: Names it is about.
        confidence: How sure it is, 0 to 10.
        importance: How much it matters, 0 to 10.
        create_time: Unix seconds when it was first added.
        update_time: Unix seconds when this version was added.
        event_time: Unix seconds of its own date (a file's modification time, a bucket's start).
        metadata: Free data of the caller's.
        media_type: MIME type it was read as.
        file_path: Path beneath the root, empty for text given directly.
        sha256: Of the source's bytes.
        merge_count: How often knowledge took in what said nearly the same.
        hierarchy_level: 1, 2 or 3 for the summary of a day, a week or a month; else 0.
        time_bucket: An event's second, or the day (2026-11-22), ISO week (2026-W47) or month
            (2026-11) of a summary, UTC; empty for other kinds.
        parent_id: The summary that it went into; empty where there is none.
        chunk_count: Number of stored chunks.
        memory_layer: 2 (important), 3 (summary) or 4 (semantic) of a memory; else 0.
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
    """One found chunk and why it was found.

    Attributes:
        chunk: The chunk.
        context: The context it belongs to.
        score: Its score, 0 to 1: how sure it is to answer, or, of what the engine finds, the fused
            one that the order goes by.
        dense: Cosine similarity to the query, -1 to 1; None while it is not embedded.
        lexical: BM25 score, 0 and up.
        told: The same over what a word counts that stands in no other chunk: how many rare words'
            worth it has, whatever the size of the library.
        coverage: Share of the query's words that stand in it, 0 to 1, each weighed by its idf.
        surroundings: How well the turns beside it, its session and its date fit, 0 to 1; None
            where none of them counts.
        surroundings_weight: How much they count; the chunk's own score has the weight 1.
        matched_terms: The query's words that stand in it, as the query wrote them.
        before: What was said before it, and by whom, where it is a turn of a conversation.
        missing: Share of the query's names that stand nowhere in its context or session, 0 to 1.
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
    """How much of what is stored can be found by meaning.

    Attributes:
        total: Stored chunks.
        embedded: Chunks with a vector.
        problem: Why embedding stands still, or empty.
        next_embedded: Chunks with a vector by the embedder that takes over once it has all; None
            where none does.
        rough: Chunks without a vector that are found by a rough one meanwhile.
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
        mode: "hybrid", "lexical" (no vectors to ask yet) or "listing" (no query).
        status: Coverage of the index for this identity at the moment of the search.
        unknown_names: Entities asked for that nothing stored is like.
        nearest: The likeliest of what does not answer, where nothing does; None where there is
            none, or nobody judged.
    """

    hits: tuple[SearchHit, ...]
    mode: str
    status: IndexStatus = field(default_factory=lambda: IndexStatus(0, 0))
    unknown_names: tuple[str, ...] = ()
    nearest: SearchHit | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """What adding did.

    Attributes:
        context: As it is stored now.
        outcome: "added"; "replaced", an earlier version of the document; "unchanged", the same
            version was stored already and nothing was written; "merged", into knowledge that
            says nearly the same; or "superseded", knowledge that gave an attribute another value.
        similarity: How near merged knowledge was, 0 to 1.
        former: What superseded knowledge said, which is kept as past.
    """

    context: Context
    outcome: Literal["added", "replaced", "unchanged", "merged", "superseded"]
    similarity: float | None = None
    former: str = ""
