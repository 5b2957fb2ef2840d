"""Stored context as MCP resources, listed in pages and read as text."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from server.mcp.browsing.answers import Section, no_resource_at
from server.mcp.browsing.provider import Provider
from server.mcp.context_text import SCHEME, Address, document_uri, media_type_of
from server.mcp.sessions import principal_of
from server.mcp.views import Relevant, relevant, view
from storage.library import Library, Shelf
from storage.models import Context, ContextType, Identity, SearchFilter, whole_text
from storage.reading.formats import MARKDOWN
from storage.retrieval.routing import Source
from tools.answers.plans import PlanView
from tools.core.errors import InvalidArgumentsError, NotFoundError, as_tool_error
from tools.core.unicode_safety import encodable

INDEX_URI = "context://index"

DOCUMENTS_ONLY = SearchFilter(context_types=(ContextType.DOCUMENT,))

VIEWS = [
    types.Resource(
        uri=f"context://{name}",
        name=name,
        title=title,
        description=description,
        mime_type=MARKDOWN.media_type,
    )
    for name, title, description in (
        ("relevant", "What matters now", "Who the user is, what is important and what is new."),
        ("documents", "Documents", "The stored documents, newest first."),
        ("knowledge", "Knowledge", "The stored knowledge, newest first."),
        ("events", "Events", "The stored events and their summaries, newest first."),
        ("entities", "Entities", "People, projects, teams and organizations, by name."),
        ("plans", "Plans", "The plans of all sessions, those that were changed last first."),
    )
] + [
    types.Resource(
        uri=INDEX_URI,
        name="index",
        title="State of the index",
        description="How many stored chunks are embedded for semantic search so far, as JSON.",
        mime_type="application/json",
    )
]

TEMPLATES = [
    types.ResourceTemplate(uri_template=uri, name=name, title=title, description=description)
    for uri, name, title, description in (
        (
            "context://documents/{raw_type}/{raw_id}",
            "document",
            "Stored document",
            "The text of one stored document, by the kind and the name of its source.",
        ),
        (
            "context://contexts/{id}",
            "context",
            "Stored context",
            "One document, piece of knowledge or event with what is known of it, by its id.",
        ),
        (
            "context://time/{bucket}",
            "time",
            "A stretch of time",
            "Everything from a day (2026-11-22), an ISO week (2026-W47) or a month (2026-11), UTC.",
        ),
        (
            "context://entities/{name}",
            "entity",
            "Entity",
            "What is known of a person, project, team or organization, and what names it.",
        ),
        ("context://plans/{id}", "plan", "Plan", "A plan with all its steps, by its id."),
        (
            "context://relevant{?topic}",
            "relevant",
            "What matters for a topic",
            "The passages that fit a topic best, with their sources.",
        ),
    )
]

RequestContext = ServerRequestContext[Any, Any]
ResultT = TypeVar("ResultT")


class ContextProvider(Provider):
    """The stored context at `context://` addresses, apart from the list of documents."""

    def __init__(
        self,
        library: Library,
        identity: Identity,  # of requests without a token
        sources: tuple[Source, ...] = (),  # name the origin of passages
        closes: Callable[[str], bool] | None = None,  # whether a rule denies reading a file
    ) -> None:
        self._closes = closes
        self._library = library
        self._identity = identity
        self._sources = sources

    async def resources(self, ctx: RequestContext) -> Sequence[Section[types.Resource]]:  # noqa: ARG002  # the same for all
        """Returns the views and the index."""
        return [Section.of("views", VIEWS)]

    async def templates(self, ctx: RequestContext) -> Sequence[Section[types.ResourceTemplate]]:  # noqa: ARG002  # the same for all
        """Returns the templates of our addresses."""
        return [Section.of("views", TEMPLATES)]

    async def read_resource(
        self, ctx: RequestContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | None:
        """Returns the text at an address, or the state of the index as JSON."""
        if not params.uri.startswith(SCHEME):
            return None
        shelf = self.shelf_of(ctx)
        try:
            read = partial(self._read, shelf, params.uri)
            text, media_type = await read_in_thread("resources/read", read)
        except NotFoundError as error:
            raise no_resource_at(params.uri, ctx) from error
        contents = types.TextResourceContents(
            uri=params.uri, mime_type=media_type, text=encodable(text)
        )
        return types.ReadResourceResult(contents=[contents])

    def relevant(self, shelf: Shelf, topic: str) -> Relevant:
        """Returns context that an agent of the user should see unasked; blocks."""
        return relevant(shelf, topic, self._sources)

    def shelf_of(self, ctx: RequestContext) -> Shelf:
        """Returns the shelf of the caller."""
        return self._library.shelf(principal_of(ctx, self._identity).identity, self._closes)

    def _read(self, shelf: Shelf, uri: str) -> tuple[str, str]:
        if uri == INDEX_URI:
            return _index_json(shelf), "application/json"
        address = Address.parse(uri)
        match address.noun, address.parts:
            case "documents", (raw_type, raw_id) if raw_type and raw_id:
                document, chunks = shelf.get_document(raw_type, raw_id)
                return whole_text(chunks), media_type_of(document)
            case "plans", (plan_id,) if plan_id:
                plan = shelf.plans.get("", plan_id)
                return PlanView.detailed(plan, 0, sys.maxsize).to_text(), "text/plain"
        return view(shelf, address, self._sources), MARKDOWN.media_type


class DocumentProvider(Provider):
    """Lists the stored documents, newest first; the contexts' provider reads them."""

    def __init__(self, contexts: ContextProvider) -> None:
        self._contexts = contexts

    async def resources(self, ctx: RequestContext) -> Sequence[Section[types.Resource]]:
        """Returns the documents."""
        shelf = self._contexts.shelf_of(ctx)

        async def part(offset: int, most: int) -> tuple[list[types.Resource], bool]:
            read = partial(shelf.contexts, DOCUMENTS_ONLY, most + 1, offset)
            found = await read_in_thread("resources/list", read)
            return [*map(_describe, filter(shelf.shows, found[:most]))], len(found) > most

        return [Section("documents", part)]


async def read_in_thread(method: str, read: Callable[[], ResultT]) -> ResultT:
    """Reads in a worker thread; a failure discloses no more than a tool's would.

    A cancelled reader does not wait for it. A NotFoundError stays unchanged, for the caller to
    convert to the protocol's error.
    """
    try:
        return await anyio.to_thread.run_sync(read, abandon_on_cancel=True)
    except Exception as error:
        failure = as_tool_error(error, method)
        if isinstance(failure, NotFoundError):
            raise failure from error
        wrong = isinstance(failure, InvalidArgumentsError)
        text = " ".join([failure.message, *failure.next_actions])
        code = types.INVALID_PARAMS if wrong else types.INTERNAL_ERROR
        raise MCPError(code, encodable(text)) from error


def _index_json(shelf: Shelf) -> str:
    status = shelf.index_status()
    return json.dumps(
        {
            "total": status.total,
            "embedded": status.embedded,
            "complete": status.complete,
            "problem": status.problem,
            "next_embedded": status.next_embedded,
            "rough": status.rough,
        }
    )


def _describe(document: Context) -> types.Resource:
    modified = datetime.fromtimestamp(document.update_time, UTC)
    return types.Resource(
        uri=document_uri(document.raw_type, document.raw_id),
        name=document.raw_id,
        title=document.title,
        mime_type=media_type_of(document),
        annotations=types.Annotations(last_modified=modified.isoformat(timespec="seconds")),
    )
