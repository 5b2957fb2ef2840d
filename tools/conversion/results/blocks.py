"""Converts results that are nothing but content to content blocks."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from tools.conversion.results.attachments import BLOCKS, NOTE
from tools.core.content import Attachment, Block, EmbeddedResource, ResourceLink


def blocks_of(value: Any, clean: Any, media: Sequence[Attachment]) -> tuple[Block, ...]:
    """Returns the content blocks of a value, or () if any part of it is not content.

    Content is an image, a sound, a resource, a link, an MCP content block, or a list of these and
    texts.

    Args:
        value: What the function returned.
        clean: The same value as JSON, with notes instead of images and sounds.
        media: Those images and sounds, and resources.
    """
    is_list = isinstance(value, list | tuple) and isinstance(clean, list)
    values, forms = (value, clean) if is_list else ([value], [clean])
    if all(isinstance(each, str) for each in values):
        return ()
    blocks: list[Block] = []
    for each, form in zip(values, forms, strict=True):
        block = _block(each, form, media)
        if block is None:
            return ()
        blocks.append(block)
    return tuple(blocks)


def _block(value: Any, form: Any, media: Sequence[Attachment]) -> Block | None:
    match value, form:
        case str(), str(text):
            return text
        case EmbeddedResource() | ResourceLink(), _:
            block: Block = value
            return block
        case BaseModel(), {"type": kind} if kind in BLOCKS:
            return _of_protocol(value, form, media)
        case dict(), _:
            return None
        case _, {"media": int(place)} if form.keys() == set(NOTE["required"]):
            return media[place]
    return None


def _of_protocol(value: Any, form: Any, media: Sequence[Attachment]) -> Block | None:
    """Converts an MCP content block, whose class cannot be imported here."""
    match value.type:
        case "text":
            return str(form["text"])
        case "image" | "audio":
            noted = str(form.get("data", "")).removeprefix("media ")
            return media[int(noted)] if noted.isdecimal() else None
        case "resource":
            return _contents(value.resource)
    return ResourceLink(
        uri=str(value.uri),
        name=value.name,
        title=value.title,
        description=value.description,
        mime_type=_mime_type(value),
        size=value.size,
    )


def _contents(found: Any) -> EmbeddedResource:
    text = getattr(found, "text", None)
    data = b64decode(found.blob) if text is None else text
    return EmbeddedResource(str(found.uri), data, _mime_type(found) or "")


def _mime_type(block: Any) -> str | None:
    """Returns a block's format under the attribute name of either SDK generation."""
    given: dict[str, Any] = vars(block)
    found: str | None = given.get("mime_type") or given.get("mimeType")
    return found
