"""The registry: every tool under its name, found once at the start."""

from __future__ import annotations

import importlib
import inspect
import logging
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from tools.core.conversion.naming import tool_name
from tools.core.errors import UnknownToolError
from tools.core.function_to_mcp import FunctionToMCP
from tools.core.holdings import Holdings
from tools.core.spec import MARK, ToolOffer, ToolOptions, ToolSpec

__all__ = ["ENTRY_POINT_GROUP", "ToolRegistry"]

logger = logging.getLogger("toolcrib")

ENTRY_POINT_GROUP = "toolcrib.tools"
"""Where other distributions announce a module of tools, or one tool."""

SUGGESTIONS = 3
SIMILAR_ENOUGH = 60.0
"""Similarity, of 100, from which a name is worth suggesting."""
LONGEST_NAME = 128
"""Characters of an unknown name that are compared and repeated (the protocol's own limit)."""


@dataclass(frozen=True, slots=True)
class _Unconverted:
    """A built-in tool that nobody has asked for yet.

    Attributes:
        function: What it is made of.
        name: What it is called by.
        aliases: Other names that reach it.
        tags: Groups it belongs to.
        source: Where it comes from.
    """

    function: Callable[..., Any]
    name: str
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    source: str = "builtin"


class ToolRegistry:
    """All tools by name and alias.

    Attributes:
        changes: How often tools came or went, by which others know what they have made of them.
    """

    def __init__(self) -> None:
        self._specs: dict[str, ToolSpec | _Unconverted] = {}
        self._owners: dict[str, ToolSpec | _Unconverted] = {}
        self._holdings: Holdings | None = None
        self.changes = 0

    def add(self, spec: ToolSpec) -> None:
        """Adds one tool under its name and its aliases, or not at all.

        Raises:
            ValueError: If one of them is taken; it names both owners.
        """
        self._add(spec)

    def _add(self, spec: ToolSpec | _Unconverted) -> None:
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

        Each is converted when it is first asked for: a start needs few of them. One that cannot be
        converted raises ToolDefinitionError there; the project's own are all tested.

        Raises:
            ValueError: If two of them claim one name.
        """
        for module in pkgutil.iter_modules(package.__path__):
            if not module.ispkg and not module.name.startswith("_"):
                found = importlib.import_module(f"{package.__name__}.{module.name}")
                for function in _marked_functions(found):
                    self._add(_unconverted(function))

    def discover_installed(self) -> None:
        """Adds the tools that other distributions announce under `toolcrib.tools`.

        An entry point that cannot be loaded is logged and left out: somebody else's defect does not
        keep the server from starting.
        """
        for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda found: found.name):
            self._add_entry_point(entry)

    def tailor(self, holdings: Holdings) -> None:
        """Fits each tool that asks for it to what the settings name; once, before any is listed."""
        self._holdings = holdings
        for spec in self._specs.copy().values():
            if isinstance(spec, ToolSpec):
                self._put(self._fitted(spec))
        self.changes += 1

    def get(self, name: str) -> ToolSpec | None:
        """The tool of that name or alias, or None."""
        owner = self._owners.get(name)
        return None if owner is None else self._converted(owner)

    def find(self, name: str) -> ToolSpec:
        """The tool of that name or alias.

        Raises:
            UnknownToolError: If there is none; it suggests up to three similar names.
        """
        spec = self.get(name)
        if spec is None:
            raise UnknownToolError(
                f"No tool is called {name[:LONGEST_NAME]!r}.",
                suggestions=self._similar(name[:LONGEST_NAME]),
                next_actions=["Call a tool by its name as tools/list or search_tools gives it."],
            )
        return spec

    def specs(self) -> tuple[ToolSpec, ...]:
        """All tools, in the order of their names."""
        return tuple(self._converted(each) for each in self._in_order())

    def offers(self) -> tuple[ToolOffer, ...]:
        """What there is, in the order of the names, without what it takes to call it."""
        return tuple(self._in_order())

    def description_of(self, spec: ToolSpec) -> str:
        """What a tool does, for the model; of some tools it depends on which others there are."""
        return spec.description if spec.describe is None else spec.describe(self.offers())

    def _in_order(self) -> list[ToolSpec | _Unconverted]:
        return sorted(self._specs.values(), key=lambda each: each.name)

    def _converted(self, found: ToolSpec | _Unconverted) -> ToolSpec:
        if isinstance(found, ToolSpec):
            return found
        spec = self._fitted(FunctionToMCP.convert(found.function, source=found.source))
        self._put(spec)
        return spec

    def _fitted(self, spec: ToolSpec) -> ToolSpec:
        if spec.tailor is None or self._holdings is None:
            return spec
        return spec.tailor(spec, self._holdings)

    def _put(self, spec: ToolSpec) -> None:
        """Takes the place of what has its names already."""
        self._specs[spec.name] = spec
        self._owners.update(dict.fromkeys((spec.name, *spec.aliases), spec))

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
        if hasattr(value, MARK) and value.__module__ == module.__name__:
            yield value


def _unconverted(function: Callable[..., Any]) -> _Unconverted:
    options: ToolOptions = getattr(function, MARK)
    name = tool_name(function, None)
    return _Unconverted(function, name, options.get("aliases", ()), options.get("tags", ()))


def _describe(spec: ToolOffer) -> str:
    return f"{spec.name} ({spec.source})"
