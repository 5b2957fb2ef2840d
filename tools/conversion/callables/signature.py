"""Reads a function's signature: the caller's arguments, injected and hidden parameters."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import EllipsisType, GenericAlias, MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import typing_extensions
from pydantic.fields import FieldInfo
from pydantic.json_schema import SkipJsonSchema

from tools.conversion.arguments.input_types import aliases_of, field_of, input_type
from tools.conversion.arguments.validation_errors import nearest
from tools.conversion.callables.annotations import (
    bare,
    is_known,
    label,
    make_readable,
    needed,
    typed_dict_fields,
)
from tools.conversion.callables.callables import (
    NOTHING,
    Declared,
    bound_names,
    callable_signature,
    declared,
    underlying,
)
from tools.conversion.callables.commands import with_option
from tools.conversion.callables.constructors import OMITTED, caller_name
from tools.core.context import RequestContext
from tools.core.errors import ToolDefinitionError
from tools.core.spec import Alias

UNPACK = (typing.Unpack, typing_extensions.Unpack)


@dataclass(frozen=True, slots=True, eq=False)
class Provider:
    """A function that provides the value of the parameters depending on it."""

    function: Callable[..., Any]
    is_shared: bool  # by all parameters of a call that depend on it
    parameters: tuple[Parameter, ...]  # its own, which callers never set


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a function."""

    name: str
    alias: str  # its name for callers
    annotation: Any  # in JSON-readable form: a list for `*args`, Any if untyped
    default: Any  # NOTHING if it is required, OMITTED if the function or pydantic computes it
    kind: Any
    injected: bool  # whether the call path provides it
    provider: Provider | None  # the dependency that provides its value; None for the context
    hidden: bool  # whether callers cannot set it, so that it keeps its default
    field: FieldInfo | None
    aliases: tuple[Alias, ...]  # other names that callers may use


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature of a function, before its types are examined."""

    parameters: tuple[Parameter, ...]  # all in order, including injected and hidden ones
    given: tuple[Parameter, ...]  # those that a caller sets
    extra: Any  # the value type of `**kwargs`, or NOTHING without `**kwargs`
    reserved: frozenset[str]  # names of the function that `**kwargs` cannot accept
    returns: Any  # the resolved return type, or NOTHING if there is none or it cannot be found
    owner: Callable[..., Any]  # the callable inside partials


def read_signature(
    function: Callable[..., Any],
    *,
    hidden: Collection[str] = (),
    rename: Mapping[str, str] = MappingProxyType({}),
) -> Signature:
    """Reads the signature of a function, method, callable object, class or partial of one.

    Hidden parameters keep their defaults; `rename` has the names that callers use, by parameter.
    """
    read = callable_signature(function)
    wanted = _Wanted(hidden, rename, (function,))
    parameters = tuple(
        part for each in read.parameters.values() for part in _parameters(each, wanted)
    )
    _check_given(function, parameters, hidden, rename)
    _check_names(function, parameters)
    returns = read.return_annotation
    if not is_known(returns):
        returns = NOTHING
    make_readable(returns)
    extra = next((each for each in parameters if _takes_more(each)), None)
    shown = [each for each in parameters if not (each.injected or each.hidden)]
    given = tuple(each for each in shown if each.kind is not each.kind.VAR_KEYWORD)
    taken: set[str] = set()
    if extra is not None:
        taken = bound_names(function) | {each.name for each in parameters} - {extra.name}
    return Signature(
        parameters=parameters,
        given=given,
        extra=NOTHING if extra is None else extra.annotation,
        reserved=frozenset(taken - {each.alias for each in given}),
        returns=returns,
        owner=underlying(function),
    )


class _Wanted(NamedTuple):
    """The options of reading parameters, and the chain of functions that depend on them."""

    hidden: Collection[str]
    rename: Mapping[str, str]
    callers: tuple[Any, ...]


def _parameters(parameter: inspect.Parameter, wanted: _Wanted) -> Iterator[Parameter]:
    """Yields the parameter, or one per field for `**kwargs` typed as an unpacked TypedDict."""
    annotation, kind, default = parameter.annotation, parameter.kind, parameter.default
    unpacked = get_args(annotation)[0] if get_origin(annotation) in UNPACK else None
    if unpacked is not None and kind is parameter.VAR_KEYWORD:
        for name, (hint, required) in typed_dict_fields(unpacked).items():
            default = NOTHING if required else OMITTED
            yield _parameter(name, parameter.KEYWORD_ONLY, hint, default, wanted)
        return
    if annotation is NOTHING or type(annotation).__name__.startswith("ParamSpec"):
        annotation = Any
    if kind is parameter.VAR_POSITIONAL:
        if type(unpacked).__name__ == "TypeVarTuple":
            annotation, unpacked = Any, None
        annotation = unpacked or GenericAlias(list, (annotation,))
        default = OMITTED
    yield _parameter(parameter.name, kind, annotation, default, wanted)


def _parameter(name: str, kind: Any, annotation: Any, default: Any, wanted: _Wanted) -> Parameter:
    annotation, default = with_option(name, annotation, default)
    depends = declared(annotation, default)
    provider = None if depends is None else _provider(depends, name, wanted.callers)
    injected = provider is not None or _core_type(annotation) is RequestContext
    is_skipped = get_origin(annotation) is Annotated and any(
        SkipJsonSchema in (each, type(each)) for each in get_args(annotation)[1:]
    )
    hidden = not injected and (name in wanted.hidden or is_skipped)
    if not (injected or hidden):
        _refuse_foreign_context(name, annotation, wanted.callers[-1])
    if isinstance(default, FieldInfo):
        annotation, default = Annotated[annotation, default], NOTHING
    # Pydantic's `Field(...)` is required.
    if default is ... and EllipsisType not in get_args(bare(annotation)):
        default = NOTHING
    field = field_of(annotation)
    if default is NOTHING and field is not None and not field.is_required():
        default = OMITTED if field.default_factory else field.default
    return Parameter(
        name=name,
        alias=wanted.rename.get(name) or (caller_name(field, name) if field else name),
        annotation=annotation if injected or hidden else input_type(needed(annotation)),
        default=default,
        kind=kind,
        injected=injected,
        provider=provider,
        hidden=hidden,
        field=field,
        aliases=aliases_of(annotation),
    )


def _provider(depends: Declared, name: str, callers: tuple[Any, ...]) -> Provider:
    function = depends.function
    if function in callers:
        raise ToolDefinitionError(f"{label(function)} depends on itself; leave out {name}.")
    read = callable_signature(function).parameters
    parameters = [
        part
        for each in read.values()
        if each.kind is not each.VAR_KEYWORD
        for part in _parameters(each, _Wanted(read, {}, (*callers, function)))
    ]
    for each in parameters:
        if each.hidden and each.default is NOTHING:
            raise ToolDefinitionError(
                f"{label(callers[0])} depends on {label(function)}, whose parameter {each.name} "
                "has no value: callers cannot set parameters of dependencies; "
                f"give it a default, or take it in {label(callers[0])}."
            )
    return Provider(function, depends.is_shared, tuple(parameters))


def _check_given(
    function: Callable[..., Any],
    parameters: tuple[Parameter, ...],
    hidden: Collection[str],
    rename: Mapping[str, str],
) -> None:
    known = {each.name: each for each in parameters}
    given = {each.name for each in parameters if not (each.injected or _takes_more(each))}
    for done, names, possible in (("hide", hidden, {*known}), ("rename", rename, given)):
        for name in names:
            if name not in possible:
                meant = nearest(name, possible)
                there = ", ".join(each for each in known if each in possible) or "none"
                raise ToolDefinitionError(
                    f"{label(function)} has no parameter {name!r} to {done}; "
                    + (f"did you mean {meant!r}?" if meant else f"it has {there}.")
                )
    for each in parameters:
        if each.hidden and each.default is NOTHING and each.kind is not each.kind.VAR_KEYWORD:
            raise ToolDefinitionError(
                f"The parameter {each.name} of {label(function)} is hidden and has no value; "
                "give it a default."
            )


def _check_names(function: Callable[..., Any], parameters: tuple[Parameter, ...]) -> None:
    seen: dict[str, str] = {}
    for each in parameters:
        if not (each.injected or each.hidden):
            other = seen.setdefault(each.alias, each.name)
            if other != each.name:
                raise ToolDefinitionError(
                    f"{label(function)} has two parameters that callers know as {each.alias!r}: "
                    f"{other} and {each.name}; change the alias of one."
                )


def _takes_more(parameter: Parameter) -> bool:
    return parameter.kind is inspect.Parameter.VAR_KEYWORD and not parameter.hidden


def _core_type(annotation: Any) -> Any:
    """Returns the type without `Annotated` and without an optional None."""
    annotation = bare(annotation)
    if get_origin(annotation) in (Union, UnionType):
        others = [part for part in get_args(annotation) if part is not NoneType]
        return _core_type(others[0]) if len(others) == 1 else annotation
    return annotation


def _refuse_foreign_context(name: str, annotation: Any, function: Any) -> None:
    """Rejects the Context of the MCP SDK or FastMCP, which only their servers provide."""
    for each in getattr(_core_type(annotation), "__mro__", ()):  # `Context[…]` is a class below it
        if each.__name__ == "Context" and each.__module__.startswith(("fastmcp.", "mcp.")):
            raise ToolDefinitionError(
                f"{label(function)} takes the Context of {each.__module__} as {name}, which is not "
                "filled in here; give it the type RequestContext of tools.authoring, which asks, "
                "samples and logs too."
            )
