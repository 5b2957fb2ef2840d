"""Finds the tools that fit a need among thousands; usable alone, as a library."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tools.retrieval.index import ToolIndex
    from tools.retrieval.models import SearchQuery, SearchResult, ToolRecord

__all__ = ["SearchQuery", "SearchResult", "ToolIndex", "ToolRecord"]

_HOMES = {
    "SearchQuery": "models",
    "SearchResult": "models",
    "ToolIndex": "index",
    "ToolRecord": "models",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401  # whatever the module holds
    """Imports a public name on first use, so that importing the package loads nothing."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
