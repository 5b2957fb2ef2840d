"""Stored documents as MCP resources: listed in pages, read as text."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from server.wire import utf8_text
from storage.library import Library
from storage.models import Context as StoredContext
from storage.models import ContextType, Identity, SearchFilter
from storage.shelf import Shelf
from storage.wholetext import whole_text
from tools.core.errors import NotFoundError
from tools.core.failures import as_tool_error

__all__ = ["DocumentResources", "document_uri"]

DOCUMENTS = "context://documents/"
TEMPLATE = DOCUMENTS + "{raw_type}/{raw_id}"
INDEX_URI = "context://index"

PAGE_SIZE = 100
"""Documents on one page of the list."""

DOCUMENTS_ONLY = SearchFilter(context_types=(ContextType.DOCUMENT,))

CURSOR_PREFIX = "documents:"
LAST_OFFSET = 2**31
"""Beyond what a cursor of ours can say; the database counts rows in 64 bits."""

MARKDOWN_SOURCES = frozenset(
    {
        "text/markdown",
        "text/html",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    }
)
"""Media types whose stored text is Markdown; of every other it is plain."""

RESOURCE_NOT_FOUND = -32002
"""The code of protocols up to 2025-11-25; 2026-07-28 retired it for invalid params (SEP-2164)."""

Context = ServerRequestContext[Any, Any]
ResultT = TypeVar("ResultT")


class DocumentResources:
    """Answers resources/list, resources/templates/list and resources/read for one identity.

    Args:
        library: The stored context.
        identity: Whose documents are shown.
    """

    def __init__(self, library: Library, identity: Identity) -> None:
        self._library = library
        self._identity = identity

    async def list_resources(
        self, _ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """One page of documents; the first page starts with the state of the index.

        Raises:
            MCPError: Invalid params, if the cursor is none of ours.
        """
        offset = _offset_of(params.cursor if params else None)
        documents = await _answer("resources/list", partial(self._in_thread, _page, offset=offset))
        page = documents[:PAGE_SIZE]
        more = len(documents) > PAGE_SIZE
        return types.ListResourcesResult(
            resources=[*([_INDEX] if offset == 0 else []), *map(_describe, page)],
            next_cursor=_cursor_at(offset + PAGE_SIZE) if more else None,
        )

    async def list_templates(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """How the address of a document is made."""
        template = types.ResourceTemplate(
            uri_template=TEMPLATE,
            name="document",
            title="Stored document",
            description="The text of one stored document, by the kind and the name of its source.",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """The text of a document, or the state of the index as JSON.

        Raises:
            MCPError: Resource not found, in the code of the connection's protocol.
        """
        try:
            text, media_type = await _answer("resources/read", partial(self._read, params.uri))
        except NotFoundError as error:
            modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
            code = types.INVALID_PARAMS if modern else RESOURCE_NOT_FOUND
            uri = utf8_text(params.uri)
            raise MCPError(code, f"Resource not found: {uri}", {"uri": uri}) from error
        contents = types.TextResourceContents(uri=params.uri, mime_type=media_type, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def _read(self, uri: str) -> tuple[str, str]:
        if uri == INDEX_URI:
            return await self._in_thread(_index_json), "application/json"
        raw_type, raw_id = _source_of(uri)
        document, chunks = await self._in_thread(Shelf.get_document, raw_type, raw_id)
        return whole_text(chunks), _media_type_of(document)

    async def _in_thread(
        self, read: Callable[..., ResultT], *args: object, **options: object
    ) -> ResultT:
        """Runs a read of this identity's shelf; a reader who leaves does not wait for it."""
        shelf = self._library.shelf(self._identity)
        return await anyio.to_thread.run_sync(
            partial(read, shelf, *args, **options), abandon_on_cancel=True
        )


async def _answer(method: str, read: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """What was read; a failure tells the client no more than a tool's would.

    Raises:
        NotFoundError: As it is, for the caller to say in the protocol's way.
        MCPError: Internal error, for every other failure of storage and every crash.
    """
    try:
        return await read()
    except Exception as error:
        failure = as_tool_error(error, method)
        if isinstance(failure, NotFoundError):
            raise failure from error
        text = " ".join([failure.message, *failure.next_actions])
        raise MCPError(types.INTERNAL_ERROR, utf8_text(text)) from error


def _page(shelf: Shelf, *, offset: int) -> list[StoredContext]:
    """A page and one document more, which tells whether another page follows."""
    return shelf.contexts(DOCUMENTS_ONLY, PAGE_SIZE + 1, offset)


def _index_json(shelf: Shelf) -> str:
    status = shelf.index_status()
    return json.dumps(
        {
            "total": status.total,
            "embedded": status.embedded,
            "complete": status.complete,
            "problem": status.problem,
        }
    )


def document_uri(raw_type: str, raw_id: str) -> str:
    """The address of a document; every reserved character of its two parts is percent-encoded."""
    return f"{DOCUMENTS}{quote(raw_type, safe='')}/{quote(raw_id, safe='')}"


def _source_of(uri: str) -> tuple[str, str]:
    """The (raw_type, raw_id) that an address names.

    Raises:
        NotFoundError: If it is no address of a document.
    """
    raw_type, slash, raw_id = uri.removeprefix(DOCUMENTS).partition("/")
    if not (uri.startswith(DOCUMENTS) and raw_type and slash and raw_id):
        raise NotFoundError(f"No document has the address {uri!r}.")
    try:
        return unquote(raw_type, errors="strict"), unquote(raw_id, errors="strict")
    except UnicodeError as error:
        raise NotFoundError(f"The address {uri!r} is not UTF-8.") from error


def _media_type_of(document: StoredContext) -> str:
    return "text/markdown" if document.media_type in MARKDOWN_SOURCES else "text/plain"


def _describe(document: StoredContext) -> types.Resource:
    modified = datetime.fromtimestamp(document.update_time, UTC)
    return types.Resource(
        uri=document_uri(document.raw_type, document.raw_id),
        name=document.raw_id,
        title=document.title,
        mime_type=_media_type_of(document),
        annotations=types.Annotations(last_modified=modified.isoformat(timespec="seconds")),
    )


_INDEX = types.Resource(
    uri=INDEX_URI,
    name="index",
    title="State of the index",
    description="How many stored chunks can be found by meaning so far, as JSON.",
    mime_type="application/json",
)


def _cursor_at(offset: int) -> str:
    return base64.urlsafe_b64encode(f"{CURSOR_PREFIX}{offset}".encode()).decode()


def _offset_of(cursor: str | None) -> int:
    """Where the page of a cursor starts.

    Raises:
        MCPError: Invalid params, if the cursor is none of ours.
    """
    if cursor is None:
        return 0
    try:
        text = base64.b64decode(cursor, altchars=b"-_", validate=True).decode("ascii")
        offset = int(text.removeprefix(CURSOR_PREFIX))
    except (binascii.Error, ValueError):
        offset = 0
    if not 0 < offset < LAST_OFFSET or cursor != _cursor_at(offset):
        shown = utf8_text(cursor[:100])
        raise MCPError(
            types.INVALID_PARAMS,
            f"Unknown cursor {shown!r}: pass nextCursor of the page before, or none to start.",
        )
    return offset
