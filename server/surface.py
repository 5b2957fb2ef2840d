"""The surface: which tools a client is shown; every other one is found with `search_tools`."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from server.settings import SettingsError
from tools.core.errors import UnknownToolError
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolOffer, ToolSpec

__all__ = ["EVERYDAY", "FULL", "LEAN", "Surface"]

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

_logger = logging.getLogger("toolcrib")


class Surface:
    """The listed tools, by the settings alone: no connection and no call changes them.

    Args:
        chosen: Names of tools; "lean" stands for the everyday ones and all of the user's own
            functions, "full" for every tool there is.
    """

    def __init__(self, chosen: Sequence[str]) -> None:
        self._chosen = chosen

    def check(self, registry: ToolRegistry) -> None:
        """Refuses names that no tool has.

        Raises:
            SettingsError: With what may have been meant.
        """
        if unknown := list(self._unknown(registry)):
            raise SettingsError("\n".join(unknown))

    def select(self, registry: ToolRegistry) -> list[ToolSpec]:
        """The listed tools, in the order of their names; warns of names that no tool has."""
        for problem in self._unknown(registry):
            _logger.warning("%s", problem)
        named = {spec.name for spec in map(registry.get, self._chosen) if spec is not None}
        return [
            registry.find(each.name)
            for each in registry.offers()
            if each.name in named or self._holds(each)
        ]

    def shortens(self, spec: ToolSpec) -> bool:
        """Whether a tool is listed in its lean form: the built-in ones, unless all is wanted."""
        return spec.source == "builtin" and FULL not in self._chosen

    def _holds(self, spec: ToolOffer) -> bool:
        own = spec.source.startswith("function:")
        return FULL in self._chosen or (LEAN in self._chosen and (own or spec.name in EVERYDAY))

    def _unknown(self, registry: ToolRegistry) -> Iterator[str]:
        for name in self._chosen:
            if name not in {LEAN, FULL}:
                try:
                    registry.find(name)
                except UnknownToolError as error:
                    meant = f" Did you mean {' or '.join(error.suggestions)}?"
                    advice = meant if error.suggestions else " `toolcrib tools` lists all."
                    yield f"surface: {error.message}{advice}"
