"""Defines tool sets: named selections of tools."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Literal

from storage.index.bounded import BoundedDict
from tools.core.errors import RateLimitedError

CREATED = "created:"
"""The prefix of the ids of created tools, which belong to one user; tool names have no colon."""

OFF_ROOT = "files:root"
"""A denial that keeps all calls in the set from the root's files, whatever the tool."""

DefinitionFormat = Literal["function-calling"]
"""The definition formats of model APIs."""

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
"""The tools of an agentic search over stored context, by list name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOffer:
    """The identity of a tool, without what is needed to call it."""

    name: str  # stable identifier, `[a-z0-9_]{1,64}`
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()  # other accepted names, which are not listed
    # Its names in other agents, accepted if no other tool has them.
    aliases_elsewhere: tuple[str, ...] = ()
    # "builtin", "function", "function:FILE", "created", "upstream:NAME", "openapi:NAME" or "file".
    source: str = "builtin"
    bare: str = ""  # its name on its own server, accepted if no other tool has it
    owner: str = ""  # the user it belongs to; empty for everybody's

    @property
    def id(self) -> str:
        """Its unique id, including among other users' tools."""
        return f"{CREATED}{self.name}:{self.owner}" if self.owner else self.name

    @property
    def server(self) -> str:
        """The other server it belongs to; empty for our own tools."""
        kind, _, name = self.source.partition(":")
        return name if kind == "upstream" else ""

    @property
    def is_free(self) -> bool:
        """Returns whether foreign code does the work, which can open any file of the user."""
        return bool(self.server) or self.is_function

    @property
    def is_function(self) -> bool:
        """Returns whether it is a user's function, from a function file or a package."""
        return self.source.startswith("function:")

    def goes_by(self, name: str) -> bool:
        """Returns whether one of our own tools has this name in any spelling."""
        names = (self.name, *self.aliases, *self.aliases_elsewhere)
        return self.source == "builtin" and folded_name(name) in map(folded_name, names)


def folded_name(name: str) -> str:
    """Returns a tool's name in the form shared by spellings such as TodoWrite and todo_write."""
    return name.replace("_", "").replace("-", "").lower()


class CallLimits:
    """Limits the calls of a server's tools, or of a profile's clients; 0 sets no limit."""

    MOST_CONVERSATIONS = 10_000

    def __init__(self, owner: str, *, per_minute: int, per_conversation: int) -> None:
        self._owner = owner  # the table of the settings
        self._per_minute = per_minute
        self._per_conversation = per_conversation
        self._times: deque[float] = deque()
        self._counts: BoundedDict[str, int] = BoundedDict(self.MOST_CONVERSATIONS)

    def take(self, conversation: str) -> None:
        """Counts a call; raises RateLimitedError if there were too many."""
        now, count = time.monotonic(), self._counts.get(conversation, 0)
        while self._times and self._times[0] <= now - 60:
            self._times.popleft()
        if self._per_conversation and count >= self._per_conversation:
            raise self._reached(
                f"{self._per_conversation} in a conversation",
                "per_conversation",
                "Continue with what you have.",
            )
        if self._per_minute and len(self._times) >= self._per_minute:
            wait = math.ceil(self._times[0] + 60 - now)
            raise self._reached(
                f"{self._per_minute} in a minute", "per_minute", f"Retry in {wait} seconds."
            )
        if self._per_minute:
            self._times.append(now)
        if self._per_conversation:
            self._counts[conversation] = count + 1

    def _reached(self, limit: str, setting: str, remedy: str) -> RateLimitedError:
        return RateLimitedError(
            f"The call was not made: [{self._owner}] allows {limit}.",
            next_actions=[
                remedy,
                f"If more are needed, the user can raise {self._owner}.{setting}.",
            ],
        )


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The tools that a caller may find and call.

    A pattern is a name, `server:NAME` or `tag:TAG`; * and ? match any characters. A name may be any
    accepted name of the tool, including aliases. A bare name from another server, or one of our
    tool's names in other agents, can deny but not allow: any server can name its tools as it likes.
    """

    name: str
    allow: tuple[str, ...] = ()  # patterns of the tools; empty means every tool
    deny: tuple[str, ...] = ()  # patterns of tools that are excluded even if allowed
    within: ToolSet | None = None  # a set that tools must belong to as well, or None
    limits: CallLimits | None = None  # on all calls in the set
    result_tokens: int | None = None  # maximum of one result; None for that of the settings

    @property
    def is_off_root(self) -> bool:
        """Returns whether calls in the set have no access to the root."""
        return OFF_ROOT in self.deny or (self.within is not None and self.within.is_off_root)

    def take(self, conversation: str) -> None:
        """Counts a call; raises RateLimitedError if a limit is reached."""
        if self.within is not None:
            self.within.take(conversation)
        if self.limits is not None:
            self.limits.take(conversation)

    def admits(self, offer: ToolOffer) -> bool:
        """Returns whether the set contains a tool."""
        if self.within is not None and not self.within.admits(offer):
            return False
        names = (offer.name, *offer.aliases)
        if OFF_ROOT in self.deny and offer.is_free and not self.allow:  # else the user named it
            return False
        if any(
            _fits(pattern, offer, (*names, offer.bare)) or offer.goes_by(pattern)
            for pattern in self.deny
        ):
            return False
        return not self.allow or any(_fits(pattern, offer, names) for pattern in self.allow)

    def admits_server(self, server: str) -> bool:
        """Returns whether another server's resources and prompts are visible.

        Server patterns apply to them too. A set that only allows tools by name or tag excludes all
        resources and prompts of servers.
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
        case "tag":  # other servers' tags are not our groups
            return not offer.server and any(fnmatchcase(tag, value) for tag in offer.tags)
    return any(fnmatchcase(name, pattern) for name in names)


def _names_server(patterns: tuple[str, ...], server: str) -> bool:
    return any(
        kind == "server" and fnmatchcase(server, value)
        for kind, _, value in (pattern.partition(":") for pattern in patterns)
    )
