"""Logs: what other servers log, on its way to the client."""

from __future__ import annotations

from typing import Any, get_args

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

__all__ = ["MOST_AT_ONCE", "hears", "is_heard", "named", "opted_level"]

MOST_AT_ONCE = 64
"""Messages of one connection on their way to a slow client; more are left out."""

_LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)
"""From debug to emergency (RFC 5424)."""


def is_heard(level: types.LoggingLevel, floor: types.LoggingLevel | None) -> bool:
    """Whether a message of a level is heard from a floor on; without a floor each is."""
    return floor is None or _LEVELS.index(level) >= _LEVELS.index(floor)


def opted_level(ctx: ServerRequestContext[Any, Any]) -> types.LoggingLevel | None:
    """From which level on a request of protocol 2026-07-28 wants to hear; None means nothing."""
    level = (ctx.meta or {}).get(types.LOG_LEVEL_META_KEY)
    return next((each for each in _LEVELS if each == level), None)


def hears(
    ctx: ServerRequestContext[Any, Any],
    level: types.LoggingLevel,
    floor: types.LoggingLevel | None,
) -> bool:
    """Whether the client of a request wants a message of a level.

    Args:
        ctx: The request.
        level: That of the message.
        floor: What the client said with `logging/setLevel` (protocols until 2025-11-25).
    """
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        opted = opted_level(ctx)
        return opted is not None and is_heard(level, opted)
    return is_heard(level, floor)


def named(
    server: str, params: types.LoggingMessageNotificationParams
) -> types.LoggingMessageNotification:
    """A message that says which server logs it."""
    logger = f"{server}/{params.logger}" if params.logger else server
    return types.LoggingMessageNotification(
        params=types.LoggingMessageNotificationParams(
            level=params.level, logger=logger, data=params.data
        )
    )
