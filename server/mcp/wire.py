"""Converts results to the wire, and forwards `_meta` and logs between clients and servers."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel
from pydantic_core import from_json, to_json

from tools.core.content import Block, EmbeddedResource, Media, ResourceLink
from tools.core.errors import InternalError
from tools.core.result import ToolResult
from tools.core.unicode_safety import encodable

if TYPE_CHECKING:  # servers of one's own have no settings
    from server.mcp.sessions import Variant
    from server.settings.gateway import Results
    from tools.core.spec import ToolSpec


TEXTLESS = frozenset({NoneType, bool, int, float})
"""Types of values without text to check; results can contain a million of them."""

MAX_LEVELS = 128
"""Maximum nesting of a result; parsers give up at 200, and the caller would wait forever."""

SERVER_KEY = "toolcrib/server"
"""The `_meta` key of listed items for their server."""

MOST_AT_ONCE = 64
"""Maximum number of pending messages to a slow client; more are dropped."""

_LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)
"""From debug to emergency (RFC 5424)."""

_BETWEEN_NEIGHBOURS = "io.modelcontextprotocol/"
"""Prefix of `_meta` keys that concern only two neighbours (schema 2026-07-28)."""

_PROGRESS = frozenset({"progressToken", "progress_token"})

ResultT = TypeVar("ResultT", bound=types.Result)


def result_form(spec: ToolSpec | None, variant: Variant, *, lists_all: bool) -> Results:
    """Returns the form of a successful result: structured content if its schema is listed.

    `lists_all` is `Surface.lists_all`; otherwise built-in tools are listed in lean form.
    """
    if spec is None:
        return "text"
    is_builtin = spec.source == "builtin"
    if not is_builtin and spec.server:  # what it answers is passed on, unless it is too large
        return "text" if variant.results == "text" else "both"
    if variant.results != "auto":
        return variant.results
    return "text" if is_builtin and not lists_all else "both"


def wire_form(model: BaseModel) -> dict[str, Any]:
    """Converts a protocol model to its wire form."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def utf8_json(value: Any, levels: int = MAX_LEVELS) -> Any:  # noqa: ANN401  # any JSON value, as decoded
    """Returns a JSON value with all texts, including keys, made safe by `encodable`.

    Raises:
        InternalError: If it is nested deeper than `levels`.
    """
    if isinstance(value, str):
        return encodable(value)
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        raise InternalError(f"The answer is nested deeper than {MAX_LEVELS} levels.")
    if isinstance(value, dict):
        return {encodable(key): utf8_json(item, levels - 1) for key, item in value.items()}
    if TEXTLESS.issuperset(map(type, value)):
        return value
    return [utf8_json(item, levels - 1) for item in value]


def call_result(result: ToolResult, results: Results) -> types.CallToolResult:
    """Returns the result of a call in the form that its client reads."""
    if isinstance(result.verbatim, types.CallToolResult):
        verbatim = without_twin(result.verbatim) if results == "text" else result.verbatim
        if not (result.added or result.replaced):
            return verbatim
        content = [*filter(None, (_replaced(each, result) for each in verbatim.content))]
        if result.added:
            content.append(types.TextContent(text=encodable(result.added)))
        return verbatim.model_copy(update={"content": content})
    is_unfit = result.preview == "unfit" and results != "text"  # only failures need no structure
    # TypeScript SDK 1 clients validate failures against the schema too.
    if result.is_error or result.preview in {"text", "unfit"}:
        results = "text"
    structured = None if results == "text" else utf8_json(result.structured)
    is_json = results == "structured" and not result.preview
    told = to_json(structured).decode() if is_json else encodable(result.text)
    return types.CallToolResult(
        content=[content_block(each) for each in result.blocks or (told, *result.media)],
        structured_content=structured,
        is_error=result.is_error or is_unfit,
        _meta=result.meta and utf8_json(result.meta),
    )


def _replaced(block: types.ContentBlock, result: ToolResult) -> types.ContentBlock | None:
    """Returns the scaled form of an image; None if it is left out."""
    if not isinstance(block, types.ImageContent) or not result.replaced:
        return block
    try:
        image = Media("image", b64decode(block.data), block.mime_type)
    except ValueError:
        return block
    shown = result.replaced.get(image, image)
    if shown is None:
        return None
    return block if shown is image else content_block(shown)


