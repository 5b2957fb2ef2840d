"""The variables that other servers' programs inherit: those that say where and how, no keys."""

from __future__ import annotations

from collections.abc import Mapping

from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS

__all__ = ["inherited"]

_NAMES = {
    *DEFAULT_INHERITED_ENV_VARS,
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
"""Without its certificates and its proxy, a program of a company's machine reaches nothing."""


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """What a program is given of an environment."""
    return {
        name: value
        for name, value in environ.items()
        if name.upper() in _NAMES or name.startswith(("LC_", "XDG_"))
        if not value.startswith("()")  # a function, which old shells would run
    }
