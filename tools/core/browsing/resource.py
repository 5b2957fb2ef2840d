"""Defines resources: their specification and the `@resource` decorator."""

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
class Variable:
    """A variable of a template.

    Attributes:
        name: Its name, which is also the function's parameter.
        optional: Whether an address may omit it, as a query variable.
    """

    name: str
    optional: bool


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


OPTIONS = TypeAdapter(ResourceOptions)


def resource(uri: str, **options: Unpack[ResourceOptions]) -> Callable[[FunctionT], FunctionT]:
    """Marks a function as the reader of a resource, or of a template's resources.

    Args:
        uri: Its address, such as `garden://beds`, or a template whose variables are parameters of
            the function, such as `garden://{bed}`.
        **options: See ResourceOptions.
    """
    if not isinstance(uri, str):
        raise ToolDefinitionError('@resource needs an address, as in @resource("garden://beds").')
    checked = checked_options(OPTIONS, options, "@resource")

    def mark(function: FunctionT) -> FunctionT:
        setattr(function, RESOURCE_MARK, (*getattr(function, RESOURCE_MARK, ()), (uri, checked)))
        return function

    return mark
