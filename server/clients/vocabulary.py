"""Words of clients' files: how a server speaks, and keys that are not taken over."""

from __future__ import annotations

__all__ = ["APPROVALS", "OF_NO_MEANING", "SIGN_IN", "TRANSPORTS"]

TRANSPORTS = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "https": "http",
    "remote": "http",
    "streamablehttp": "http",
    "sse": "sse",
}
"""What clients call how a server speaks, without case, blanks and separators."""

OF_NO_MEANING = frozenset(
    {
        "$schema",
        "description",
        "dev",
        "gallery",
        "icon",
        "name",
        "required",
        "source",
        "supports_parallel_tool_calls",
        "title",
        "version",
    }
)
"""Keys that change nothing for a server, or only for the client."""

APPROVALS = frozenset(
    {"alwaysAllow", "autoApprove", "default_tools_approval_mode", "tools", "trust"}
)
"""Keys that say what runs there without asking."""

SIGN_IN = frozenset(
    {
        "auth",
        "authProviderType",
        "authorization",
        "headersHelper",
        "oauth",
        "oauth_resource",
        "scopes",
    }
)
"""Keys that say how the client gets a token."""
