"""Depth: limits chains of Toolcribs that start one another."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from server.settings.gateway import ServerSettings

VARIABLE = "_TOOLCRIB_DEPTH"
"""The variable that tells a started server its depth; it is not a setting."""

DEEPEST = 3
"""The depth at which no other server is started."""

_logger = logging.getLogger("toolcrib")


def depth_of(environ: Mapping[str, str]) -> int:
    """Returns the number of Toolcribs above this one; `DEEPEST` if the variable is invalid."""
    said = environ.get(VARIABLE) or "0"
    return int(said) if said in map(str, range(DEEPEST)) else DEEPEST


def allowed_servers(
    servers: Mapping[str, ServerSettings], environ: Mapping[str, str]
) -> Mapping[str, ServerSettings]:
    """Returns the servers in the settings; none, with a warning, at the maximum depth."""
    if not servers or depth_of(environ) < DEEPEST:
        return servers
    _logger.warning(
        "No other server is started: %d Toolcribs already started one another in a chain."
        " Remove Toolcrib from its own [servers.NAME].",
        DEEPEST,
    )
    return {}
