"""FunctionToMCP: from a Python function to a tool that MCP clients can list and call."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from typing_extensions import Unpack

from tools.conversion.arguments.arguments import Arguments
from tools.conversion.callables.callables import title_of, tool_name
from tools.conversion.callables.commands import plain_function
from tools.conversion.callables.constructors import constructor
from tools.conversion.callables.docstrings import description, documentation
from tools.conversion.callables.signature import read_signature, underlying
from tools.conversion.invocation import Invocation
from tools.conversion.results.output import Output
from tools.core.errors import ToolDefinitionError
from tools.core.spec import MARK, Effect, Subject, ToolOptions, ToolSpec, settle

__all__ = ["FunctionToMCP"]


class FunctionToMCP:
    """Converts functions; it keeps nothing and needs no server."""

    @staticmethod
    def convert(
        func: Callable[..., Any],
        *,
        source: str = "function",
        **overrides: Unpack[ToolOptions],
    ) -> ToolSpec:
        """Makes a tool of a function.

        Names and types come from the signature, texts from `Annotated`, `Field` and the docstring,
        scope, effects and the rest from `@tool`; without it, a tool is sandboxed, and the worst is
        supposed of what it does. A parameter of type RequestContext is given by the call path and
        is not in the schema, nor is a hidden one.

        Args:
            func: A function, method, class, builtin, callable object, partial of one, or a command
                of click.
            source: Where the function comes from, as in ToolSpec; what one of ours ("builtin")
                raises unforeseen its caller is not told.
            **overrides: Options that hold whatever `@tool` said.

        Returns:
            The tool.

        Raises:
            ToolDefinitionError: If it cannot be converted faithfully; it says what to change.
        """
        func = plain_function(func)
        function = underlying(func)
        marked = getattr(function, MARK, ToolOptions())
        name = tool_name(func, overrides.get("name", marked.get("name")))
        options = settle(name, marked, overrides)
        hidden, rename = options.pop("hidden", ()), options.pop("rename", {})
        signature = read_signature(func, hidden=hidden, rename=rename)
        said = documentation(func)
        ignored = options.pop("ignored", ())
        arguments = Arguments(name, signature, said.parameters, ignored=ignored)
        _check_subject(name, options.get("subject"), arguments.schema["properties"])
        is_ours = source == "builtin"
        output = Output(name, signature.returns, said.returns, is_ours=is_ours)
        called = constructor(func, arguments.refusal)
        abandon = options["effects"] == {Effect.READ}
        is_once = source.startswith("function:")  # a function of the user's
        supposed = {"title": title_of(name), "description": description(said), "once": is_once}
        told = {**supposed, **options, "name": name}
        texts = (told["title"], told["description"])
        _check_sendable(name, *texts, arguments.schema, output.schema)
        return ToolSpec(
            input_schema=arguments.schema,
            output_schema=output.schema,
            validate=arguments.validate,
            canonical=arguments.canonical,
            invoke=Invocation(called, signature, output, abandon=abandon, is_ours=is_ours),
            source=source,
            **told,
        )


def _check_subject(name: str, subject: Subject | None, known: Collection[str]) -> None:
    """Refuses a subject that no call has: rules about it would never hold.

    Raises:
        ToolDefinitionError: No argument has its name.
    """
    if subject is not None and subject.parameter not in known:
        raise ToolDefinitionError(
            f"{name} is about {subject.parameter!r}, and has no such argument; its subject is one "
            f"of {', '.join(known) or 'none'}."
        )


def _check_sendable(name: str, *parts: object) -> None:
    """Refuses what no client could be sent: one such tool would hide all others of a list.

    Raises:
        ToolDefinitionError: A text of the definition has half of a surrogate pair.
    """
    try:
        json.dumps(parts, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise ToolDefinitionError(
            f"A text of the tool {name!r} has half of a character, {half!a}; write the whole."
        ) from error
