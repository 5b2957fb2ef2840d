"""The surface: which tools a client is shown; every other one is found with `search_tools`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from server.settings import SettingsError
from tools.core.errors import UnknownToolError
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec
from tools.core.toolset import ToolOffer, ToolSet

__all__ = ["EVERYDAY", "FULL", "LEAN", "REACHING", "Surface"]

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
        "search_tools",
        "write_file",
    }
)
"""The built-in tools that are worth their place in every session of every model."""

REACHING = frozenset({"call_tool", "call_tools", "describe_tool", "search_tools"})
"""Those of them through which every other tool is reached."""

_logger = logging.getLogger("toolcrib")


class Surface:
    """The listed tools, by the settings alone: no connection and no call changes them.

    Args:
        chosen: Names of tools, `server:NAME` or `tag:TAG`, as in a profile; "lean" stands for the
            everyday ones and all of the user's own functions, "full" for every tool there is.
    """

    def __init__(self, chosen: Sequence[str]) -> None:
        self._chosen = chosen
        self._named = [each for each in chosen if each not in {LEAN, FULL}]

    def check(self, registry: ToolRegistry) -> None:
        """Refuses names that no tool has.

        Raises:
            SettingsError: With what may have been meant.
        """
        if unknown := list(_unknown(self._named, registry, "surface")):
            raise SettingsError("\n".join(unknown))

    def may_list_servers(self, registry: ToolRegistry, pinned: Iterable[str] = ()) -> bool:
        """Whether tools of other servers may be listed, so that the list changes with them.

        Args:
            registry: The tools that there are without other servers.
            pinned: Names that profiles add.
        """
        names = (*self._named, *pinned)
        unknown = any(_is_pattern(each) or registry.get(each) is None for each in names)
        return FULL in self._chosen or unknown

    def select(
        self,
        registry: ToolRegistry,
        tool_set: ToolSet | None = None,
        pinned: Sequence[str] = (),
    ) -> list[ToolSpec]:
        """The listed tools, in the order of their names; warns of names that no tool has.

        Args:
            registry: All tools.
            tool_set: Those that may be listed; None means all.
            pinned: Names of more that are listed.
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

    def shortens(self, spec: ToolSpec) -> bool:
        """Whether a tool is listed in its lean form: the built-in ones, unless all is wanted."""
        return spec.source == "builtin" and FULL not in self._chosen

    def _holds(self, spec: ToolOffer) -> bool:
        own = spec.source.startswith("function:")
        if FULL in self._chosen or (LEAN in self._chosen and (own or spec.name in EVERYDAY)):
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
                advice = meant if error.suggestions else " `toolcrib tools` lists all."
                yield f"{setting}: {error.message}{advice}"
