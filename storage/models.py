"""Data classes of stored contexts and of memory; labels, and whole texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta, tzinfo
from enum import IntEnum, StrEnum
from typing import Any, Literal

FORMERLY = "Formerly"  # the heading in cards and knowledge for facts that no longer hold
LONGEST_LABEL = 256  # maximum characters of a value that can be filtered by; longer ones are texts
_EXACT = 9e15  # below this, whole numbers are exact as floats
NOON = timedelta(hours=12)
FIRST_SECOND = datetime.min.replace(tzinfo=UTC).timestamp()
LAST_SECOND = datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()
IMPORTANT = 6.0  # the importance, out of 10, from which something belongs to layer 2
IDLE_SECONDS = 1_800.0  # seconds without activity after which a session has ended

EntryKind = Literal["call", "message"]


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
    """The owner of stored data."""

    user_id: str = "local"
    device_id: str = ""  # the device; empty means any of the user's when reading
    agent_id: str = ""  # the agent; empty means any of the user's when reading


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A range of one of the three times; both ends are included."""

    start: float | None = None  # Unix seconds, UTC; None leaves this end open (0 is a real bound)
    end: float | None = None  # Unix seconds, UTC; None leaves this end open
    time_type: TimeType = TimeType.EVENT


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """The filters of a search, in addition to the identity."""

    ids: tuple[str, ...] = ()  # only these contexts; empty means any
    context_types: tuple[ContextType, ...] = ()  # only contexts of these types; empty means any
    levels: tuple[int, ...] = ()  # levels of events (0: the event itself); others match too
    time_range: TimeRange | None = None  # a summary matches if its bucket overlaps it
    entities: tuple[str, ...] = ()
    said_in: tuple[int, ...] = ()  # chunks that mention one of `entities`; their contexts match too
    raw_types: tuple[str, ...] = ()
    raw_id: str | None = None
    under: str = ""  # only contexts of sources whose name has this prefix, such as a folder
    labels: tuple[tuple[str, tuple[str, ...]], ...] = ()  # key and values, in any case
    memory: bool | None = None  # only memories, or only other contexts; None means both
    memory_layers: tuple[int, ...] = ()  # only memories of these layers; empty means any
    cards: bool = False  # whether cards match, if `context_types` is empty; also with `memory`


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stored piece of a context's text."""

    position: int
    start: int  # offset in the context's text; it may overlap the previous chunk
    heading: str  # outermost first, joined by " > "; of a turn, the speaker and the time
    content: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a conversation, or another ordered piece that is not split further."""

    heading: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewContext:
    """A context to store, already converted to text."""

    # its type, which decides how it is stored: a document replaces its earlier version, knowledge
    # merges into near-duplicates, an event is appended
    context_type: ContextType = ContextType.DOCUMENT
    title: str
    text: str = ""  # the whole text; empty for a conversation
    turns: tuple[Turn, ...] = ()
    markdown: bool = False  # whether the text is Markdown, and so has headings
    summary: str = ""
    keywords: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    confidence: float = 5.0  # how sure it is, 0 to 10
    importance: float = 5.0  # how much it matters, 0 to 10
    event_time: float | None = None  # Unix seconds of the content's date; None means now
    metadata: Mapping[str, Any] = field(default_factory=dict)
    raw_type: str = ""  # type of source, for example "file" or "text"
    raw_id: str = ""  # of a document unique within raw_type and identity
    media_type: str = "text/plain"
    file_path: str = ""  # path inside the root, empty for text given directly
    sha256: str = ""  # hash of the source's bytes; empty means of the text
    memory_layer: int = 0  # 2 (important), 3 (summary) or 4 (semantic) for a memory; else 0
    session_id: str = ""
    one_of_many: bool = False  # part of an import, embedded after other contexts


@dataclass(frozen=True, slots=True)
class Context:
    """The columns of a stored context; its text is in its chunks."""

    id: str
    context_type: ContextType
    identity: Identity
    raw_type: str  # type of source, for example "file" or "text"
    raw_id: str
    title: str
    summary: str
    keywords: tuple[str, ...]
    entities: tuple[str, ...]
    confidence: float  # how sure it is, 0 to 10
    importance: float  # how much it matters, 0 to 10
    create_time: float  # Unix seconds when it was first added
    update_time: float  # Unix seconds when this version was added
    # Unix seconds of the content's date (a file's modification, a bucket's start)
    event_time: float
    metadata: Mapping[str, Any]
    media_type: str
    file_path: str  # path inside the root, empty for text given directly
    sha256: str  # hash of the source's bytes
    merge_count: int
    hierarchy_level: int  # 1, 2 or 3 for the summary of a day, a week or a month; else 0
    time_bucket: str  # 2026-11-22T09:30:00Z, 2026-11-22, 2026-W47 or 2026-11; empty for other types
    parent_id: str  # the summary that includes it; empty if there is none
    chunk_count: int
    memory_layer: int  # 2 (important), 3 (summary) or 4 (semantic) for a memory; else 0


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A found chunk, with the scores that explain it."""

    chunk: Chunk
    context: Context
    score: float  # 0 to 1: that it answers or, directly from the engine, the fused score
    dense: float | None  # cosine similarity to the query, -1 to 1; None while it is not embedded
    lexical: float  # BM25 score, 0 and up
    told: float  # the lexical score divided by that of a word that no other chunk has
    coverage: float  # share of the query's words that appear in it, 0 to 1, weighted by idf
    surroundings: float | None  # how well neighbours, session and date match, 0 to 1
    surroundings_weight: float  # the weight of that; the chunk's own score has the weight 1
    matched_terms: tuple[str, ...]
    before: str = ""  # the previous turn and its speaker, if it is a turn of a conversation
    missing: float = 0.0  # share of the query's names that its context and session lack, 0 to 1

    @property
    def is_former(self) -> bool:
        """Whether it is a fact that no longer holds; a document's heading may have that name."""
        kind = self.context.context_type
        return (kind.is_card or kind is ContextType.KNOWLEDGE) and self.chunk.heading == FORMERLY


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """How much of the stored data semantic search covers."""

    total: int
    embedded: int
    problem: str = ""  # why embedding has stopped, or empty
    next_embedded: int | None = None  # of the embedder that takes over once it has all
    rough: int = 0  # chunks with only a rough vector so far

    @property
    def complete(self) -> bool:
        """Whether every chunk has its vector."""
        return self.embedded >= self.total


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits, best first, and how complete the search was."""

    hits: tuple[SearchHit, ...]  # best first
    mode: str  # "hybrid", "lexical" (no vectors yet) or "listing" (no query)
    status: IndexStatus = field(default_factory=lambda: IndexStatus(0, 0))
    unknown_names: tuple[str, ...] = ()
    nearest: tuple[SearchHit, ...] = ()  # the nearest hits if none answers


@dataclass(frozen=True, slots=True)
class Stored:
    """The outcome of adding a context."""

    context: Context
    # "added"; "replaced", an earlier version of the document; "unchanged", nothing was written
    # because the same version is stored; "merged", into near-duplicate knowledge; or "superseded",
    # earlier knowledge about the same attribute
    outcome: Literal["added", "replaced", "unchanged", "merged", "superseded"]
    similarity: float | None = None  # the similarity of merged knowledge, 0 to 1
    former: str = ""


class MemoryLayer(IntEnum):
    """The layers of memory, which are unrelated to the hierarchy of events."""

    RECENT = 1
    IMPORTANT = 2
    SUMMARY = 3
    SEMANTIC = 4

    @property
    def label(self) -> str:
        """Its name in tools: "l1" to "l4"."""
        return f"l{self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """A call or message to record."""

    session_id: str
    kind: EntryKind  # whether it was a call or a message
    time: float  # Unix seconds when it began
    action: str  # the tool's name; for a message its channel, such as "prompt:recall"
    client: str = ""
    project: str = ""  # the directory of the session's project; empty if unknown
    target: str = ""  # what it was about: the given path, name, query or address
    arguments: Mapping[str, Any] = field(default_factory=dict)
    outcome: str = "ok"  # "ok", or the error_type of a failure
    said: str = ""
    milliseconds: float = 0.0
    importance: float = 0.0  # 0 to 10; earlier successes with the target raise that of a success
    is_recall: bool = False  # whether it only searched the stored data, and so adds nothing new
    context_ids: tuple[str, ...] = ()  # mentioned contexts; missing ones are ignored
    read_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A recorded call or message."""

    seq: int  # its number; later entries have higher numbers
    session_id: str
    client: str
    device_id: str
    agent_id: str
    kind: EntryKind  # whether it was a call or a message
    time: float  # Unix seconds when it began
    action: str
    target: str  # as in NewEntry; empty if its content was deleted
    arguments: Mapping[str, Any]  # as in NewEntry; likewise
    outcome: str  # "ok", or the error_type of a failure
    said: str  # as in NewEntry; likewise
    milliseconds: float
    importance: float  # 0 to 10
    is_recall: bool

    @property
    def tells(self) -> bool:
        """Whether it still has content besides its action, which may have been deleted."""
        return bool(self.target or self.arguments or self.said)

    @property
    def text(self) -> str:
        """The text it is found by: action, target, arguments and answer."""
        given = " ".join(f"{key}={value}" for key, value in self.arguments.items())
        return "\n".join(filter(None, (f"{self.action} {self.target}".strip(), given, self.said)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session of one client."""

    id: str
    client: str
    project: str  # its directory; empty if unknown
    device_id: str
    agent_id: str
    start_time: float  # Unix seconds when its first entry began
    last_time: float  # Unix seconds when its last entry began
    entries: int


def label_of(value: object) -> str | None:
    """Returns the text by which a value is compared, as in the view `labels_in_metadata`.

    2 and 2.0 are the same, and so are true and "true". None if it is not a plain value or is too
    long.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case int() if -(2**63) <= value < 2**63:
            return str(value)
        case int() | float():
            return _number(value)
        case str() if len(value) <= LONGEST_LABEL:
            return value
    return None


def is_labelled(metadata: Mapping[str, Any], key: str, values: Iterable[str]) -> bool:
    """Returns whether metadata match a filter by labels under a key."""
    found = metadata.get(key)
    labels = map(label_of, found if isinstance(found, list | tuple) else [found])
    return not {_fold_case(label) for label in labels if label is not None}.isdisjoint(
        map(_fold_case, values)
    )


def _number(value: float) -> str:
    """Formats a number that SQLite stores as a float."""
    try:
        value = float(value)
    except OverflowError:
        value = math.inf if value > 0 else -math.inf
    if value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return format(value, ".12g")


def _fold_case(label: str) -> bytes:
    """Folds ASCII case as SQLite's NOCASE does."""
    return label.encode(errors="surrogatepass").lower()


def whole_text(chunks: Sequence[Chunk]) -> str:
    """Joins chunks to the text they were cut from; a gap becomes one empty line."""
    return "".join(gap + fresh for gap, fresh, _ in _pieces(chunks))


def places_in_whole(chunks: Sequence[Chunk]) -> list[tuple[int, int]]:
    """Returns the start and end of each chunk in the whole text."""
    places, length = [], 0
    for (gap, fresh, repeated), chunk in zip(_pieces(chunks), chunks, strict=True):
        start = length + len(gap) - repeated
        places.append((start, start + len(chunk.content)))
        length += len(gap) + len(fresh)
    return places


def _pieces(chunks: Sequence[Chunk]) -> list[tuple[str, str, int]]:
    """Returns for each chunk the gap before it, its new text, and the length it repeats."""
    pieces = []
    end = chunks[0].start if chunks else 0
    for chunk in chunks:
        repeated = max(0, end - chunk.start)
        pieces.append(("\n" * min(chunk.start - end, 2), chunk.content[repeated:], repeated))
        end = max(end, chunk.start + len(chunk.content))
    return pieces


def utc(seconds: float) -> datetime:
    """Converts Unix seconds to UTC, clamped to the range of the calendar.

    File systems store times outside that range.
    """
    return datetime.fromtimestamp(min(max(seconds, FIRST_SECOND), LAST_SECOND), UTC)


def seconds_of(text: str, zone: tzinfo | None = None, at: timedelta = NOON) -> float:
    """Parses ISO 8601 to Unix seconds; without a zone it is in `zone`, by default the machine's.

    A date alone means a time of that day: noon, so that it is the same day in UTC too.
    """
    moment = datetime.fromisoformat(text)
    with suppress(ValueError):
        date.fromisoformat(text)
        moment += at
    is_edge = moment.year in {MINYEAR, MAXYEAR}  # local zones would leave the calendar
    if moment.tzinfo is None and (zone is not None or is_edge):
        moment = moment.replace(tzinfo=zone or UTC)
    return moment.timestamp()
