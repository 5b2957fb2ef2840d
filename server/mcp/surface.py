"""The surface: the tools listed for clients; all others are found with `search_tools`."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import mcp_types as types

from server.mcp.definitions import describe, hints, lean
from server.mcp.profiles import Profile
from server.mcp.sessions import Variant
from server.mcp.wire import result_form, wire_form
from server.settings_file import SettingsError
from tools.conversion.naming import SEPARATOR
from tools.conversion.schema_reading import without_null_unions
from tools.core.calling.call import ResultLimits
from tools.core.errors import UnknownToolError
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec
from tools.core.toolset import ToolOffer, ToolSet

if TYPE_CHECKING:  # servers of one's own have no settings
    from server.settings.gateway import ProfileSettings, ServerSettings

LEAN = "lean"
FULL = "full"

EVERYDAY = frozenset(
    {
        "add_document",
        "add_event",
        "bash",
        "call_tool",
        "describe_tool",
        "edit_file",
        "grep",
        "list_directory",
        "query",
        "read_file",
        "remember",
        "run_code",
        "search_tools",
        "write_file",
    }
)
"""The built-in tools that every session lists."""

REACHING = frozenset({"call_tool", "call_tools", "describe_tool", "search_tools"})
"""The tools that give access to all others."""

CHARACTERS_PER_TOKEN = 4

ENVELOPE = len('{"tools":[]}')

_logger = logging.getLogger("toolcrib")


class Surface:
    """The listed tools, which depend on the settings alone: no connection or call changes them.

    Args:
        chosen: Names of tools, `server:NAME` or `tag:TAG`, as in a profile; "lean" means the
         everyday tools and all functions of the user, "full" all tools.
        servers: The other servers, which determine the listed names of their tools.
        profiles: The profiles, whose pinned names may be listed too.
        limits: The limits of results, which some definitions state; None for results of any size.
    """

    def __init__(
        self,
        chosen: Sequence[str],
        servers: Mapping[str, ServerSettings] | None = None,
        profiles: Mapping[str, ProfileSettings] | None = None,
        limits: ResultLimits | None = None,
    ) -> None:
        self._chosen = chosen
        self.limits = limits
        self._named = [each for each in chosen if each not in {LEAN, FULL}]
        self.follow(servers or {}, profiles or {})

    def follow(
        self, servers: Mapping[str, ServerSettings], profiles: Mapping[str, ProfileSettings]
    ) -> None:
        """Replaces the other servers and the profiles."""
        self._unprefixed = [name for name, each in servers.items() if not each.prefix]
        pinned = [name for each in profiles.values() for name in each.pinned]
        self._may_name = [*self._named, *pinned]

    def check(self, registry: ToolRegistry) -> None:
        """Rejects names that no tool has."""
        if unknown := list(_unknown(self._named, registry, "surface")):
            raise SettingsError("\n".join(unknown))

    @property
    def lists_all(self) -> bool:
        """Whether every tool is listed, including those that agents create later."""
        return FULL in self._chosen

    def may_list_servers(self, registry: ToolRegistry) -> bool:
        """Returns whether tools of other servers may be listed, so that the list changes with them.

        The list may change with them while this process runs.
        """

        def may_name(name: str) -> bool:
            found = registry.get(name)
            return _is_pattern(name) or found is None or bool(found.server)

        return self.lists_all or any(map(may_name, self._may_name))

    def may_list(self, server: str, registry: ToolRegistry) -> bool:
        """Returns whether tools of a server that are still unknown may be listed."""

        def may_name(name: str) -> bool:
            kind, _, value = name.rpartition(":")
            if kind == "server":
                return fnmatchcase(server, value)
            first, separator, _ = name.partition(SEPARATOR)
            if separator and not kind:
                return fnmatchcase(server, first)
            return _is_pattern(name) or registry.get(name) is None

        return self.lists_all or any(map(may_name, self._may_name))

    def select(
        self, registry: ToolRegistry, tool_set: ToolSet | None = None, pinned: Sequence[str] = ()
    ) -> list[ToolSpec]:
        """Returns the listed tools of a set, and the pinned ones, ordered by name.

        Warns of names that no tool has.
        """
        for problem in _unknown(self._named, registry, "surface"):
            _logger.warning("%s", problem)
        if tool_set is not None:
            for problem in _unknown(pinned, registry, f"profiles.{tool_set.name}.pinned"):
                _logger.warning("%s", problem)
        found = map(registry.get, (*self._named, *pinned))
        named = {spec.name for spec in found if spec is not None}
        return [
            registry.find(each.name)
            for each in registry.offers(tool_set)
            if each.name in named or self._holds(each)
        ]

    def name_of(self, spec: ToolSpec, registry: ToolRegistry) -> str:
        """Returns a tool's listed name, accepted in calls; rules use its full name."""
        is_kept = spec.server in self._unprefixed and spec.name.endswith(f"__{spec.bare}")
        return spec.bare if is_kept and registry.get(spec.bare) is spec else spec.name

    def shortens(self, spec: ToolSpec) -> bool:
        """Returns whether a tool is listed in lean form: the built-in ones, unless full is set."""
        return spec.source == "builtin" and not self.lists_all

    def _holds(self, spec: ToolOffer) -> bool:
        is_lean = spec.is_function or spec.name in EVERYDAY
        if FULL in self._chosen or (LEAN in self._chosen and is_lean):
            return True
        patterns = tuple(filter(_is_pattern, self._named))
        return bool(patterns) and ToolSet("surface", patterns).admits(spec)


