"""Moves images, sounds and resources out of results."""

from __future__ import annotations

import copy
import dataclasses
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from io import BytesIO
from types import NoneType
from typing import Any

from pydantic import BaseModel

from tools.core.content import Attachment, EmbeddedResource, Media
from tools.core.errors import UnsendableError

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
WHOLE = frozenset({"CallToolResult", "InputRequiredResult", "ToolResult"})
LIBRARIES = frozenset({"fastmcp", "mcp", "mcp_types"})
BLOCKS = ("audio", "image", "resource", "resource_link", "text")
"""The types of content blocks (MCP 2026-07-28, ContentBlock)."""


def protocol_result(kind: object) -> str:
    """Returns the class name if its instances are complete MCP results, else "".

    These are the SDK's and FastMCP's result classes, neither of which is imported here.
    """
    for base in getattr(kind, "__mro__", ()):
        if base.__name__ in WHOLE and base.__module__.partition(".")[0] in LIBRARIES:
            return str(base.__name__)
    return ""


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
    PNG. Other objects become what they display in a notebook. A value without data raises a
    ValueError.
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
    still match the function's return type. A complete MCP result inside the value is rejected:
    pydantic would take it apart.
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
    if name := protocol_result(type(value)):
        raise UnsendableError(f"a {name} inside its result; return it by itself")
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


LEAVES = frozenset({NoneType, bool, int, float, str, bytes})
"""Types that contain nothing and are never replaced themselves."""

Change = Callable[[Any], Any]


def replaced(value: Any, change: Change, *, objects: bool = True) -> Any:
    """Applies `change` to a value or, where that changes nothing, to everything inside it.

    It looks into builtin collections, named tuples and, if `objects`, dataclasses and models.
    Without a change it returns the same object, otherwise a copy that its class does not validate
    again.
    """
    if type(value) in LEAVES:
        return value

    def inside(part: Any) -> Any:
        if type(part) in LEAVES or isinstance(part, type):
            return part
        changed = change(part)
        if changed is not part:
            return changed
        if isinstance(part, dict):
            return _dict(part, inside)
        if isinstance(part, list | tuple | set | frozenset | deque):
            return _collection(part, inside)
        return _object(part, inside) if objects else part

    return inside(value)


def _collection(values: Any, inside: Change) -> Any:
    items = _items(values, inside)
    if items is None:
        return values
    if hasattr(values, "_make"):
        return values._make(items)
    # A subclass may expect other arguments.
    kinds = (list, tuple, set, frozenset, deque)
    return next(kind for kind in kinds if isinstance(values, kind))(items)


def _dict(values: dict[Any, Any], inside: Change) -> dict[Any, Any]:
    keys, items = _items(values, inside), _items(values.values(), inside)
    if keys is None and items is None:
        return values
    return dict(zip(keys or values, items or values.values(), strict=True))


def _items(values: Collection[Any], inside: Change) -> list[Any] | None:
    """Returns the changed items, or None if all stay the same."""
    if LEAVES.issuperset(map(type, values)):
        return None
    items = [inside(value) for value in values]
    return None if all(new is old for new, old in zip(items, values, strict=True)) else items


def _object(value: Any, inside: Change) -> Any:
    if isinstance(value, BaseModel):
        fields = {**value.__dict__, **(value.__pydantic_extra__ or {})}
        changes = _changes(fields, inside)
        return value.model_copy(update=changes) if changes else value
    if not dataclasses.is_dataclass(value):
        return value
    names = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
    changes = _changes({name: getattr(value, name) for name in names}, inside)
    if not changes:
        return value
    copied = copy.copy(value)
    for name, new in changes.items():
        object.__setattr__(copied, name, new)
    return copied


def _changes(fields: dict[str, Any], inside: Change) -> dict[str, Any]:
    changed = {name: inside(field) for name, field in fields.items()}
    return {name: new for name, new in changed.items() if new is not fields[name]}
