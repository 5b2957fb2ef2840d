"""Converts results to the wire: UTF-8 JSON, content blocks and call results."""

from __future__ import annotations

from base64 import b64encode
from types import NoneType
from typing import TYPE_CHECKING, Any

import mcp_types as types
from pydantic import BaseModel
from pydantic_core import to_json

from tools.core.content import Block, EmbeddedResource, Media, ResourceLink
from tools.core.errors import InternalError
from tools.core.result import ToolResult
from tools.core.unicode_safety import encodable

if TYPE_CHECKING:  # servers of one's own have no settings
    from server.settings.gateway import Results

TEXTLESS = frozenset({NoneType, bool, int, float})
"""Types of values without text to check; results can contain a million of them."""
MAX_LEVELS = 128
"""Maximum nesting of a result; parsers give up at 200, and the caller would wait forever."""


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
        if not result.added:
            return result.verbatim
        content = [*result.verbatim.content, types.TextContent(text=encodable(result.added))]
        return result.verbatim.model_copy(update={"content": content})
    if result.is_error:  # TypeScript SDK 1 clients validate failures against the schema too
        results = "text"
    structured = None if results == "text" else utf8_json(result.structured)
    told = to_json(structured).decode() if results == "structured" else encodable(result.text)
    return types.CallToolResult(
        content=[content_block(each) for each in result.blocks or (told, *result.media)],
        structured_content=structured,
        is_error=result.is_error,
        _meta=result.meta and utf8_json(result.meta),
    )


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
