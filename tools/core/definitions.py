"""Lists of tools in the forms that model APIs take, by group."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

__all__ = ["GROUPS", "DefinitionFormat"]

DefinitionFormat = Literal["function-calling"]

_RETRIEVAL = ("retrieve_document_context", "retrieve_knowledge_context", "retrieve_event_context")
_PROFILE = ("retrieve_profile_context", "profile_entity_tool")
_WEB_SEARCH = ("web_search",)

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "CONTEXT_RETRIEVAL_TOOLS": _RETRIEVAL,
        "ALL_PROFILE_TOOL_DEFINITIONS": _PROFILE,
        "WEB_SEARCH_TOOL_DEFINITION": _WEB_SEARCH,
        "ALL_RETRIEVAL_TOOL_DEFINITIONS": _RETRIEVAL,
        "ALL_TOOL_DEFINITIONS": (*_RETRIEVAL, *_PROFILE, *_WEB_SEARCH),
    }
)
"""The tools of an agentic search over stored context, by the list that they are in."""
