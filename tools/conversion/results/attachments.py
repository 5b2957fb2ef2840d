"""Takes images and sounds out of results and leaves short notes in their place."""

from __future__ import annotations

from base64 import b64decode
from functools import partial
from io import BytesIO
from typing import Any

from pydantic import BaseModel

from tools.conversion.results.replacement import replaced
from tools.core.content import Attachment, EmbeddedResource, Media

NOTE: dict[str, Any] = {
    "type": "object",
    "description": "An image, a sound or a resource, which stands beside this result.",
    "properties": {
        "media": {"type": "integer", "description": "Its place among them, from 0."},
        "mime_type": {"type": "string", "description": "Its format."},
        "bytes": {"type": "integer", "description": "Its size."},
        "uri": {"type": "string", "description": "The address of a resource."},
    },
    "required": ["media", "mime_type", "bytes"],
}
"""JSON Schema of the note that replaces an attachment."""
HELPERS = ("to_image_content", "to_audio_content")
"""Methods of MCP helper classes that return their content block."""
DISPLAYS = (("_repr_png_", "image/png"), ("_repr_jpeg_", "image/jpeg"))
"""Methods with which objects display themselves in notebooks (IPython, "Rich display")."""
JPEG_MODES = frozenset({"CMYK", "L", "RGB"})
PNG_MODES = frozenset({"1", "I", "I;16", "L", "LA", "P", "RGB", "RGBA"})
BLOCKS = ("audio", "image", "resource", "resource_link", "text")
"""The types of content blocks (MCP 2026-07-28, ContentBlock)."""


def is_attachment(kind: type) -> bool:
    """Returns whether every instance of a class is an image, a sound or a resource."""
    methods = ("savefig", *HELPERS)
    return (
        issubclass(kind, Attachment)
        or _is_picture(kind)
        or any(_has(kind, method) for method in methods)
    )


def media_of(value: Any) -> Media | None:
    """Returns the image or sound that a value represents, or None.

    A Pillow picture becomes a PNG, or a JPEG if it was read from one. A matplotlib figure becomes a
    PNG. Other objects become what they display in a notebook.

    Raises:
        ValueError: If it has no data.
    """
    kind = type(value)
    if isinstance(value, type):
        return None
    if isinstance(value, Media):
        return value
    if _is_picture(kind):
        return _picture(value)
    if _has(kind, "savefig"):
        file = BytesIO()
        value.savefig(file, format="png")
        return Media.of(file.getvalue())
    for helper in HELPERS:
        if _has(kind, helper):
            return _in_block(getattr(value, helper)(), "data")
    return _display(value)


def note(found: Attachment, place: int) -> dict[str, Any]:
    """Returns the note that replaces an attachment; it matches NOTE."""
    size = len(found.data.encode() if isinstance(found.data, str) else found.data)
    noted = {"media": place, "mime_type": found.mime_type, "bytes": size}
    return {**noted, "uri": found.uri} if isinstance(found, EmbeddedResource) else noted


def without_data(value: Any, media: list[Attachment]) -> Any:
    """Moves the images and sounds of MCP content blocks in a value into `media`.

    The blocks' classes cannot be imported here. They stay models of these classes, so that they
    still match the function's return type.
    """
    return replaced(value, partial(_emptied, media=media))


def lines(value: Any) -> list[str | None]:
    """Returns the text of each content block, None for one without; [] for other values."""
    blocks = value if isinstance(value, list | tuple) else [value]
    for block in blocks:
        if not isinstance(block, BaseModel) or block.__dict__.get("type") not in BLOCKS:
            return []
    return [getattr(block, "text", None) for block in blocks]


def _emptied(value: Any, media: list[Attachment]) -> Any:
    if not isinstance(value, BaseModel):
        return value
    place = f"media {len(media)}"
    if getattr(value, "type", None) in {"image", "audio"}:
        field = "data"
    elif isinstance(getattr(value, "blob", None), str) and hasattr(value, "uri"):
        field = "blob"
    else:
        return value
    found = _in_block(value, field)
    if found is None:
        return value
    media.append(found)
    return value.model_copy(update={field: place})


def _in_block(block: Any, field: str) -> Media | None:
    """Returns the image or sound inside a content block or resource contents, or None."""
    mime_type = getattr(block, "mime_type", None) or getattr(block, "mimeType", None)
    text = getattr(block, field, None)
    if not isinstance(text, str) or not isinstance(mime_type, str):
        return None
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        return None
    if not data:
        return None
    if mime_type.startswith("image/"):
        return Media("image", data, mime_type)
    return Media("audio", data, mime_type) if mime_type.startswith("audio/") else None


def _is_picture(kind: type) -> bool:
    return any(base.__module__ == "PIL.Image" and base.__name__ == "Image" for base in kind.__mro__)


def _picture(image: Any) -> Media:
    file = BytesIO()
    if image.format == "JPEG" and image.mode in JPEG_MODES:
        image.save(file, "JPEG", quality="keep")
    else:
        drawn = image if image.mode in PNG_MODES else image.convert("RGB")
        drawn.save(file, "PNG", save_all=getattr(image, "is_animated", False))
    return Media.of(file.getvalue())


def _display(value: Any) -> Media | None:
    for method, mime_type in DISPLAYS:
        if _has(type(value), method):
            shown = getattr(value, method)()
            data = shown[0] if isinstance(shown, tuple) else shown  # the rest is metadata
            if data:
                data = b64decode(data) if isinstance(data, str) else bytes(data)
                return Media("image", data, mime_type)
    return None


def _has(kind: type, method: str) -> bool:
    return callable(getattr(kind, method, None))
