"""The registry: every tool under its name, found once at the start."""

from __future__ import annotations

import importlib
import inspect
import logging
import pkgutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from tools.conversion.callables.naming import tool_name
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.errors import UnknownToolError
from tools.core.holdings import Holdings
from tools.core.spec import MARK, ToolOffer, ToolOptions, ToolSpec
from tools.core.toolset import ToolSet

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
        bare: As in ToolSpec.
    """

    function: Callable[..., Any]
    name: str
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    source: str = "builtin"
    bare: str = ""


class ToolRegistry:
    """All tools by name and alias.

    A tool of another server is also reached by its bare name, where no other tool is called so.
    """

    def __init__(self) -> None:
        self._specs: dict[str, ToolSpec | _Unconverted] = {}
        self._owners: dict[str, ToolSpec | _Unconverted] = {}
        self._bare: defaultdict[str, set[str]] = defaultdict(set)
        self._holdings: Holdings | None = None
        self._journal: list[str] = []

    @property
    def changes(self) -> int:
        """How often tools came, went or changed, by which others know what they made of them."""
        return len(self._journal)

    def changed_since(self, changes: int) -> list[str]:
        """The names of the tools that came, went or changed since there were so many changes."""
        return list(dict.fromkeys(self._journal[changes:]))

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
        self._put(spec)
        self._journal.append(spec.name)

    def remove(self, name: str) -> None:
        """Removes the tool of that very name, where there is one."""
        spec = self._specs.pop(name, None)
        if spec is None:
            return
        for each in (spec.name, *spec.aliases):
            del self._owners[each]
        if isinstance(spec, ToolSpec) and spec.bare:
            self._bare[spec.bare].discard(name)
        self._journal.append(name)

    def remove_source(self, source: str) -> None:
        """Removes every tool that comes from one source."""
        for name in [name for name, spec in self._specs.items() if spec.source == source]:
            self.remove(name)

    def replace_source(self, source: str, specs: Sequence[ToolSpec]) -> None:
        """Puts tools in the place of all that come from one source; what stays the same, stays.

        Args:
            source: Where they come from, each of them.
            specs: The tools; one whose name belongs to another source is left out and logged.
        """
        wanted = {spec.name: spec for spec in specs}
        for name in [name for name, spec in self._specs.items() if spec.source == source]:
            if wanted.get(name) is not self._specs[name]:
                self.remove(name)
        for name, spec in wanted.items():
            if name in self._specs and self._specs[name] is spec:
                continue
            try:
                self._add(spec)
            except ValueError as error:
                logger.warning("%s", error)

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
                self._journal.append(spec.name)

    def get(self, name: str) -> ToolSpec | None:
        """The tool of that name, alias or unique bare name, or None."""
        owner = self._owners.get(name)
        if owner is None and len(namesakes := self._bare.get(name, ())) == 1:
            owner = self._owners[next(iter(namesakes))]
        return None if owner is None else self._converted(owner)

    def find(self, name: str, tool_set: ToolSet | None = None) -> ToolSpec:
        """The tool of that name or alias.

        Args:
            name: Name, alias or unique bare name.
            tool_set: The tools that may be suggested; None means all.

        Raises:
            UnknownToolError: If there is none; it suggests up to three similar names.
        """
        spec = self.get(name)
        if spec is None and (namesakes := self._namesakes(name, tool_set)):
            raise UnknownToolError(
                f"Several servers have a tool {name!r}.",
                suggestions=namesakes[:SUGGESTIONS],
                next_actions=["Call the one that you mean by its whole name."],
            )
        if spec is None:
            raise UnknownToolError(
                f"No tool is called {name[:LONGEST_NAME]!r}.",
                suggestions=self._similar(name[:LONGEST_NAME], tool_set),
                next_actions=["Call a tool by its name as tools/list or search_tools gives it."],
            )
        return spec

    def specs(self) -> tuple[ToolSpec, ...]:
        """All tools, in the order of their names."""
        return tuple(self._converted(each) for each in self._in_order())

    def offers(self, tool_set: ToolSet | None = None) -> tuple[ToolOffer, ...]:
        """What there is, in the order of the names, without what it takes to call it.

        Args:
            tool_set: The tools that count; None means all.
        """
        return tuple(each for each in self._in_order() if tool_set is None or tool_set.admits(each))

    def description_of(self, spec: ToolSpec, tool_set: ToolSet | None = None) -> str:
        """What a tool does, for the model; of some tools it depends on which others there are.

        Args:
            spec: The tool.
            tool_set: The others that there are for whoever reads it; None means all.
        """
        return spec.description if spec.describe is None else spec.describe(self.offers(tool_set))

    def _in_order(self) -> list[ToolSpec | _Unconverted]:
        return sorted(self._specs.values(), key=lambda each: each.name)

    def _converted(self, found: ToolSpec | _Unconverted) -> ToolSpec:
        if isinstance(found, ToolSpec):
            return found
        spec = self._fitted(_built_in(found.function))
        self._put(spec)
        return spec

    def _fitted(self, spec: ToolSpec) -> ToolSpec:
        if spec.tailor is None or self._holdings is None:
            return spec
        return spec.tailor(spec, self._holdings)

    def _put(self, spec: ToolSpec | _Unconverted) -> None:
        """Takes the place of what has its names already."""
        self._specs[spec.name] = spec
        self._owners.update(dict.fromkeys((spec.name, *spec.aliases), spec))
        if isinstance(spec, ToolSpec) and spec.bare:
            self._bare[spec.bare].add(spec.name)

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

    def _namesakes(self, bare: str, tool_set: ToolSet | None) -> list[str]:
        """The tools of several servers that are called so there."""
        names = sorted(self._bare.get(bare, ()))
        return [name for name in names if tool_set is None or tool_set.admits(self._specs[name])]

    def _similar(self, name: str, tool_set: ToolSet | None) -> list[str]:
        from rapidfuzz import process, utils  # noqa: PLC0415  # imported on first use

        known = list(self._owners.items())  # tools come and go while they are looked at
        ranked = process.extract(
            name,
            sorted(each for each, owner in known if tool_set is None or tool_set.admits(owner)),
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


@cache
def _built_in(function: Callable[..., Any]) -> ToolSpec:
    """The tool that it is in every registry of this process."""
    return FunctionToMCP.convert(function)


def _describe(spec: ToolOffer) -> str:
    return f"{spec.name} ({spec.source})"
