"""Defines prompts: their specification, their messages, and the `@prompt` decorator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, overload

from pydantic import ConfigDict, PositiveFloat, TypeAdapter, with_config
from typing_extensions import TypedDict, Unpack

from tools.core.browsing.resource import Complete, complete_nothing
from tools.core.content import Block
from tools.core.spec import DEFAULT_TIMEOUT, checked_options, marking
from tools.core.toolset import ToolOffer

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
PROMPT_MARK = "__prompt_options__"
"""The function attribute that holds the options of each prompt it renders."""

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt.

    Attributes:
        role: Its author.
        content: A text, an image or a sound, a resource, or a link to one.
    """

    role: Role
    content: Block

    def __post_init__(self) -> None:
        """Rejects an invalid role.

        Raises:
            ValueError: If the role is neither user nor assistant.
        """
        if self.role not in {"user", "assistant"}:
            raise ValueError(f"The role of a message is {self.role!r}; make it user or assistant.")


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """An argument of a prompt.

    Attributes:
        name: Its name.
        description: What to enter.
        required: Whether it must be given.
    """

    name: str
    description: str
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSpec(ToolOffer):
    """A prompt.

    Attributes:
        title: Its display name.
        description: Its purpose.
        arguments: The text arguments it takes.
        timeout: Maximum seconds to render it.
        validate: Checks and converts the arguments; raises InvalidArgumentsError.
        render: Renders the messages, given what `validate` returned and a RequestContext.
        complete: Suggests values for an argument.
    """

    title: str
    description: str
    arguments: tuple[PromptArgument, ...]
    timeout: float = DEFAULT_TIMEOUT
    validate: Callable[[Mapping[str, Any]], dict[str, Any]]
    render: Callable[[dict[str, Any], Any], Awaitable[tuple[Message, ...]]]
    complete: Complete = complete_nothing


@with_config(ConfigDict(extra="forbid"))
class PromptOptions(TypedDict, total=False):
    """Options of a prompt, as in PromptSpec; omitted options use the defaults there.

    Attributes:
        name: By default the function's name.
        title: By default the name in words.
        description: By default the docstring's.
        complete: A completing function for each argument that has one. It may take the text typed
            so far as `value`, and other arguments of the prompt by name.
    """

    name: str
    title: str
    description: str
    tags: tuple[str, ...]
    timeout: PositiveFloat
    complete: dict[str, Callable[..., Any]]


OPTIONS = TypeAdapter(PromptOptions)


@overload
def prompt(function: FunctionT, /) -> FunctionT: ...
@overload
def prompt(**options: Unpack[PromptOptions]) -> Callable[[FunctionT], FunctionT]: ...
def prompt(function: Any = None, /, **options: Any) -> Any:
    """Marks a function as a prompt.

    Args:
        function: The function, if the decorator is used without parentheses.
        **options: See PromptOptions.
    """
    checked = checked_options(OPTIONS, options, "@prompt")

    def mark(marked: FunctionT) -> FunctionT:
        setattr(marked, PROMPT_MARK, (*getattr(marked, PROMPT_MARK, ()), checked))
        return marked

    return marking("@prompt", mark, function)
