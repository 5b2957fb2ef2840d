"""Cursors of paged lists: how far somebody has read, opaque to clients."""

from __future__ import annotations

import base64
import binascii

import mcp_types as types
from mcp.shared.exceptions import MCPError

from server.wire import utf8_text

__all__ = ["cursor_at", "offset_of"]

CURSOR_PREFIX = "documents:"
LAST_OFFSET = 2**31
"""Beyond what a cursor of ours can say; the database counts rows in 64 bits."""


def cursor_at(offset: int) -> str:
    """The cursor of the page that starts at an offset."""
    return base64.urlsafe_b64encode(f"{CURSOR_PREFIX}{offset}".encode()).decode()


def offset_of(cursor: str | None) -> int:
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
    if not 0 < offset < LAST_OFFSET or cursor != cursor_at(offset):
        shown = utf8_text(cursor[:100])
        raise MCPError(
            types.INVALID_PARAMS,
            f"Unknown cursor {shown!r}: pass nextCursor of the page before, or none to start.",
        )
    return offset
