"""Cursors of paged lists, opaque to clients."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError

from tools.core.invisible import encodable

DOCUMENTS = "documents"
"""The stored part of the list of resources; no server has this name with a slash."""

LAST_OFFSET = 2**31
"""Limit of valid offsets; the database counts rows in 64 bits."""

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Section(Generic[ItemT]):
    """A part of a list.

    Attributes:
        name: Its name in cursors.
        items: Its items.
        shown: Converts an item for the list.
    """

    name: str
    items: Sequence[ItemT]
    shown: Callable[[ItemT], ItemT]


def cursor_at(offset: int, part: str = DOCUMENTS) -> str:
    """Returns the cursor of the page that starts at an offset in a part of a list."""
    return base64.urlsafe_b64encode(f"{part}:{offset}".encode()).decode()


def place_of(cursor: str) -> tuple[str, int]:
    """Returns the part and offset at which the page of a cursor starts."""
    try:
        text = base64.b64decode(cursor, altchars=b"-_", validate=True).decode("ascii")
        part, _, number = text.rpartition(":")
        offset = int(number)
    except (binascii.Error, ValueError):
        raise _unknown(cursor) from None
    if not 0 <= offset < LAST_OFFSET or cursor != cursor_at(offset, part):
        raise _unknown(cursor)
    return part, offset


def offset_of(cursor: str | None) -> int:
    """Returns the offset in stored documents at which the page of a cursor starts."""
    if cursor is None:
        return 0
    part, offset = place_of(cursor)
    if part != DOCUMENTS or offset == 0:
        raise _unknown(cursor)
    return offset


def page(
    kind: str, sections: Sequence[Section[ItemT]], cursor: str | None, size: int
) -> tuple[list[ItemT], str | None]:
    """Returns a page of items from a cursor on, and the cursor of the next page.

    Args:
        kind: The kind of list; cursors of other kinds are invalid.
        sections: The list, in its order.
        cursor: The cursor; None starts at the beginning.
        size: Maximum number of items; with 0, only the cursor is useful.
    """
    names = [f"{kind}/{each.name}" for each in sections]
    start, offset = 0, 0
    if cursor is not None:
        part, offset = place_of(cursor)
        if part not in names:
            raise _unknown(cursor)
        start = names.index(part)
    listed: list[ItemT] = []
    for name, section in zip(names[start:], sections[start:], strict=True):
        end = offset + max(size - len(listed), 0)
        listed += map(section.shown, section.items[offset:end])
        if end < len(section.items):
            return listed, cursor_at(end, name)
        offset = 0
    return listed, None


def _unknown(cursor: str) -> MCPError:
    shown = encodable(cursor[:100])
    return MCPError(
        types.INVALID_PARAMS,
        f"Unknown cursor {shown!r}: pass nextCursor of the page before, or none to start.",
    )
