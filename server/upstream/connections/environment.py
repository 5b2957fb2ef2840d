"""The environment of other servers' programs: variables, and depth."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from server.settings.gateway import ServerSettings

VARIABLE = "_TOOLCRIB_DEPTH"
"""The variable that tells a started server its depth; it is not a setting."""

DEEPEST = 3
"""The depth at which no other server is started."""

_NAMES = {
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
}
"""In addition to the SDK's: company networks require certificates and proxies."""

_logger = logging.getLogger("toolcrib")


def inherited_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that a program inherits."""
    # Imported late: allowed_servers() needs no SDK.
    from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS

    names = _NAMES.union(DEFAULT_INHERITED_ENV_VARS)
    return {
        name: value
        for name, value in environ.items()
        if name.upper() in names or name.startswith(("LC_", "XDG_"))
        if not value.startswith("()")  # a function, which old shells would execute
    }


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
