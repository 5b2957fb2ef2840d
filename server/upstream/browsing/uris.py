"""Addresses of what other servers offer: their own, or with the name of the server before it."""

from __future__ import annotations

SCHEME = "toolcrib://"
_OURS = ("context://", "skill://", SCHEME)


def is_ours(uri: str) -> bool:
    """Whether no other server can have this address: `context://`, `skill://`, `toolcrib://`."""
    return uri.lower().startswith(_OURS)


def namespaced(server: str, uri: str) -> str:
    """An address or a template of one certain server: `toolcrib://SERVER/` before its own.

    Nothing is encoded, so that a template stays one and what fills it stays as it is.
    """
    return f"{SCHEME}{server}/{uri}"


def split(uri: str) -> tuple[str, str]:
    """The server that an address names and its own address there; "" where it names none."""
    if not uri.startswith(SCHEME):
        return "", uri
    server, slash, own = uri.removeprefix(SCHEME).partition("/")
    return (server, own) if slash else ("", uri)
