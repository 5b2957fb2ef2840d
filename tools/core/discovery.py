"""Finds the tools that come with the product and with installed distributions."""

from __future__ import annotations

import importlib
import inspect
import logging
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from tools.conversion.arguments.known_names import names_of
from tools.conversion.callables.callables import tool_name
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.registry import DeferredTool, ToolRegistry
from tools.core.spec import MARK, ToolOptions, ToolSpec

logger = logging.getLogger("toolcrib")

ENTRY_POINT_GROUP = "toolcrib.tools"
"""The entry point group in which other distributions announce a module of tools, or one tool."""


def discover(registry: ToolRegistry, package: ModuleType) -> None:
    """Adds the marked functions of each public module directly in a package.

    It does the same for each subpackage in `GROUPS`. Functions are converted when they are first
    needed, to speed up the start. One that cannot be converted then raises ToolDefinitionError; our
    own are all tested.

    Raises:
        ValueError: If two tools claim one name.
    """
    for module in pkgutil.iter_modules(package.__path__):
        if not module.ispkg and not module.name.startswith("_"):
            found = importlib.import_module(f"{package.__name__}.{module.name}")
            for function in _marked_functions(found):
                registry.add(_deferred(function))
    for group in getattr(package, "GROUPS", ()):
        discover(registry, importlib.import_module(f"{package.__name__}.{group}"))


def discover_installed(registry: ToolRegistry) -> None:
    """Adds the tools that other distributions announce under `toolcrib.tools`.

    An entry point that cannot be loaded is logged and skipped, so that a defect in another package
    does not keep the server from starting.
    """
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda found: found.name):
        try:
            _add_entry_point(registry, entry)
        except Exception:
            logger.exception(
                "The tools of entry point %s (%s) are left out", entry.name, entry.value
            )


def _add_entry_point(registry: ToolRegistry, entry: EntryPoint) -> None:
    found = entry.load()
    functions = _marked_functions(found) if inspect.ismodule(found) else (found,)
    for function in functions:
        registry.add(FunctionToMCP.convert(function, source=f"function:{entry.value}"))


def _marked_functions(module: ModuleType) -> Iterator[Any]:
    for value in vars(module).values():
        if hasattr(value, MARK) and value.__module__ == module.__name__:
            yield value


def _deferred(function: Callable[..., Any]) -> DeferredTool:
    options: ToolOptions = getattr(function, MARK)
    name = tool_name(function, options.get("name"))
    return DeferredTool(
        name=name,
        aliases=options.get("aliases", ()),
        aliases_elsewhere=(*options.get("aliases_elsewhere", ()), *names_of(name)),
        tags=options.get("tags", ()),
        convert=partial(_converted, function),
    )


@cache
def _converted(function: Callable[..., Any]) -> ToolSpec:
    """Converts a function to its tool, shared by all registries of this process."""
    spec = FunctionToMCP.convert(function, source="builtin")
    elsewhere = (*spec.aliases_elsewhere, *names_of(spec.name))
    return replace(spec, aliases_elsewhere=elsewhere)
