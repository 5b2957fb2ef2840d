"""Converts Python functions to prompts that MCP clients can list and get."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tools.conversion.browsing.marked import Marked
from tools.conversion.callables.signature import NOTHING
from tools.conversion.results.output import Collected, Output
from tools.conversion.schemas.reading import resolve
from tools.core.browsing.prompt import (
    PROMPT_MARK,
    Message,
    PromptArgument,
    PromptOptions,
    PromptSpec,
    Role,
)


def prompts_of(function: Callable[..., Any], *, source: str = "builtin") -> list[PromptSpec]:
    """Returns the prompts that `@prompt` declares on a function.

    Args:
        function: The function.
        source: Where it comes from, as in ToolSpec.
    """
    return [_prompt(function, options, source) for options in getattr(function, PROMPT_MARK, ())]


def _prompt(function: Callable[..., Any], options: PromptOptions, source: str) -> PromptSpec:
    marked = Marked(function, options, source)
    return PromptSpec(
        arguments=tuple(_arguments(marked.schema)),
        render=marked.answering(_Messages(marked.name)),
        **marked.specification(),
    )


def _arguments(schema: dict[str, Any]) -> Iterator[PromptArgument]:
    for name, part in schema["properties"].items():
        text = part.get("description") or resolve(part, schema).get("description", "")
        yield PromptArgument(name, text, name in schema.get("required", ()))


class _Messages:
    """Converts a function's return value to the messages of a prompt."""

    def __init__(self, name: str) -> None:
        self._output = Output(name, NOTHING)

    def result(self, value: object) -> tuple[Message, ...]:
        """Returns the messages; a value that is not a message becomes one from the user.

        Raises:
            InternalError: If a value cannot be sent.
        """
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