def _is_pattern(name: str) -> bool:
    return not {"*", "?", ":"}.isdisjoint(name)


def _unknown(names: Sequence[str], registry: ToolRegistry, setting: str) -> Iterator[str]:
    for name in names:
        if not _is_pattern(name):
            try:
                registry.find(name)
            except UnknownToolError as error:
                meant = f" Did you mean {' or '.join(error.suggestions)}?"
                advice = meant if error.suggestions else " `toolcrib tools` lists all tools."
                yield f"{setting}: {error.message}{advice}"


class ToolLists:
    """Lists the tools of the surface that a profile admits.

    Each list is read from the registry once and then cached: protocol 2026-07-28 requires that
    calls do not change it. It changes only with function files, other servers and created tools.
    """

    def __init__(
        self, registry: ToolRegistry, surface: Surface, ready: Callable[[], Awaitable[None]]
    ) -> None:
        self._registry = registry
        self._surface = surface
        self._ready = ready
        self._taken: dict[tuple[Profile | None, Variant, str], list[types.Tool]] = {}
        self._own: frozenset[str] | None = None

    async def of(
        self, profile: Profile | None, variant: Variant, user_id: str = ""
    ) -> list[types.Tool]:
        """Returns the definitions, ordered by name; without a profile, of all listed tools.

        Tools created for other users are not listed.
        """
        key = profile, variant, user_id
        if key not in self._taken:
            await self._ready()
        if key not in self._taken:  # not filled by another task meanwhile
            self._taken[key] = self._take(profile, variant, self._registry.of(user_id))
        return self._taken[key]

    def forget(self) -> None:
        """Clears the lists, because the tools have changed."""
        self._taken.clear()

    def _take(
        self, profile: Profile | None, variant: Variant, registry: ToolRegistry
    ) -> list[types.Tool]:
        if profile is None:
            shown = self._select(registry)
            return [self._definition(each, None, variant, registry) for each in shown]
        shown = self._select(registry, profile.tool_set, profile.pinned)
        if not profile.token_budget:
            return [self._definition(each, profile.tool_set, variant, registry) for each in shown]
        fitting = {each.name: each for each in self._fitting(shown, profile, variant, registry)}
        return [fitting[each.name] for each in shown if each.name in fitting]

    def _select(
        self, registry: ToolRegistry, tool_set: ToolSet | None = None, pinned: Sequence[str] = ()
    ) -> list[ToolSpec]:
        """Returns the tools of the surface; of our own, only those present at the first list."""
        if self._own is None:
            here = (each for each in self._registry.offers() if not _comes_and_goes(each))
            self._own = frozenset(each.name for each in here)
        shown = self._surface.select(registry, tool_set, pinned)
        return [each for each in shown if _comes_and_goes(each) or each.name in self._own]

    def _fitting(
        self, shown: Sequence[ToolSpec], profile: Profile, variant: Variant, registry: ToolRegistry
    ) -> Iterator[types.Tool]:
        """Yields the pinned tools, and of the others those within the budget, in order.

        The tools that find all others come first, so that what does not fit can be found.
        """
        pinned = {spec.name for spec in map(registry.get, profile.pinned) if spec}
        ranks = (pinned, REACHING, EVERYDAY)
        room = profile.token_budget * CHARACTERS_PER_TOKEN - ENVELOPE
        for spec in sorted(shown, key=lambda each: [each.name not in rank for rank in ranks]):
            definition = self._definition(spec, profile.tool_set, variant, registry)
            size = _size(definition)
            if spec.name in pinned or size <= room:
                room -= size
                yield definition

    def _definition(
        self, spec: ToolSpec, tool_set: ToolSet | None, variant: Variant, registry: ToolRegistry
    ) -> types.Tool:
        described = replace(spec, description=registry.description_of(spec, tool_set))
        name = self._surface.name_of(spec, registry)
        listed = describe(described).model_copy(update={"name": name})
        if self._surface.shortens(spec):
            listed = lean(listed)
        changed: dict[str, Any] = {}
        may_last = spec.may_become_job or spec.is_proxy
        is_kept = bool(may_last and not spec.server)  # then the first answer may be a task
        form = result_form(spec, variant, lists_all=self._surface.lists_all)
        if is_kept or form == "text":
            changed["output_schema"] = None
        if not variant.nulls:
            changed["input_schema"] = without_null_unions(listed.input_schema)
        limits = self._surface.limits
        most = None if limits is None else limits.of(spec.name, tool_set)
        if variant.hints and (told := hints(spec, most)):
            changed["meta"] = {**(listed.meta or {}), **told}
        return listed.model_copy(update=changed)


def _comes_and_goes(offer: ToolOffer) -> bool:
    """Returns whether an offer can appear or disappear at run time."""
    return bool(offer.server or offer.owner) or offer.is_function


def _size(definition: types.Tool) -> int:
    """Returns the length of a definition in a list as compact JSON, with the following comma."""
    return len(json.dumps(wire_form(definition), separators=(",", ":"), ensure_ascii=False)) + 1
