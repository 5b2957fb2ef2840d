"""What a prompt is: its specification, its messages, and the mark that makes a function one."""

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
"""The attribute of a function that holds the options of each prompt that it makes."""

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt.

    Attributes:
        role: Who says it.
        content: A text, an image or a sound, a resource, or a link to one.
    """

    role: Role
    content: Block

    def __post_init__(self) -> None:
        """Refuses what no client knows.

        Raises:
            ValueError: If nobody can have that role.
        """
        if self.role not in {"user", "assistant"}:
            raise ValueError(f"The role of a message is {self.role!r}; make it user or assistant.")


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """What a prompt asks its user for.

    Attributes:
        name: What it is called.
        description: What to give.
        required: Whether it has to be given.
    """

    name: str
    description: str
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSpec(ToolOffer):
    """A prompt.

    Attributes:
        title: Name for people.
        description: What it is for.
        arguments: What it asks for, as texts.
        timeout: Seconds that it may take.
        validate: Checks and converts the arguments; raises InvalidArgumentsError.
        render: Makes the messages of what `validate` returned and a RequestContext.
        complete: Values that an argument may have.
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
    """Options of a prompt, as in PromptSpec; each that is left out has the default there.

    Attributes:
        name: By default the function's.
        title: By default the name in words.
        description: By default the docstring's.
        complete: A function for each argument whose values it knows. It may take what has been
            typed, as `value`, and other arguments of the prompt by their names.
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
    """Marks a function as what makes a prompt.

    Args:
        function: The function, where the mark stands without parentheses.
        **options: See PromptOptions.
    """
    checked = checked_options(OPTIONS, options, "@prompt")

    def mark(marked: FunctionT) -> FunctionT:
        setattr(marked, PROMPT_MARK, (*getattr(marked, PROMPT_MARK, ()), checked))
        return marked

    return marking("@prompt", mark, function)
