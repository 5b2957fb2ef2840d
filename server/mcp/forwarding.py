"""Forwards `_meta` and logs between clients and the servers behind us."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

SERVER_KEY = "toolcrib/server"
"""The `_meta` key of listed items for their server."""

MOST_AT_ONCE = 64
"""Maximum number of pending messages to a slow client; more are dropped."""

_LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)
"""From debug to emergency (RFC 5424)."""

_BETWEEN_NEIGHBOURS = "io.modelcontextprotocol/"
"""Prefix of `_meta` keys that concern only two neighbours (schema 2026-07-28)."""

_PROGRESS = frozenset({"progressToken", "progress_token"})

ResultT = TypeVar("ResultT", bound=types.Result)


def asks_for_progress(meta: Mapping[str, Any] | None) -> bool:
    """Returns whether the sender of a request wants progress reports."""
    return not _PROGRESS.isdisjoint(meta or {})


def forwarded(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the entries that concern the other end."""
    return {
        key: value
        for key, value in (meta or {}).items()
        if key not in _PROGRESS and not key.startswith(_BETWEEN_NEIGHBOURS)
    }


def with_forwarded_meta(result: ResultT) -> ResultT:
    """Returns another server's result with filtered metadata, as if it came from here."""
    if not result.meta:
        return result
    return result.model_copy(update={"meta": forwarded(result.meta) or None})


def is_logged(level: types.LoggingLevel, floor: types.LoggingLevel | None) -> bool:
    """Returns whether a level is at or above a floor; without a floor every level is."""
    return floor is None or _LEVELS.index(level) >= _LEVELS.index(floor)


def opted_level(ctx: ServerRequestContext[Any, Any]) -> types.LoggingLevel | None:
    """Returns the minimum level that a request of protocol 2026-07-28 wants; None for no logs."""
    level = (ctx.meta or {}).get(types.LOG_LEVEL_META_KEY)
    return next((each for each in _LEVELS if each == level), None)


def wants_log(
    ctx: ServerRequestContext[Any, Any], level: types.LoggingLevel, floor: types.LoggingLevel | None
) -> bool:
    """Returns whether the client of a request wants a message of a level.

    Args:
        floor: The client's level from `logging/setLevel` (protocols until 2025-11-25).
    """
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        opted = opted_level(ctx)
        return opted is not None and is_logged(level, opted)
    return is_logged(level, floor)


def log_from(
    server: str, params: types.LoggingMessageNotificationParams
) -> types.LoggingMessageNotification:
    """Prefixes a log message with the name of its server."""
    logger = f"{server}/{params.logger}" if params.logger else server
    return types.LoggingMessageNotification(
        params=types.LoggingMessageNotificationParams(
            level=params.level, logger=logger, data=params.data
        )
    )
