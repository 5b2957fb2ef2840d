"""Converts a Python function to a tool that MCP clients can list and call."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from typing_extensions import Unpack

from tools.conversion.arguments.arguments import Arguments
from tools.conversion.callables.callables import title_of, tool_name, underlying
from tools.conversion.callables.commands import plain_function
from tools.conversion.callables.constructors import constructor
from tools.conversion.callables.docstrings import description, documentation
from tools.conversion.callables.signature import read_signature
from tools.conversion.invocation import Invocation
from tools.conversion.results.output import Output
from tools.core.errors import ToolDefinitionError
from tools.core.spec import MARK, Effect, Subject, ToolOptions, ToolSpec, settle

__all__ = ["FunctionToMCP"]


class FunctionToMCP:
    """Converts functions; it has no state and needs no server."""

    @staticmethod
    def convert(
        func: Callable[..., Any], *, source: str = "function", **overrides: Unpack[ToolOptions]
    ) -> ToolSpec:
        """Converts a function to a tool.

        Names and types come from the signature, texts from `Annotated`, `Field` and the docstring,
        and scope, effects and other options from `@tool`. Without `@tool` a tool is sandboxed and
        assumed to have every effect. RequestContext and hidden parameters are not in the schema;
        the call path provides the context.

        Args:
            func: A function, method, class, builtin, callable object, partial of one, or a click
                command.
            source: Where the function comes from, as in ToolSpec. Callers never see the unexpected
                exceptions of our own functions ("builtin").
            **overrides: Options that override `@tool`.

        Returns:
            The tool.

        Raises:
            ToolDefinitionError: If it cannot be converted faithfully; the message says what to
                change.
        """
        func = plain_function(func)
        function = underlying(func)
        marked = getattr(function, MARK, ToolOptions())
        name = tool_name(func, overrides.get("name", marked.get("name")))
        options = settle(name, marked, overrides)
        hidden, rename = options.pop("hidden", ()), options.pop("rename", {})
        signature = read_signature(func, hidden=hidden, rename=rename)
        docs = documentation(func)
        ignored = options.pop("ignored", ())
        arguments = Arguments(name, signature, docs.parameters, ignored=ignored)
        _check_subject(name, options.get("subject"), arguments.schema["properties"])
        is_ours = source == "builtin"
        output = Output(name, signature.returns, docs.returns, is_ours=is_ours)
        called = constructor(func, arguments.refusal)
        abandon = options["effects"] == {Effect.READ}
        is_resumable = source.startswith("function:")  # a user's function
        defaults = {
            "title": title_of(name),
            "description": description(docs),
            "resumable": is_resumable,
        }
        fields = {**defaults, **options, "name": name}
        texts = (fields["title"], fields["description"])
        _check_sendable(name, *texts, arguments.schema, output.schema)
        return ToolSpec(
            input_schema=arguments.schema,
            output_schema=output.schema,
            validate=arguments.validate,
            canonical=arguments.canonical,
            invoke=Invocation(called, signature, output, abandon=abandon, is_ours=is_ours),
            source=source,
            **fields,
        )


def _check_subject(name: str, subject: Subject | None, known: Collection[str]) -> None:
    """Rejects a subject that is not an argument: rules about it would never apply."""
    if subject is not None and subject.acts is None and subject.parameter not in known:
        raise ToolDefinitionError(
            f"{name} has the subject {subject.parameter!r}, which is not an argument; use one "
            f"of {', '.join(known) or 'none'}."
        )


def _check_sendable(name: str, *parts: object) -> None:
    """Rejects unpaired surrogates: one such tool would break a client's whole tool list."""
    try:
        json.dumps(parts, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise ToolDefinitionError(
            f"A text of the tool {name!r} contains an unpaired surrogate, {half!a}; remove it."
        ) from error
