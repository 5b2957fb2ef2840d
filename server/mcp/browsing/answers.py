"""Answers about resources and prompts: pages of lists, completions, and errors."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tools.core.unicode_safety import encodable

PAGE_SIZE = 100
"""Items on a page."""

LAST_OFFSET = 2**31
"""Limit of valid offsets; the database counts rows in 64 bits."""

COMPLETIONS = 100
"""Maximum number of completion values, by the protocol."""

RESOURCE_NOT_FOUND = -32002
"""Error code of protocols up to 2025-11-25; 2026-07-28 uses invalid params (SEP-2164)."""

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Section(Generic[ItemT]):
    """A part of a list."""

    name: str  # in cursors; unique in the list
    part: Callable[[int, int], Awaitable[tuple[Sequence[ItemT], bool]]]
    """Returns at most so many items from an offset on, and whether more follow."""

    @classmethod
    def of(
        cls, name: str, items: Sequence[ItemT], shown: Callable[[ItemT], ItemT] | None = None
    ) -> Self:
        """Makes a section of these items, converted for the list where they are shown."""

        async def part(offset: int, most: int) -> tuple[Sequence[ItemT], bool]:
            end = offset + most
            found = items[offset:end]
            return found if shown is None else [*map(shown, found)], end < len(items)

        return cls(name, part)


async def page(
    kind: str,
    loads: Iterable[Callable[[], Awaitable[Sequence[Section[ItemT]]]]],
    params: types.PaginatedRequestParams | None,
    size: int = PAGE_SIZE,
) -> tuple[list[ItemT], str | None]:
    """Returns the requested page of items, and the cursor of the next one.

    Cursors of other kinds of lists are invalid. `loads` return the sections of the list in its
    order, and are called only if a page gets that far.
    """
    cursor = None if params is None else params.cursor
    start, offset = ("", 0) if cursor is None else _place_of(cursor)
    listed: list[ItemT] = []
    for load in loads:
        for section in await load():
            name = f"{kind}/{section.name}"
            if start not in {"", name}:
                continue
            start, room = "", size - len(listed)
            items, more = await section.part(offset, room)
            listed += items
            if more:
                return listed, _cursor_at(offset + room, name)
            offset = 0
    if start:
        raise _unknown(cursor or "")
    return listed, None


def _cursor_at(offset: int, section: str) -> str:
    return base64.urlsafe_b64encode(f"{section}:{offset}".encode()).decode()


def _place_of(cursor: str) -> tuple[str, int]:
    """Returns the section and the offset at which the page of a cursor starts."""
    try:
        text = base64.b64decode(cursor, altchars=b"-_", validate=True).decode("ascii")
        section, _, number = text.rpartition(":")
        offset = int(number)
    except (binascii.Error, ValueError):
        raise _unknown(cursor) from None
    if not (section and 0 <= offset < LAST_OFFSET) or cursor != _cursor_at(offset, section):
        raise _unknown(cursor)
    return section, offset


def _unknown(cursor: str) -> MCPError:
    shown = encodable(cursor[:100])
    return MCPError(
        types.INVALID_PARAMS,
        f"Unknown cursor {shown!r}: pass nextCursor of the page before, or none to start.",
    )


def no_resource_at(uri: str, ctx: ServerRequestContext[Any, Any]) -> MCPError:
    """Builds the error for an unknown resource, with the code of the client's protocol."""
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    code = types.INVALID_PARAMS if modern else RESOURCE_NOT_FOUND
    shown = encodable(uri)
    return MCPError(code, f"Resource not found: {shown}", {"uri": shown})


def completion_of(values: Sequence[str]) -> types.CompleteResult:
    """Builds a completion with as many values as the protocol allows."""
    completion = types.Completion(
        values=list(map(encodable, values[:COMPLETIONS])),
        total=len(values),
        has_more=len(values) > COMPLETIONS,
    )
    return types.CompleteResult(completion=completion)
