"""Converts functions to resources and prompts, and completes their arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tools.conversion.arguments.arguments import Arguments
from tools.conversion.callables.callables import NOTHING, title_of, tool_name
from tools.conversion.callables.docstrings import description, documentation
from tools.conversion.callables.signature import read_signature
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.conversion.invocation import Answering, AnswerT, Invocation
from tools.conversion.results.output import Collected, Output
from tools.conversion.schema_reading import Schema, bears_secret, branches, resolve
from tools.core.content import Block, EmbeddedResource, Media, ResourceLink
from tools.core.context import RequestContext
from tools.core.errors import InternalError, ToolDefinitionError
from tools.core.offered import (
    PROMPT_MARK,
    RESOURCE_MARK,
    Message,
    PromptArgument,
    PromptOptions,
    PromptSpec,
    ResourceOptions,
    ResourceSpec,
    Role,
    variables_of,
)
from tools.core.spec import ToolSpec

TYPED = "value"
"""The parameter of a completing function that receives the text typed so far."""


class Completion:
    """Suggests values for a prompt's or resource's arguments, from types and from functions."""

    def __init__(
        self, owner: str, schema: Schema, functions: Mapping[str, Callable[..., Any]], source: str
    ) -> None:
        properties = schema["properties"]
        for name in functions:
            if name not in properties:
                has = ", ".join(properties) or "none"
                raise ToolDefinitionError(f"{owner} has no {name!r} to complete; it has {has}.")
        self._owner = owner
        self._choices = {name: list(_choices(part, schema)) for name, part in properties.items()}
        self._functions = {
            name: _converted(f"{name} of {owner}", each, properties, source)
            for name, each in functions.items()
        }

    async def __call__(
        self, argument: str, typed: str, given: Mapping[str, str], context: RequestContext
    ) -> list[str]:
        """Returns the matching values, best first."""
        function = self._functions.get(argument)
        if function is None:
            return fitting(self._choices.get(argument, ()), typed)
        known = {**given, TYPED: typed}
        taken = function.input_schema["properties"]
        if not known.keys() >= set(function.input_schema.get("required", ())):
            return []  # they depend on arguments not chosen yet
        values = function.validate({name: known[name] for name in taken if name in known})
        found = (await function.invoke(values, context)).structured.get("result")
        if not isinstance(found, list):
            raise InternalError(
                f"What completes {argument} of {self._owner} returns no list of texts. This is a "
                "defect of the function."
            )
        texts = list(map(str, found))
        return texts if TYPED in taken else fitting(texts, typed)


def fitting(values: Iterable[str], typed: str) -> list[str]:
    """Returns the values that begin with the typed text, then those that contain it."""
    folded = typed.casefold()
    fit = [value for value in values if folded in value.casefold()]
    return sorted(fit, key=lambda value: not value.casefold().startswith(folded))


def _choices(schema: Schema, root: Schema) -> Iterator[str]:
    """Yields the values of a type that has few: a Literal, an Enum or a bool."""
    for branch in branches(schema, root):
        if "const" in branch:
            yield str(branch["const"])
        elif branch.get("type") == "boolean":
            yield from ("true", "false")
        else:
            yield from map(str, branch.get("enum", ()))


def _converted(
    completed: str, function: Callable[..., Any], others: Mapping[str, Any], source: str
) -> ToolSpec:
    spec = FunctionToMCP.convert(function, name="complete", description="", source=source)
    for name in spec.input_schema["properties"]:
        if name != TYPED and name not in others:
            raise ToolDefinitionError(
                f"What completes {completed} takes {name!r}; it may take {TYPED!r}, "
                f"which is what has been typed, and {', '.join(others)}."
            )
    return spec


class Marked:
    """A function that its author marked as a resource or a prompt, with its arguments' schema."""

    def __init__(
        self, function: Callable[..., Any], options: ResourceOptions | PromptOptions, source: str
    ) -> None:
        self.name = options.get("name") or tool_name(function, None)
        self._function = function
        self._options = options
        self._source = source
        self._signature = read_signature(function)
        self._documentation = documentation(function)
        self._arguments = Arguments(self.name, self._signature, self._documentation.parameters)
        self.returns = self._signature.returns
        self.schema = self._arguments.schema
        for name, part in self.schema["properties"].items():
            # Clients display and store addresses and prompt arguments.
            if bears_secret(part, self.schema):
                raise ToolDefinitionError(
                    f"{self.name} takes the secret {name}, but clients show the arguments of"
                    " resources and prompts. Make it a tool, or read the secret from the"
                    " environment."
                )

    def specification(self) -> dict[str, Any]:
        """Returns the fields that resource and prompt specifications share."""
        functions = self._options.get("complete", {})
        return {
            "title": title_of(self.name),
            "description": description(self._documentation),
            **self._options,
            "name": self.name,
            "source": self._source,
            "validate": self._arguments.validate,
            "complete": Completion(self.name, self.schema, functions, self._source),
        }

    def answering(self, output: Answering[AnswerT]) -> Invocation[AnswerT]:
        """Returns the function as an invocation whose result is formatted by `output`."""
        is_ours = self._source == "builtin"
        return Invocation(self._function, self._signature, output, abandon=False, is_ours=is_ours)


def prompts_of(function: Callable[..., Any], *, source: str = "builtin") -> list[PromptSpec]:
    """Returns the prompts that `@prompt` declares on a function."""
    return [_prompt(function, options, source) for options in getattr(function, PROMPT_MARK, ())]


def _prompt(function: Callable[..., Any], options: PromptOptions, source: str) -> PromptSpec:
    marked = Marked(function, options, source)
    schema = marked.schema
    arguments = []
    for name, part in schema["properties"].items():
        text = part.get("description") or resolve(part, schema).get("description", "")
        arguments.append(PromptArgument(name, text, name in schema.get("required", ())))
    return PromptSpec(
        arguments=tuple(arguments),
        render=marked.answering(_Messages(marked.name)),
        **marked.specification(),
    )


class _Messages:
    """Converts a function's return value to the messages of a prompt."""

    def __init__(self, name: str) -> None:
        self._output = Output(name, NOTHING)

    def result(self, value: object) -> tuple[Message, ...]:
        """Returns the messages; a value that is not a message becomes one from the user."""
        values = value.items if isinstance(value, Collected) else value
        parts = values if isinstance(values, list | tuple) else [values]
        return tuple(message for part in parts for message in self._messages(part))

    def _messages(self, part: Any) -> Iterator[Message]:
        """Yields one message, or several if its content is a list; accepts MCP's own class."""
        role: Role = "user"
        if hasattr(part, "role") and hasattr(part, "content"):
            role, part = part.role, part.content
        for content in part if isinstance(part, list | tuple) else [part]:
            result = self._output.result(content)
            for block in result.blocks or (result.text,):
                yield Message(role, block)


ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.")


def resources_of(function: Callable[..., Any], *, source: str = "builtin") -> list[ResourceSpec]:
    """Returns the resources that `@resource` declares on a function."""
    found = []
    for uri, options in getattr(function, RESOURCE_MARK, ()):
        marked = Marked(function, options, source)
        _check_address(marked.name, uri, marked.schema)
        contents = _Contents(marked.name, marked.returns, options.get("mime_type", ""))
        read = marked.answering(contents)
        found.append(ResourceSpec(uri=uri, read=read, **marked.specification()))
    return found


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
        """Returns the contents; None means that there are none."""
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
