"""What a resource is: its specification, and the mark that makes a function one."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, NonNegativeInt, PositiveFloat, TypeAdapter, with_config
from typing_extensions import TypedDict, Unpack

from tools.core.content import EmbeddedResource
from tools.core.errors import ToolDefinitionError
from tools.core.spec import DEFAULT_TIMEOUT, checked_options
from tools.core.toolset import ToolOffer

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
RESOURCE_MARK = "__resource_options__"
"""The attribute of a function with the address and the options of each resource that it reads."""

EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")
"""A part of a template that variables fill (RFC 6570)."""

Complete = Callable[[str, str, Mapping[str, str], Any], Awaitable[list[str]]]
"""Values for an argument, given what has been typed of it, the others, and a RequestContext."""


async def complete_nothing(
    _argument: str, _typed: str, _given: Mapping[str, str], _context: object
) -> list[str]:
    """Knows no values."""
    return []


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a template.

    Attributes:
        name: What it is called, as the parameter of the function.
        optional: Whether an address may be without it, as the query is.
    """

    name: str
    optional: bool


def variables_of(uri: str) -> list[Variable]:
    """The variables of a template; none of a plain address."""
    return [
        Variable(name.strip().removesuffix("*"), operator in {"?", "&"})
        for operator, names in EXPRESSION.findall(uri)
        for name in names.split(",")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSpec(ToolOffer):
    """A resource, or all those that a template has addresses for.

    Attributes:
        uri: The address, or the template (RFC 6570).
        title: Name for people.
        description: What is there, for the model.
        mime_type: Its format; empty where that differs or nobody says.
        size: Its bytes.
        audience: Whom it is for.
        priority: How much it matters, up to 1.
        timeout: Seconds that reading may take.
        validate: Checks and converts the variables of an address; raises InvalidArgumentsError.
        read: Reads it with what `validate` returned and a RequestContext. Contents whose address is
            empty are those of the address that is read; none at all are a resource that is not
            there.
        complete: Values that a variable may have.
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
        """Whether it has variables."""
        return bool(variables_of(self.uri))


@with_config(ConfigDict(extra="forbid"))
class ResourceOptions(TypedDict, total=False):
    """Options of a resource, as in ResourceSpec; each that is left out has the default there.

    Attributes:
        name: By default the function's.
        title: By default the name in words.
        description: By default the docstring's.
        complete: A function for each variable whose values it knows. It may take what has been
            typed, as `value`, and other variables of the template by their names.
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


OPTIONS = TypeAdapter(ResourceOptions)


def resource(uri: str, **options: Unpack[ResourceOptions]) -> Callable[[FunctionT], FunctionT]:
    """Marks a function as what reads a resource, or those of a template.

    Args:
        uri: Its address, such as `garden://beds`, or a template whose variables are parameters of
            the function, such as `garden://{bed}`.
        **options: See ResourceOptions.
    """
    if not isinstance(uri, str):
        raise ToolDefinitionError(
            '@resource wants the address at which the function is read: @resource("garden://beds").'
        )
    checked = checked_options(OPTIONS, options, "@resource")

    def mark(function: FunctionT) -> FunctionT:
        setattr(function, RESOURCE_MARK, (*getattr(function, RESOURCE_MARK, ()), (uri, checked)))
        return function

    return mark
