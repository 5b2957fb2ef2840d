"""Tool sets: a named selection of tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Literal

CREATED = "created:"
"""What the id of a tool begins with that is one user's alone; no name of a tool has a colon."""

OFF_ROOT = "files:root"
"""Among what a set denies: calls within it are given nothing of the root, whatever tool it is."""

DefinitionFormat = Literal["function-calling"]
"""The forms in which model APIs take definitions."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOffer:
    """What tells tools apart, without what it takes to call one.

    Attributes:
        name: Stable identifier, `[a-z0-9_]{1,64}`.
        tags: Groups it belongs to.
        aliases: Other names that reach it; accepted, not listed.
        known_as: What agents call such a tool elsewhere; reaches it where no other tool is called
            so.
        source: "builtin", "function", "function:FILE", "created", "upstream:NAME", "openapi:NAME"
            or "file".
        bare: What it is called at its own server; reaches it where no other tool is called so.
        owner: The user whose alone it is; empty of everybody's.
    """

    name: str
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    known_as: tuple[str, ...] = ()
    source: str = "builtin"
    bare: str = ""
    owner: str = ""

    @property
    def id(self) -> str:
        """What tells it from all others, those of other users too."""
        return f"{CREATED}{self.name}:{self.owner}" if self.owner else self.name

    @property
    def server(self) -> str:
        """The other server that it is a tool of; empty where it is ours."""
        kind, _, name = self.source.partition(":")
        return name if kind == "upstream" else ""

    @property
    def is_free(self) -> bool:
        """Whether code of others does the work, which may open any file of the user."""
        return bool(self.server) or self.is_function

    @property
    def is_function(self) -> bool:
        """Whether it is a function of the user's, from a function file or a package."""
        return self.source.startswith("function:")

    def goes_by(self, name: str) -> bool:
        """Whether a name means it however it is spelled, which is so of our own tools only."""
        names = (self.name, *self.aliases, *self.known_as)
        return self.source == "builtin" and folded_name(name) in map(folded_name, names)


def folded_name(name: str) -> str:
    """A tool's name without what spellings differ in: TodoWrite is todo_write."""
    return name.replace("_", "").replace("-", "").lower()


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The tools that somebody may find and call.

    A pattern is a name, `server:NAME` or `tag:TAG`; in each, * and ? stand for any characters. A
    name is any that reaches the tool, its aliases too. What a tool is called at its own server
    denies it, and allows nothing: any server can call its tools as it likes. So does what agents
    call a tool of ours elsewhere.

    Attributes:
        name: What the user calls it.
        allow: Patterns of the tools; empty means every tool.
        deny: Patterns of tools that are left out whatever is allowed.
        within: A set that they have to be in as well; None for none.
    """

    name: str
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    within: ToolSet | None = None

    @property
    def is_off_root(self) -> bool:
        """Whether calls within it are given nothing of the root."""
        return OFF_ROOT in self.deny or (self.within is not None and self.within.is_off_root)

    def admits(self, offer: ToolOffer) -> bool:
        """Whether a tool is one of them."""
        if self.within is not None and not self.within.admits(offer):
            return False
        names = (offer.name, *offer.aliases)
        if OFF_ROOT in self.deny and offer.is_free and not self.allow:  # else a person named it
            return False
        if any(
            _fits(pattern, offer, (*names, offer.bare)) or offer.goes_by(pattern)
            for pattern in self.deny
        ):
            return False
        return not self.allow or any(_fits(pattern, offer, names) for pattern in self.allow)

    def admits_server(self, server: str) -> bool:
        """Returns whether another server's resources and prompts may be seen.

        Every pattern of a server is about them too. Where only tools are allowed by their names or
        tags, the resources and prompts of the servers are not: nobody named them.
        """
        if _names_server(self.deny, server):
            return False
        if self.within is not None and not self.within.admits_server(server):
            return False
        if not self.allow:
            return OFF_ROOT not in self.deny
        return _names_server(self.allow, server)


def _fits(pattern: str, offer: ToolOffer, names: tuple[str, ...]) -> bool:
    kind, _, value = pattern.partition(":")
    match kind:
        case "server":
            return bool(offer.server) and fnmatchcase(offer.server, value)
        case "tag":  # the tags of other servers' tools are no groups of ours
            return not offer.server and any(fnmatchcase(tag, value) for tag in offer.tags)
    return any(fnmatchcase(name, pattern) for name in names)


def _names_server(patterns: tuple[str, ...], server: str) -> bool:
    return any(
        kind == "server" and fnmatchcase(server, value)
        for kind, _, value in (pattern.partition(":") for pattern in patterns)
    )
