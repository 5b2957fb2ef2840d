"""Defines the prompts and resources that functions offer, and keeps them by name and address."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, overload

from pydantic import ConfigDict, Field, NonNegativeInt, PositiveFloat, TypeAdapter, with_config
from typing_extensions import TypedDict, Unpack

from tools.core.content import Block, EmbeddedResource
from tools.core.errors import ToolDefinitionError
from tools.core.spec import DEFAULT_TIMEOUT, checked_options, marking
from tools.core.toolset import ToolOffer

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
PROMPT_MARK = "__prompt_options__"
"""The function attribute that holds the options of each prompt it renders."""

Role = Literal["user", "assistant"]


RESOURCE_MARK = "__resource_options__"
"""The function attribute that holds the address and options of each resource it reads."""

EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")
"""Matches an expression of a template (RFC 6570)."""

Complete = Callable[[str, str, Mapping[str, str], Any], Awaitable[list[str]]]
"""Suggests values, given the argument, the typed text, the other arguments and a RequestContext."""


async def complete_nothing(
    _argument: str, _typed: str, _given: Mapping[str, str], _context: object
) -> list[str]:
    """Suggests nothing."""
    return []


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: Role
    content: Block  # a text, an image or a sound, a resource, or a link to one

    def __post_init__(self) -> None:
        """Rejects an invalid role.

        Raises:
            ValueError: If the role is neither user nor assistant.
        """
        if self.role not in {"user", "assistant"}:
            raise ValueError(f"The role of a message is {self.role!r}; make it user or assistant.")


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """An argument of a prompt."""

    name: str
    description: str
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSpec(ToolOffer):
    """A prompt."""

    title: str
    description: str
    arguments: tuple[PromptArgument, ...]  # the text arguments it takes
    timeout: float = DEFAULT_TIMEOUT  # maximum seconds to render it
    # Checks and converts the arguments; raises InvalidArgumentsError.
    validate: Callable[[Mapping[str, Any]], dict[str, Any]]
    # Renders the messages, given what `validate` returned and a RequestContext.
    render: Callable[[dict[str, Any], Any], Awaitable[tuple[Message, ...]]]
    complete: Complete = complete_nothing  # suggests values for an argument


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


PROMPT_OPTIONS = TypeAdapter(PromptOptions)


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
    checked = checked_options(PROMPT_OPTIONS, options, "@prompt")

    def mark(marked: FunctionT) -> FunctionT:
        setattr(marked, PROMPT_MARK, (*getattr(marked, PROMPT_MARK, ()), checked))
        return marked

    return marking("@prompt", mark, function)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a template."""

    name: str  # its name, which is also the function's parameter
    optional: bool  # whether an address may omit it, as a query variable


def variables_of(uri: str) -> list[Variable]:
    """Returns the variables of a template; none for a plain address."""
    return [
        Variable(name.strip().removesuffix("*"), operator in {"?", "&"})
        for operator, names in EXPRESSION.findall(uri)
        for name in names.split(",")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSpec(ToolOffer):
    """A resource, or all resources that match a template.

    Attributes:
        uri: The address, or the template (RFC 6570).
        title: Its display name.
        description: Its contents, described for the model.
        mime_type: Its format; empty if unknown or varying.
        size: Its size in bytes.
        audience: Whom it is for.
        priority: Its importance, up to 1.
        timeout: Maximum seconds for reading.
        validate: Checks and converts the variables of an address; raises InvalidArgumentsError.
        read: Reads it, given what `validate` returned and a RequestContext. Contents without an
            address get the requested one; no contents mean that the resource does not exist.
        complete: Suggests values for a variable.
    """

    uri: str
    title: str
    description: str
    mime_type: str = ""
    size: int | None = None
    audience: tuple[Literal["user", "assistant"], ...] = ()
    priority: float | None = None
    timeout: float = DEFAULT_TIMEOUT
    validate: Callable[[Mapping[str, Any]], dict[str, Any]]
    read: Callable[[dict[str, Any], Any], Awaitable[tuple[EmbeddedResource, ...]]]
    complete: Complete = complete_nothing

    @property
    def is_template(self) -> bool:
        """Returns whether the address has variables."""
        return bool(variables_of(self.uri))


@with_config(ConfigDict(extra="forbid"))
class ResourceOptions(TypedDict, total=False):
    """Options of a resource, as in ResourceSpec; omitted options use the defaults there.

    Attributes:
        name: By default the function's name.
        title: By default the name in words.
        description: By default the docstring's.
        complete: A completing function for each variable that has one. It may take the text typed
            so far as `value`, and other variables of the template by name.
    """

    name: str
    title: str
    description: str
    mime_type: str
    size: NonNegativeInt
    audience: tuple[Literal["user", "assistant"], ...]
    priority: Annotated[float, Field(ge=0, le=1)]
    tags: tuple[str, ...]
    timeout: PositiveFloat
    complete: dict[str, Callable[..., Any]]


RESOURCE_OPTIONS = TypeAdapter(ResourceOptions)


def resource(uri: str, **options: Unpack[ResourceOptions]) -> Callable[[FunctionT], FunctionT]:
    """Marks a function as the reader of a resource, or of a template's resources.

    Args:
        uri: Its address, such as `garden://beds`, or a template whose variables are parameters of
            the function, such as `garden://{bed}`.
        **options: See ResourceOptions.
    """
    if not isinstance(uri, str):
        raise ToolDefinitionError('@resource needs an address, as in @resource("garden://beds").')
    checked = checked_options(RESOURCE_OPTIONS, options, "@resource")

    def mark(function: FunctionT) -> FunctionT:
        setattr(function, RESOURCE_MARK, (*getattr(function, RESOURCE_MARK, ()), (uri, checked)))
        return function

    return mark


Spec = ResourceSpec | PromptSpec
"""A resource or prompt that a function offers."""


def _object_to_nothing(_spec: Spec) -> str:
    return ""


class Offered:
    """The resources and prompts of functions.

    Args:
        objection: Returns why a spec cannot be offered, or "".
    """

    def __init__(self, objection: Callable[[Spec], str] = _object_to_nothing) -> None:
        # By address or template, in the order of addition.
        self.resources: dict[str, ResourceSpec] = {}
        self.prompts: dict[str, PromptSpec] = {}  # by name, in the same order
        self._objection = objection

    def add(self, spec: Spec) -> None:
        """Adds a resource or prompt.

        Raises:
            ValueError: If its address or name is taken, or cannot be offered.
        """
        if objection := self._objection(spec):
            raise ValueError(objection)
        if isinstance(spec, ResourceSpec):
            self._check_free("address", spec.uri, self.resources.get(spec.uri), spec)
            self.resources[spec.uri] = spec
        else:
            self._check_free("prompt", spec.name, self.prompts.get(spec.name), spec)
            self.prompts[spec.name] = spec

    def holds(self, spec: Spec) -> bool:
        """Returns whether the address or name belongs to exactly this spec."""
        if isinstance(spec, ResourceSpec):
            return self.resources.get(spec.uri) is spec
        return self.prompts.get(spec.name) is spec

    def remove_source(self, source: str) -> None:
        """Removes everything from one source."""
        for kept in (self.resources, self.prompts):
            for key in [key for key, spec in kept.items() if spec.source == source]:
                del kept[key]

    @staticmethod
    def _check_free(kind: str, key: str, owner: Spec | None, spec: Spec) -> None:
        if owner is not None:
            raise ValueError(
                f"The {kind} {key!r} is claimed by {spec.name} ({spec.source}), but it belongs to "
                f"{owner.name} ({owner.source}) already. Change one of them."
            )
