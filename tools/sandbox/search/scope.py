"""Which files a search is about."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Scope"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which files are searched.

    Attributes:
        path: A directory, or one file, relative to the root.
        names: Pattern of their paths, relative to that directory; empty for all.
        include_ignored: Whether those that git leaves out are searched too.
    """

    path: str = "."
    names: str = ""
    include_ignored: bool = False
