"""Depth: how many Toolcribs have started one another, so that none starts itself for ever."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from server.settings.gateway import ServerSettings

VARIABLE = "_TOOLCRIB_DEPTH"
"""Tells a program that another server runs as how deep it is; no setting, as nobody sets it."""

DEEPEST = 3
"""Here no other server is started any more."""

_logger = logging.getLogger("toolcrib")


def depth_of(environ: Mapping[str, str]) -> int:
    """How many Toolcribs stand before the one with this environment, `DEEPEST` if it is unclear."""
    said = environ.get(VARIABLE) or "0"
    return int(said) if said in map(str, range(DEEPEST)) else DEEPEST


def allowed_servers(
    servers: Mapping[str, ServerSettings], environ: Mapping[str, str]
) -> Mapping[str, ServerSettings]:
    """The servers of the settings; none, which is logged, where this one was started too deep."""
    if not servers or depth_of(environ) < DEEPEST:
        return servers
    _logger.warning(
        "No other server is started: this Toolcrib was started by %d others, one behind the other."
        " Take Toolcrib out of its own [servers.NAME].",
        DEEPEST,
    )
    return {}
