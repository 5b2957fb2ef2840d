"""The signature of a function: what a caller gives, what is injected, and how it is called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from tools.core.context import RequestContext
from tools.core.conversion.typeddicts import readable
from tools.core.errors import ToolDefinitionError

__all__ = ["NOTHING", "Parameter", "Signature", "read_signature", "underlying"]

NOTHING = inspect.Parameter.empty
"""The default of a parameter without one, and the return type of a function without one."""
VARIADIC = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a function.

    Attributes:
        name: As the function spells it.
        annotation: Its resolved type; Any where the function names none.
        default: What it is when left out, or NOTHING; a Field of pydantic's speaks for itself.
        positional_only: Whether it cannot be passed by name.
    """

    name: str
    annotation: Any
    default: Any
    positional_only: bool

    @property
    def injected(self) -> bool:
        """Whether the call path gives it, not the caller."""
        return _plain(self.annotation) is RequestContext

    @property
    def nullable(self) -> bool:
        """Whether its type says None in so many words."""
        return _takes_none(self.annotation)


@dataclass(frozen=True, slots=True)
class Signature:
    """What is known of a function before its types are looked into.

    Attributes:
        parameters: In order, injected ones included.
        returns: The resolved return type, or NOTHING where none is named.
    """

    parameters: tuple[Parameter, ...]
    returns: Any

    @property
    def given(self) -> tuple[Parameter, ...]:
        """The parameters that a caller gives."""
        return tuple(each for each in self.parameters if not each.injected)

    def bind(
        self, values: Mapping[str, Any], context: RequestContext
    ) -> tuple[list[Any], dict[str, Any]]:
        """The positional and the named arguments of one call.

        Args:
            values: By parameter; one that is not there keeps the function's own default.
            context: For the injected parameters.
        """
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for parameter in self.parameters:
            value = context if parameter.injected else values.get(parameter.name, parameter.default)
            if parameter.positional_only:
                positional.append(value)
            elif parameter.injected or parameter.name in values:
                named[parameter.name] = value
        return positional, named


def underlying(function: Callable[..., Any]) -> Callable[..., Any]:
    """The callable inside any number of partials."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def read_signature(function: Callable[..., Any], *, hidden: Collection[str] = ()) -> Signature:
    """Reads a function's signature, its annotations resolved.

    Args:
        function: A function, bound method, callable object, class or partial of one.
        hidden: Parameters that callers neither see nor give.

    Raises:
        ToolDefinitionError: If it has no signature, an annotation names nothing that can be found,
            or it takes arguments that a JSON object cannot say.
    """
    try:
        signature = inspect.signature(function)
    except ValueError as error:
        raise ToolDefinitionError(
            f"{function!r} has no signature that Python can read; wrap it in a function with typed "
            "parameters."
        ) from error
    definition = _definition(function)
    hints = _hints(definition)
    parameters = tuple(
        _parameter(definition, parameter, hints) for parameter in signature.parameters.values()
    )
    _refuse_unbound(definition, parameters)
    returns = hints.get("return", signature.return_annotation)
    called = underlying(function)
    return Signature(parameters, called if inspect.isclass(called) else readable(returns))


def _parameter(
    definition: Callable[..., Any], parameter: inspect.Parameter, hints: Mapping[str, Any]
) -> Parameter:
    name = parameter.name
    if parameter.kind in VARIADIC:
        stars = VARIADIC[parameter.kind]
        raise ToolDefinitionError(
            f"{_label(definition)} takes {stars}{name}, which has no names to put into a schema; "
            f"declare one parameter instead, such as {name}: "
            f"{'list[str]' if stars == '*' else 'dict[str, str]'}."
        )
    annotation = hints.get(name, parameter.annotation)
    return Parameter(
        name=name,
        annotation=Any if annotation is NOTHING else readable(annotation),
        default=parameter.default,
        positional_only=parameter.kind is parameter.POSITIONAL_ONLY,
    )


def _definition(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose annotations and globals count: inside partials, wrappers and objects."""
    definition: Any = inspect.unwrap(underlying(function))
    if inspect.isclass(definition):
        definition = definition.__init__
    elif not inspect.isroutine(definition):
        definition = type(definition).__call__
    unwrapped: Callable[..., Any] = inspect.unwrap(definition)
    return unwrapped


def _hints(definition: Callable[..., Any]) -> dict[str, Any]:
    """The resolved annotations; names of enclosing functions are found as well as global ones."""
    found: dict[str, Any] = {}
    while True:
        try:
            return get_type_hints(definition, localns=found or None, include_extras=True)
        except NameError as error:
            name = error.name or ""
            if name in found or not _find_local(definition, name, found):
                raise ToolDefinitionError(
                    f"{_label(definition)} has an annotation that names {name!r}, which "
                    "cannot be found; import or define it at the top of its module."
                ) from error
        except (AttributeError, SyntaxError, TypeError) as error:
            raise ToolDefinitionError(
                f"{_label(definition)} has an annotation that is not a type: {error}."
            ) from error


def _find_local(definition: Callable[..., Any], name: str, found: dict[str, Any]) -> bool:
    """Looks a name up in the function's closure, then in the functions that are converting it."""
    scopes = [inspect.getclosurevars(definition).nonlocals] if definition.__closure__ else []
    frame = inspect.currentframe()
    while frame is not None:
        scopes.append(frame.f_locals)
        frame = frame.f_back
    for scope in scopes:
        if name in scope:
            found[name] = scope[name]
            return True
    return False


def _refuse_unbound(definition: Callable[..., Any], parameters: tuple[Parameter, ...]) -> None:
    first = parameters[0] if parameters else None
    if first and first.name in {"self", "cls"} and first.annotation is Any:
        raise ToolDefinitionError(
            f"{_label(definition)} is a method without its object; convert the method of an "
            "instance (or of the class, for a classmethod) instead."
        )


def _plain(annotation: Any) -> Any:  # noqa: ANN401  # a type of any form
    """The type without `Annotated` and without None beside it."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        others = [part for part in get_args(annotation) if part is not NoneType]
        return _plain(others[0]) if len(others) == 1 else annotation
    return annotation


def _takes_none(annotation: Any) -> bool:  # noqa: ANN401  # a type of any form
    """Whether a type says None in so many words."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _takes_none(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return any(_takes_none(part) for part in get_args(annotation))
    if origin is Literal:
        return None in get_args(annotation)
    return annotation is None or annotation is NoneType


def _label(definition: Callable[..., Any]) -> str:
    return getattr(definition, "__qualname__", repr(definition))
