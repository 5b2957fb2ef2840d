"""Content blocks and contents of resources, as the protocol has them."""

from __future__ import annotations

from base64 import b64encode

import mcp_types as types

from server.mcp.safe_json import utf8_text
from tools.core.content import Block, EmbeddedResource, Media, ResourceLink

__all__ = ["content_block", "resource_contents"]


def content_block(block: Block) -> types.ContentBlock:
    """One part of a result or a message."""
    match block:
        case Media(kind="image"):
            return types.ImageContent(data=_base64(block.data), mime_type=block.mime_type)
        case Media():
            return types.AudioContent(data=_base64(block.data), mime_type=block.mime_type)
        case EmbeddedResource():
            return types.EmbeddedResource(resource=resource_contents(block))
        case ResourceLink():
            return types.ResourceLink(
                uri=utf8_text(block.uri),
                name=utf8_text(block.name),
                title=block.title and utf8_text(block.title),
                description=block.description and utf8_text(block.description),
                mime_type=block.mime_type,
                size=block.size,
            )
    return types.TextContent(text=utf8_text(block))


def resource_contents(
    found: EmbeddedResource, read: str = ""
) -> types.TextResourceContents | types.BlobResourceContents:
    """What is at an address.

    Args:
        found: What is there.
        read: The address that was read.
    """
    uri = utf8_text(found.uri or read)
    if isinstance(found.data, str):
        text = utf8_text(found.data)
        return types.TextResourceContents(uri=uri, mime_type=found.mime_type, text=text)
    blob = _base64(found.data)
    return types.BlobResourceContents(uri=uri, mime_type=found.mime_type, blob=blob)


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
