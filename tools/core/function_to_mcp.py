"""FunctionToMCP: from a Python function to a tool that MCP clients can list and call."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from typing_extensions import Unpack

from tools.core.conversion.arguments import Arguments
from tools.core.conversion.docstrings import read_docstring
from tools.core.conversion.invocation import Invocation
from tools.core.conversion.output import Output
from tools.core.conversion.signature import read_signature, underlying
from tools.core.errors import ToolDefinitionError
from tools.core.spec import MARK, Effect, ToolOptions, ToolSpec, settle

__all__ = ["FunctionToMCP"]

NAME = re.compile(r"[a-z0-9_]{1,64}")


class FunctionToMCP:
    """Converts functions; it keeps nothing and needs no server."""

    @staticmethod
    def convert(
        func: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        source: str = "builtin",
        **overrides: Unpack[ToolOptions],
    ) -> ToolSpec:
        """Makes a tool of a function.

        Names and types come from the signature, texts from `Annotated`, `Field` and the docstring,
        scope, effects and the rest from `@tool`; without it a tool is sandboxed, and the worst is
        supposed of what it does. A parameter of type RequestContext is given by the call path and
        is not in the schema, nor is a hidden one.

        Args:
            func: A function, coroutine function, bound method, callable object or partial.
            name: The tool's name; by default the function's.
            description: Text for the model; by default the docstring's.
            source: Where the function comes from, as in ToolSpec.
            **overrides: Options that hold whatever `@tool` said.

        Returns:
            The tool.

        Raises:
            ToolDefinitionError: If it cannot be converted faithfully; it says what to change.
        """
        function = underlying(func)
        name = name or str(getattr(function, "__name__", ""))
        _check_name(name, func)
        _refuse_streams(name, function)
        options = settle(name, getattr(function, MARK, {}), overrides)
        signature = read_signature(func, hidden=options.pop("hidden", ()))
        documentation = read_docstring(_docstring(function))
        arguments = Arguments(name, signature.given, documentation.parameters)
        output = Output(name, signature.returns, documentation.returns)
        abandon = options["effects"] == {Effect.READ}
        return ToolSpec(
            name=name,
            description=documentation.description if description is None else description,
            input_schema=arguments.schema,
            output_schema=output.schema,
            validate=arguments.validate,
            invoke=Invocation(func, signature, output, abandon=abandon),
            source=source,
            **{"title": name.replace("_", " ").strip().capitalize(), **options},
        )


def _check_name(name: str, function: Callable[..., Any]) -> None:
    if not NAME.fullmatch(name):
        raise ToolDefinitionError(
            f"{name!r} cannot be the name of a tool ({function!r}); give it a name of 1 to 64 "
            "small letters, digits and underscores: convert(..., name='…')."
        )


def _refuse_streams(name: str, function: Callable[..., Any]) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDefinitionError(f"{name} yields its results one by one; return a list of them.")


def _docstring(function: Callable[..., Any]) -> str | None:
    """A function's own docstring; of a callable object its `__call__`'s, else its class's."""
    if inspect.isroutine(function) or inspect.isclass(function):
        return inspect.getdoc(function)
    return inspect.getdoc(type(function).__call__) or inspect.getdoc(function)
