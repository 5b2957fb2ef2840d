"""What the server says of itself: which of its lists change while it runs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server

__all__ = ["CribServer"]


class CribServer(Server[Any]):
    """The SDK's server, which else says of every list the same.

    Attributes:
        changing: Which of its lists change: of tools, prompts and resources.
    """

    changing: Collection[str] = ()

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        """What it can do, as the SDK finds it, with the lists that change."""
        said = super().get_capabilities(
            notification_options,
            experimental_capabilities,
            extensions,
            protocol_version=protocol_version,
        )
        for kind in ("tools", "prompts", "resources"):
            getattr(said, kind).list_changed = kind in self.changing
        return said
