"""Selects a module's public functions, and the tools, resources and prompts they define."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

from tools.conversion.browsing import prompts_of, resources_of
from tools.conversion.callables.annotations import python_signature
from tools.conversion.callables.callables import depended_on
from tools.conversion.callables.commands import (
    as_function,
    is_command,
    leaves,
    plain_function,
    printed,
    registered,
)
from tools.core.errors import ToolDefinitionError
from tools.core.offered import PROMPT_MARK, RESOURCE_MARK, Spec
from tools.core.spec import MARK, ToolSpec, settle

SERVERS = frozenset({"MCPServer", "FastMCP"})
LIBRARIES = ("mcp.", "fastmcp.")
"""Class and module names of MCP servers; neither library is imported here."""


def public_functions(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yields a module's public functions: those in `__all__`, else marked ones, else all.

    A mark is one of our decorators, a tool of an MCP server in the module, or a click or typer
    command. If anything is marked, even a private name or a class member, unmarked functions are
    not offered. Without marks, dependencies and completing functions are not offered: their
    results, such as tokens, are meant for other functions. The module's own click commands come
    last.
    """
    listed = getattr(module, "__all__", None)
    commands = list(_commands(module))
    found: dict[int, tuple[str, Any]] = {}
    for name, value in vars(module).items():
        named = not name.startswith("_") if listed is None else name in listed
        if not (named and callable(value)) or is_command(value):
            continue
        if _is_marked(value) or _is_function_of(module, value):
            found.setdefault(id(value), (name, value))
    functions = [value for _, value in found.values()]
    own_commands = {id(each) for each in registered(vars(module).values())}
    own_commands |= {id(each) for each in _server_tools(module)}
    marked = {id(each) for each in functions if _is_marked(each) or id(each) in own_commands}
    own = [each for each in vars(module).values() if _is_own(module, each)]
    members = [member for each in own if inspect.isclass(each) for member in vars(each).values()]
    has_hidden_mark = any(_is_marked(each) or is_command(each) for each in (*own, *members))
    has_marks = bool(marked or commands or own_commands) or has_hidden_mark
    others = {id(each) for each in (*depended_on(functions), *_completing(functions))}
    for name, value in found.values():
        # An author's explicit choice wins: a helper is not offered just because its name is public.
        is_chosen = id(value) in marked or not has_marks
        if listed is not None or (is_chosen and id(inspect.unwrap(value)) not in others - marked):
            yield name, value
    yield from commands


def offered_by(
    function: Callable[..., Any], source: str, to_tool: Callable[[], ToolSpec]
) -> list[ToolSpec | Spec]:
    """Returns what a function offers: its resources and prompts, or a tool.

    Args:
        function: The function.
        source: Where it comes from, as in ToolSpec.
        to_tool: Converts it to a tool.
    """
    browsed: list[ToolSpec | Spec] = [
        *resources_of(function, source=source),
        *prompts_of(function, source=source),
    ]
    if browsed and not hasattr(function, MARK):
        return browsed
    return [*browsed, to_tool()]


def to_call(
    module: ModuleType, name: str, function: Callable[..., Any], *, is_chosen: bool = False
) -> Callable[..., Any]:
    """Returns the callable for a public function; one of typer's returns what it prints.

    Args:
        module: The function's module.
        name: Its name there.
        function: The function.
        is_chosen: Whether something outside the module declares it a tool.
    """
    if any(function is each for each in registered(vars(module).values())):
        return printed(function)
    if not (is_chosen or hasattr(function, MARK) or name in getattr(module, "__all__", ())):
        _refuse_untyped(name, function)
    return function


def common_options(module: ModuleType) -> Mapping[str, Any]:
    """Returns the options that a module's author sets for all its functions."""
    common = getattr(module, MARK, {})
    owner = f"{MARK} of {module.__name__}"
    if not isinstance(common, Mapping):
        raise ToolDefinitionError(f"{owner} is {common!r}; make it a dictionary.")
    settle(owner, common)
    return common


def options_of(module: ModuleType, name: str, function: Callable[..., Any]) -> dict[str, Any]:
    """Merges the options of a public function from its module, its name and its own mark."""
    own_name = {} if getattr(function, "__name__", "") == name else {"name": name}
    return settle(name, common_options(module), own_name, getattr(function, MARK, {}))


def _commands(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yields the module's own click commands, replacing each group by its commands."""
    listed = getattr(module, "__all__", None)
    named = [
        value
        for name, value in vars(module).items()
        if is_command(value) and (not name.startswith("_") if listed is None else name in listed)
    ]
    seen: set[int] = set()
    chains = [chain for each in named for chain in leaves(each)]
    chains.sort(key=len, reverse=True)  # a command's longest chain of groups first
    for chain in chains:
        command = chain[-1]
        own = getattr(command.callback, "__module__", None) == module.__name__
        if own and id(command) not in seen:
            seen.add(id(command))
            function = as_function(*chain)
            yield function.__name__, function


def _completing(functions: Iterable[Any]) -> Iterator[Callable[..., Any]]:
    for function in functions:
        of_resources = [options for _, options in getattr(function, RESOURCE_MARK, ())]
        for options in (*of_resources, *getattr(function, PROMPT_MARK, ())):
            yield from options.get("complete", {}).values()


def _server_tools(module: ModuleType) -> Iterator[object]:
    """Yields each MCP server that the module creates, and the functions that are its tools."""
    for server in vars(module).values():
        if type(server).__name__ in SERVERS and type(server).__module__.startswith(LIBRARIES):
            yield server
            manager = getattr(server, "_tool_manager", None)
            tools = () if manager is None else manager.list_tools()
            yield from (getattr(each, "fn", None) for each in tools)


def _is_own(module: ModuleType, value: object) -> bool:
    own = getattr(value, "callback", None) if is_command(value) else value
    return getattr(own, "__module__", None) == module.__name__


def _is_marked(value: object) -> bool:
    return any(hasattr(value, mark) for mark in (MARK, RESOURCE_MARK, PROMPT_MARK))


def _is_function_of(module: ModuleType, value: object) -> bool:
    if inspect.isclass(value) or getattr(value, "__module__", None) != module.__name__:
        return False
    return inspect.isroutine(value) or hasattr(value, "__wrapped__")


def _refuse_untyped(name: str, function: Callable[..., Any]) -> None:
    """Raises for a function without annotations that only its public name makes a tool."""
    if plain_function(function) is not function:  # typer's: it returns what it prints
        return
    signature = python_signature(inspect.unwrap(function))
    empty = inspect.Parameter.empty
    bare = [
        each.name
        for each in signature.parameters.values()
        if each.annotation is empty and each.default is empty
    ]
    missing = f"no type for {', '.join(bare)}" if bare else "no return type"
    if bare or signature.return_annotation is inspect.Signature.empty:
        raise ToolDefinitionError(
            f"{name} is not a tool because it has {missing}: annotate it, mark it with @tool, or "
            "begin its name with an underscore."
        )
