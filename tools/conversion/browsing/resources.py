"""Converts Python functions to resources that MCP clients can list and read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tools.conversion.browsing.marked import Marked
from tools.conversion.results.output import Output
from tools.core.browsing.resource import (
    RESOURCE_MARK,
    ResourceOptions,
    ResourceSpec,
    variables_of,
)
from tools.core.content import Block, EmbeddedResource, Media, ResourceLink
from tools.core.errors import InternalError, ToolDefinitionError

ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.")


def resources_of(function: Callable[..., Any], *, source: str = "builtin") -> list[ResourceSpec]:
    """Returns the resources that `@resource` declares on a function.

    Args:
        function: The function.
        source: Where it comes from, as in ToolSpec.
    """
    return [
        _resource(function, uri, options, source)
        for uri, options in getattr(function, RESOURCE_MARK, ())
    ]


def _resource(
    function: Callable[..., Any], uri: str, options: ResourceOptions, source: str
) -> ResourceSpec:
    marked = Marked(function, options, source)
    _check_address(marked.name, uri, marked.schema)
    contents = _Contents(marked.name, marked.returns, options.get("mime_type", ""))
    return ResourceSpec(uri=uri, read=marked.answering(contents), **marked.specification())


def _check_address(name: str, uri: str, schema: dict[str, Any]) -> None:
    """Rejects a relative address, or one that does not match the function's parameters."""
    if not ABSOLUTE.match(uri):
        raise ToolDefinitionError(
            f"The address {uri!r} of {name} has no scheme; write it as in garden://beds."
        )
    properties, required = schema["properties"], set(schema.get("required", ()))
    variables = variables_of(uri)
    for each in variables:
        if each.name not in properties:
            has = f"it has {', '.join(properties)}" if properties else "it has none"
            raise ToolDefinitionError(
                f"{name} has no parameter for {{{each.name}}} of {uri}: {has}."
            )
        if each.optional and each.name in required:
            raise ToolDefinitionError(
                f"An address may leave {each.name} of {uri} out: give the parameter of {name} a "
                "default."
            )
    if missing := sorted(required - {each.name for each in variables}):
        raise ToolDefinitionError(
            f"The address {uri} of {name} does not give {', '.join(missing)}: write "
            f"{', '.join(f'{{{each}}}' for each in missing)} into it, or give a default."
        )


class _Contents:
    """Converts a function's return value to resource contents: text, bytes or JSON."""

    def __init__(self, name: str, returns: Any, mime_type: str) -> None:
        self._name = name
        self._mime_type = mime_type
        self._output = Output(name, returns)

    def result(self, value: object) -> tuple[EmbeddedResource, ...]:
        """Returns the contents; None means that there are none.

        Raises:
            InternalError: If the value does not match the return type or cannot be sent.
        """
        if value is None:
            return ()
        if isinstance(value, bytes | bytearray | memoryview):
            return (EmbeddedResource("", bytes(value), self._mime_type),)
        result = self._output.result(value)
        if result.blocks:
            return tuple(map(self._contents, result.blocks))
        is_text = isinstance(value, str) or hasattr(type(value), "to_text")
        mime_type = self._mime_type or ("" if is_text else "application/json")
        return (EmbeddedResource("", result.text, mime_type),)

    def _contents(self, block: Block) -> EmbeddedResource:
        match block:
            case EmbeddedResource():
                return block
            case Media():
                return EmbeddedResource("", block.data, block.mime_type)
            case ResourceLink():
                raise InternalError(
                    f"{self._name} returned a link, which is no content of a resource. This is a "
                    "defect of the function."
                )
        return EmbeddedResource("", block, self._mime_type)
