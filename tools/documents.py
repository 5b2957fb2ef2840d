"""Documents: adds, finds, reads and deletes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, Unpack

import anyio.from_thread
import anyio.to_thread
from pydantic import Field, FiniteFloat

from storage.index.embed_queue import WORDS_ONLY
from storage.models import Chunk, ContextType, NewContext, SearchFilter, utc, whole_text
from storage.reading.decode import REPLACEMENT
from tools.answers.hits import Coverage, Retrieved
from tools.answers.params import Metadata, Names, RawId, RawType, TimeWindow, TopK
from tools.core.context import IdentityArguments, RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.result import ToolModel
from tools.core.spec import Confirmation, Effect, Subject, SubjectKind, ToolScope, tool

PROGRESS_EVERY = 50

BROKEN = "broken_lines"  # metadata key for the lines of a file that could not be decoded
NOTES = "reading_notes"  # metadata key for what the user must know about a file's text
BY_WORDS = "It looks like a log, data or minified code: it is found by its words only."
MOST_KEPT = 100
MOST_LINES = 5  # limit on the broken lines to store and to name


class AddedDocument(ToolModel):
    """The result of adding a document."""

    id: str
    raw_type: str
    raw_id: str
    title: str
    chunks: int
    outcome: str
    broken_lines: list[int]
    notes: list[str]
    coverage: Coverage

    def to_text(self) -> str:
        """Formats it as one line for the model."""
        source = f"({self.raw_type}: {self.raw_id})"
        line = f"{self.outcome}: {self.title} {source}, {_chunks(self.chunks)}."
        notes = (broken_note(self.broken_lines), *self.notes, self.coverage.to_text())
        return " ".join(filter(None, (line, *notes)))


def broken_note(lines: Sequence[int]) -> str:
    """Names the lines of a file that could not be fully decoded; empty if there are none."""
    if not lines:
        return ""
    named = ", ".join(map(str, lines[:MOST_LINES]))
    more = f" and {len(lines) - MOST_LINES} more" if len(lines) > MOST_LINES else ""
    few = len(lines) == 1
    return (
        f"{'A line has' if few else f'{len(lines)} lines have'} bytes that could not be read,"
        f" marked with {REPLACEMENT}: line{'' if few else 's'} {named}{more}."
    )


class DocumentChunk(ToolModel):
    """One chunk, in document order.

    Attributes:
        position: Its position, from 0.
        start: Its start in the document's text; it may overlap the previous chunk.
        heading: The headings above it.
        content: Its text.
    """

    position: int
    start: int
    heading: str
    content: str


class StoredText(ToolModel):
    """A stored document."""

    id: str
    raw_type: str
    raw_id: str
    title: str
    media_type: str
    sha256: str
    create_time: FiniteFloat
    update_time: FiniteFloat
    event_time: FiniteFloat
    entities: list[str]
    metadata: dict[str, Any]
    chunk_count: int
    chunks: list[DocumentChunk]

    def to_text(self) -> str:
        """Formats the document's header and its text, without overlaps."""
        date = utc(self.event_time).date().isoformat()
        source = f"({self.raw_type}: {self.raw_id})"
        head = [f"{self.title} {source}, {date}, {_chunks(self.chunk_count)}"]
        if self.entities:
            head.append(f"Entities: {', '.join(self.entities)}")
        if self.metadata:
            head.append(f"Metadata: {json.dumps(self.metadata, ensure_ascii=False)}")
        text = whole_text([Chunk(**dict(chunk)) for chunk in self.chunks])
        return "\n\n".join(filter(None, ["\n".join(head), text]))


