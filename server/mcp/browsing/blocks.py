"""Content blocks and contents of resources, as the protocol has them."""

from __future__ import annotations

from base64 import b64encode

import mcp_types as types

from tools.core.content import Block, EmbeddedResource, Media, ResourceLink
from tools.core.invisible import encodable


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
    """What is at an address.

    Args:
        found: What is there.
        read: The address that was read.
    """
    uri = encodable(found.uri or read)
    if isinstance(found.data, str):
        text = encodable(found.data)
        return types.TextResourceContents(uri=uri, mime_type=found.mime_type, text=text)
    blob = _base64(found.data)
    return types.BlobResourceContents(uri=uri, mime_type=found.mime_type, blob=blob)


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
