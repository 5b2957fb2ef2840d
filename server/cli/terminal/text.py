"""Text for a person's terminal, whatever stands in it."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from server.mcp.visible import visible

__all__ = ["console", "say"]


def console() -> Console:
    """Where progress and complaints are shown: stderr, so that a command's output can be piped."""
    return Console(stderr=True)


def say(where: Console, line: str, style: str = "") -> None:
    """Prints one line as it is: not wrapped, and nothing in it taken for markup."""
    where.print(Text(visible(line), style), soft_wrap=True)
