"""Addresses of other servers: their own, or prefixed with the name of the server."""

from __future__ import annotations

SCHEME = "toolcrib://"
_OURS = ("context://", "skill://", SCHEME)


def is_ours(uri: str) -> bool:
    """Returns whether an address is reserved: `context://`, `skill://`, `toolcrib://`."""
    return uri.lower().startswith(_OURS)


def namespaced(server: str, uri: str) -> str:
    """Returns an address or template prefixed with `toolcrib://SERVER/`.

    Encodes nothing, so that a template remains valid, and so do its values.
    """
    return f"{SCHEME}{server}/{uri}"


def split(uri: str) -> tuple[str, str]:
    """Splits an address into its server and the server's own address; "" without a server."""
    if not uri.startswith(SCHEME):
        return "", uri
    server, slash, own = uri.removeprefix(SCHEME).partition("/")
    return (server, own) if slash else ("", uri)
