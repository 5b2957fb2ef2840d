"""The registry: every tool under its name, found once at the start."""

from __future__ import annotations

import importlib
import inspect
import logging
import pkgutil
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from tools.core.errors import UnknownToolError
from tools.core.function_to_mcp import FunctionToMCP
from tools.core.holdings import Holdings
from tools.core.spec import ToolSpec

__all__ = ["ENTRY_POINT_GROUP", "ToolRegistry"]

logger = logging.getLogger("toolcrib")

ENTRY_POINT_GROUP = "toolcrib.tools"
"""Where other distributions announce a module of tools, or one tool."""

SUGGESTIONS = 3
SIMILAR_ENOUGH = 60.0
"""Similarity, of 100, from which a name is worth suggesting."""
LONGEST_NAME = 128
"""Characters of an unknown name that are compared and repeated (the protocol's own limit)."""


class ToolRegistry:
    """All tools by name and alias.

    Attributes:
        changes: How often tools came or went, by which others know what they have made of them.
    """

    def __init__(self) -> None:
        self._specs: dict[str, ToolSpec] = {}
        self._owners: dict[str, ToolSpec] = {}
        self.changes = 0

    def add(self, spec: ToolSpec) -> None:
        """Adds one tool under its name and its aliases, or not at all.

        Raises:
            ValueError: If one of them is taken; it names both owners.
        """
        names = (spec.name, *spec.aliases)
        for position, name in enumerate(names):
            owner = spec if name in names[:position] else self._owners.get(name)
            if owner is not None:
                raise ValueError(
                    f"The tool name {name!r} is claimed by {_describe(spec)}, but it belongs to "
                    f"{_describe(owner)} already. Rename one of them or drop the alias."
                )
        self._specs[spec.name] = spec
        self._owners.update(dict.fromkeys(names, spec))
        self.changes += 1

    def remove_source(self, source: str) -> None:
        """Removes every tool that comes from one source."""
        for name, spec in list(self._specs.items()):
            if spec.source == source:
                del self._specs[name]
        self._owners = {name: spec for name, spec in self._owners.items() if spec.source != source}
        self.changes += 1

    def discover(self, package: ModuleType) -> None:
        """Adds the marked functions of each public module directly under a package.

        Raises:
            ToolDefinitionError: If one of them cannot be converted.
            ValueError: If two of them claim one name.
        """
        for module in pkgutil.iter_modules(package.__path__):
            if not module.ispkg and not module.name.startswith("_"):
                found = importlib.import_module(f"{package.__name__}.{module.name}")
                self._add_module(found, "builtin")

    def discover_installed(self) -> None:
        """Adds the tools that other distributions announce under `toolcrib.tools`.

        An entry point that cannot be loaded is logged and left out: somebody else's defect does not
        keep the server from starting.
        """
        for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda found: found.name):
            self._add_entry_point(entry)

    def tailor(self, holdings: Holdings) -> None:
        """Fits each tool that asks for it to what the settings name; once, before any is listed."""
        for spec in self.specs():
            if spec.tailor is not None:
                fitted = spec.tailor(spec, holdings)
                self._specs[spec.name] = fitted
                self._owners.update(dict.fromkeys((spec.name, *spec.aliases), fitted))
        self.changes += 1

    def get(self, name: str) -> ToolSpec | None:
        """The tool of that name or alias, or None."""
        return self._owners.get(name)

    def find(self, name: str) -> ToolSpec:
        """The tool of that name or alias.

        Raises:
            UnknownToolError: If there is none; it suggests up to three similar names.
        """
        spec = self._owners.get(name)
        if spec is None:
            raise UnknownToolError(
                f"No tool is called {name[:LONGEST_NAME]!r}.",
                suggestions=self._similar(name[:LONGEST_NAME]),
                next_actions=["Call a tool by its name as tools/list or search_tools gives it."],
            )
        return spec

    def specs(self) -> tuple[ToolSpec, ...]:
        """All tools, in the order of their names."""
        return tuple(sorted(self._specs.values(), key=lambda spec: spec.name))

    def description_of(self, spec: ToolSpec) -> str:
        """What a tool does, for the model; of some tools it depends on which others there are."""
        return spec.description if spec.describe is None else spec.describe(self.specs())

    def _add_module(self, module: ModuleType, source: str) -> None:
        for function in _marked_functions(module):
            self.add(FunctionToMCP.convert(function, source=source))

    def _add_entry_point(self, entry: EntryPoint) -> None:
        source = f"function:{entry.value}"
        try:
            found = entry.load()
            if inspect.ismodule(found):
                self._add_module(found, source)
            else:
                self.add(FunctionToMCP.convert(found, source=source))
        except Exception:
            logger.exception(
                "The tools of entry point %s (%s) are left out", entry.name, entry.value
            )

    def _similar(self, name: str) -> list[str]:
        from rapidfuzz import process, utils  # noqa: PLC0415  # imported on first use

        ranked = process.extract(
            name,
            sorted(self._owners),
            processor=utils.default_process,
            limit=SUGGESTIONS,
            score_cutoff=SIMILAR_ENOUGH,
        )
        return [candidate for candidate, _score, _position in ranked]


def _marked_functions(module: ModuleType) -> Iterator[Any]:
    """What `@tool` marked in this module, without what it only imports."""
    for value in vars(module).values():
        if hasattr(value, "__tool_options__") and value.__module__ == module.__name__:
            yield value


def _describe(spec: ToolSpec) -> str:
    return f"{spec.name} ({spec.source})"