class DeletedDocument(ToolModel):
    """A deleted document."""

    raw_type: str
    raw_id: str
    chunks_deleted: int

    def to_text(self) -> str:
        """Formats it as one line for the model."""
        return f"Deleted {self.raw_type}: {self.raw_id} with {_chunks(self.chunks_deleted)}."


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ, Effect.WRITE},
    destructive=True,  # an earlier version is replaced
    idempotent=True,
    tags=("context", "documents"),
    capabilities=("store a file or a text so that it can be found again",),
    subject=Subject(SubjectKind.PATH, "path"),
    timeout=600,
    may_become_job=True,
)
async def add_document(
    context: RequestContext,
    path: Annotated[str | None, Field(description="A file inside the root")] = None,
    text: Annotated[str | None, Field(description="The text itself, instead of path")] = None,
    title: Annotated[
        str | None, Field(max_length=512, description="Default: from the document")
    ] = None,
    raw_type: Annotated[
        RawType | None, Field(description='Kind of source; default "file" or "text"')
    ] = None,
    raw_id: Annotated[
        RawId | None, Field(description="Its own name; default: the path or the title")
    ] = None,
    metadata: Annotated[Metadata | None, Field(description="Anything to keep with it")] = None,
    entities: Annotated[Names | None, Field(description="Names it is about")] = None,
    **identity: Unpack[IdentityArguments],
) -> AddedDocument:
    """Stores a document (text, mail, PDF, Office, …) so that it is found by meaning and words.

    Replaces the earlier version with the same raw_type and raw_id.
    """
    if (path is None) == (text is None):
        raise InvalidArgumentsError(
            "path and text: give exactly one of them.",
            next_actions=("Give path for a file inside the root, or text (with a title).",),
        )
    shelf = context.shelf(**identity)
    title = " ".join((title or "").replace("\0", " ").split()) or None
    document = await (
        _read_source(context, path, shelf.max_document_bytes)
        if path is not None
        else _text_source(text or "", title, shelf.max_document_bytes)
    )
    given: dict[str, Any] = {"title": title, "raw_type": raw_type, "raw_id": raw_id}
    document = replace(
        document,
        entities=(*document.entities, *(entities or ())),
        metadata={**document.metadata, **(metadata or {})},
        **{key: value for key, value in given.items() if value is not None},
    )
    stored = await anyio.to_thread.run_sync(partial(shelf.add, document, partial(_report, context)))
    status = await anyio.to_thread.run_sync(shelf.index_status)
    return AddedDocument.from_attributes(
        stored.context,
        chunks=stored.context.chunk_count,
        outcome=stored.outcome,
        broken_lines=list(document.metadata.get(BROKEN, ())),
        notes=list(document.metadata.get(NOTES, ())),
        coverage=Coverage.of(status),
    )


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("context", "documents", "retrieval"),
    capabilities=("search stored documents", "list stored documents"),
)
def retrieve_document_context(
    context: RequestContext,
    query: Annotated[
        str | None,
        Field(max_length=10_000, description="What to look for; without it, the newest are listed"),
    ] = None,
    entities: Annotated[
        Names | None, Field(description="Only documents about one of these names")
    ] = None,
    time_range: Annotated[
        TimeWindow | None, Field(description="Only documents of this time")
    ] = None,
    top_k: TopK = 5,
    **identity: Unpack[IdentityArguments],
) -> Retrieved:
    """Finds passages of the stored documents by meaning and words, with their scores."""
    criteria = SearchFilter(
        context_types=(ContextType.DOCUMENT,),
        time_range=None if time_range is None else time_range.to_range(),
        entities=tuple(entities or ()),
    )
    asked = (query or "").strip()
    found = context.shelf(**identity).search(asked or None, criteria, top_k)
    return Retrieved.of(found, asked)


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("context", "documents"),
    capabilities=("read a stored document",),
)
def get_document(
    context: RequestContext,
    raw_type: RawType,
    raw_id: RawId,
    return_chunks: Annotated[bool, Field(description="With its text")] = True,
    **identity: Unpack[IdentityArguments],
) -> StoredText:
    """Reads a stored document: its metadata and its chunks in order."""
    document, chunks = context.shelf(**identity).get_document(raw_type, raw_id)
    shown = chunks if return_chunks else []
    return StoredText.from_attributes(
        document, chunks=list(map(DocumentChunk.from_attributes, shown))
    )


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.WRITE},
    destructive=True,
    idempotent=True,
    confirmation=Confirmation.REQUIRED,
    tags=("context", "documents"),
    capabilities=("forget a stored document",),
)
def delete_document(
    context: RequestContext, raw_type: RawType, raw_id: RawId, **identity: Unpack[IdentityArguments]
) -> DeletedDocument:
    """Deletes a stored document for good, from every index; the file itself stays."""
    removed = context.shelf(**identity).delete_document(raw_type, raw_id)
    return DeletedDocument(raw_type=raw_type, raw_id=raw_id, chunks_deleted=removed)


def _report(context: RequestContext, done: int, total: int) -> None:
    """Reports progress from the worker thread; a cancelled call stops here, before any write."""
    if done % PROGRESS_EVERY == 0:
        anyio.from_thread.check_cancelled()
        anyio.from_thread.run(context.report_progress, done, total, f"{done} of {total} chunks")


def _chunks(count: int) -> str:
    return f"{count} chunk{'' if count == 1 else 's'}"


PARSE_SECONDS = 120.0


async def _parse(data: bytes, name: str) -> NewContext:
    """Parses a document into a context, which its source is still to be named for."""
    from storage.reading.parse import parse_isolated

    parsed = await parse_isolated(data, name=name, timeout=PARSE_SECONDS)
    told: dict[str, Any] = {
        BROKEN: list(parsed.broken_lines[:MOST_KEPT]),
        NOTES: [*parsed.notes, *([BY_WORDS] if parsed.machine_written else [])],
        WORDS_ONLY: parsed.machine_written,
    }
    return NewContext(
        title=parsed.title,
        text=parsed.text,
        markdown=parsed.markdown,
        media_type=parsed.media_type,
        sha256=sha256(data).hexdigest(),
        event_time=parsed.event_time,
        keywords=parsed.keywords,
        entities=parsed.entities,
        metadata={**parsed.metadata, **{name: value for name, value in told.items() if value}},
    )


async def _read_source(context: RequestContext, path: str, max_bytes: int) -> NewContext:
    """Reads a file as a document, named by its path inside the root."""
    content = await anyio.to_thread.run_sync(
        partial(context.sandbox.read, path, max_bytes=max_bytes)
    )
    if content.truncated:
        raise InvalidArgumentsError(
            f"{path!r} is too large: it has {content.size} bytes; a document may have {max_bytes}.",
            next_actions=("Split it into smaller files.",),
        )
    await context.report_progress(0, None, f"reading {path}")
    document = await _parse(content.data, path)
    relative = context.sandbox.relative(path)
    when = content.mtime if document.event_time is None else document.event_time
    return replace(document, raw_type="file", raw_id=relative, file_path=relative, event_time=when)


async def _text_source(text: str, title: str | None, max_bytes: int) -> NewContext:
    """Makes a text into a document, named by its title or else by its digest."""
    data = text.replace("\0", " ").encode(errors="replace")
    if len(data) > max_bytes:
        raise InvalidArgumentsError(
            f"text: has {len(data)} bytes; a document may have {max_bytes}.",
            next_actions=("Split it into smaller texts.",),
        )
    document = await _parse(data, f"{title or 'text'}.md")
    return replace(document, raw_type="text", raw_id=title or document.sha256[:16])