def without_twin(result: types.CallToolResult) -> types.CallToolResult:
    """Returns the shorter of text and structured content as text, if they say the same."""
    structured = result.structured_content
    if not isinstance(structured, dict) or result.is_error or len(result.content) != 1:
        return result
    block, values = result.content[0], list(structured.values())
    if not isinstance(block, types.TextContent):
        return result
    try:
        told = from_json(block.text)
    except ValueError:
        told = block.text
    if told != structured and values not in ([told], [block.text]):
        return result
    if not isinstance(told, str):
        shorter = min(block.text, to_json(told).decode(), key=len)
        block = block.model_copy(update={"text": shorter})
    return result.model_copy(update={"content": [block], "structured_content": None})


def content_block(block: Block) -> types.ContentBlock:
    """Converts one part of a result or a message."""
    match block:
        case Media(kind="image"):
            return types.ImageContent(data=_base64(block.data), mime_type=block.mime_type)
        case Media():
            return types.AudioContent(data=_base64(block.data), mime_type=block.mime_type)
        case EmbeddedResource():
            return types.EmbeddedResource(resource=resource_contents(block))
        case ResourceLink():
            return types.ResourceLink(
                uri=encodable(block.uri),
                name=encodable(block.name),
                title=block.title and encodable(block.title),
                description=block.description and encodable(block.description),
                mime_type=block.mime_type,
                size=block.size,
            )
    return types.TextContent(text=encodable(block))


def resource_contents(
    found: EmbeddedResource, read: str = ""
) -> types.TextResourceContents | types.BlobResourceContents:
    """Converts an embedded resource.

    read: The requested address, if the resource has none.
    """
    uri = encodable(found.uri or read)
    if isinstance(found.data, str):
        text = encodable(found.data)
        return types.TextResourceContents(uri=uri, mime_type=found.mime_type, text=text)
    blob = _base64(found.data)
    return types.BlobResourceContents(uri=uri, mime_type=found.mime_type, blob=blob)


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def asks_for_progress(meta: Mapping[str, Any] | None) -> bool:
    """Returns whether the sender of a request wants progress reports."""
    return not _PROGRESS.isdisjoint(meta or {})


def forwarded(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the entries that concern the other end."""
    return {
        key: value
        for key, value in (meta or {}).items()
        if key not in _PROGRESS and not key.startswith(_BETWEEN_NEIGHBOURS)
    }


def with_forwarded_meta(result: ResultT) -> ResultT:
    """Returns another server's result with filtered metadata, as if it came from here."""
    if not result.meta:
        return result
    return result.model_copy(update={"meta": forwarded(result.meta) or None})


def is_logged(level: types.LoggingLevel, floor: types.LoggingLevel | None) -> bool:
    """Returns whether a level is at or above a floor; without a floor every level is."""
    return floor is None or _LEVELS.index(level) >= _LEVELS.index(floor)


def opted_level(ctx: ServerRequestContext[Any, Any]) -> types.LoggingLevel | None:
    """Returns the minimum level that a request of protocol 2026-07-28 wants; None for no logs."""
    level = (ctx.meta or {}).get(types.LOG_LEVEL_META_KEY)
    return next((each for each in _LEVELS if each == level), None)


def wants_log(
    ctx: ServerRequestContext[Any, Any], level: types.LoggingLevel, floor: types.LoggingLevel | None
) -> bool:
    """Returns whether the client of a request wants a message of a level.

    The floor is its level from `logging/setLevel` (protocols until 2025-11-25).
    """
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        opted = opted_level(ctx)
        return opted is not None and is_logged(level, opted)
    return is_logged(level, floor)


def log_from(
    server: str, params: types.LoggingMessageNotificationParams
) -> types.LoggingMessageNotification:
    """Prefixes a log message with the name of its server."""
    logger = f"{server}/{params.logger}" if params.logger else server
    return types.LoggingMessageNotification(
        params=types.LoggingMessageNotificationParams(
            level=params.level, logger=logger, data=params.data
        )
    )
