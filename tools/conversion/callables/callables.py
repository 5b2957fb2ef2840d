"""Reads the signature that a call must match, with every type in it resolved.

`inspect.signature` reads most of them. It is wrong where a wrapper takes other arguments than the
function it wraps, it does not resolve string annotations, and it ignores the fields of a class.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, MethodType
from typing import Annotated, Any, NamedTuple, get_args, get_origin

import typing_extensions

from tools.conversion.callables.annotations import (
    bare,
    label,
    python_signature,
    resolve,
    substituted,
)
from tools.conversion.callables.constructors import class_signature
from tools.core.errors import ToolDefinitionError

NOTHING = inspect.Parameter.empty
"""The default of a parameter without one, and the return type of a function without one."""
UNCALLABLE = {
    property: "a property: its value is read, not called",
    functools.cached_property: "a property: its value is read, not called",
    classmethod: "a classmethod outside its class: take it from the class, as in Class.method",
    functools.partialmethod: "a partialmethod outside its class: take it from an instance",
    functools.singledispatchmethod: "a method outside its class: take it from an instance",
}
ENTERED = "a context manager: it is entered, not called for a result"
UNCALLABLE_CODE = {
    "asynccontextmanager.<locals>.helper": ENTERED,
    "contextmanager.<locals>.helper": ENTERED,
    "partialmethod._make_unbound_method.<locals>._method": "a method without its object: "
    "take it from an instance",
}
"""Reasons for functions that Python's own decorators create, by the names of their code."""


def underlying(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the callable inside any number of partials."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def callable_signature(function: Any) -> inspect.Signature:
    """Returns the parameters and the return type of a call, with all types resolved."""
    reason = UNCALLABLE.get(type(function)) or UNCALLABLE_CODE.get(_made_by(function))
    reason = reason or (None if callable(function) else "not callable")
    if reason is not None:
        raise ToolDefinitionError(f"{function!r} is {reason}; convert a function instead.")
    _refuse_unbound(function)
    return _signature(function)


def _signature(function: Any) -> inspect.Signature:
    if isinstance(function, functools.partial):
        return _of_partial(function)
    if isinstance(function, MethodType):
        return _of_method(function)
    if inspect.isclass(get_origin(function) or function):
        return class_signature(function, _signature)
    general = _general(function)
    if general is not None:
        return _by_place(_signature(general), 1)
    own = _own_signature(function)
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is None or "__signature__" in getattr(function, "__dict__", {}):
        if own is None:
            raise ToolDefinitionError(
                f"{function!r} has no signature that Python can read; wrap it in a function with "
                "typed parameters."
            )
        return own
    inner = _signature(wrapped)
    return inner if own is None else _through(own, inner)


def _general(function: Any) -> Any:
    """Returns the default implementation of a `singledispatch` function, or None for others.

    It dispatches on the type of the first argument, which must be positional.
    """
    if inspect.isfunction(getattr(function, "dispatch", None)):
        return function.__wrapped__
    receiver = _dispatch_receiver(function)
    return None if receiver is NOTHING else MethodType(function.__wrapped__, receiver)


def _dispatch_receiver(function: Any) -> Any:
    """Returns the object a `singledispatchmethod` is bound to, or None if taken from its class.

    Returns NOTHING for any other callable.
    """
    if _made_by(function) == "singledispatchmethod.__get__.<locals>._method":
        return inspect.getclosurevars(function).nonlocals["obj"]
    if type(function) is getattr(functools, "_singledispatchmethod_get", None):  # Python 3.14
        return vars(function)["_obj"]
    return NOTHING


def _of_partial(function: functools.partial[Any]) -> inspect.Signature:
    def stub() -> None: ...

    stub.__signature__ = _signature(function.func)  # type: ignore[attr-defined]  # inspect reads it
    try:
        return inspect.signature(functools.partial(stub, *function.args, **function.keywords))
    except ValueError as error:
        raise ToolDefinitionError(
            f"{function!r} binds arguments that {label(function.func)} does not take."
        ) from error


def _of_method(method: MethodType) -> inspect.Signature:
    signature = _signature(method.__func__)
    receiver = method.__self__ if inspect.isclass(method.__self__) else type(method.__self__)
    kept = list(signature.parameters.values())
    if kept and kept[0].kind is not inspect.Parameter.VAR_POSITIONAL:
        del kept[0]
    own_type = {typing_extensions.Self: receiver}
    hints = {name: substituted(hint, own_type) for name, hint in _hints(signature).items()}
    return _retyped(signature.replace(parameters=kept), hints)


def _own_signature(function: Any) -> inspect.Signature | None:
    """Returns the callable's own signature without what it wraps, or None if unreadable."""
    is_function = isinstance(function, FunctionType) or inspect.isroutine(function)
    if not is_function and isinstance(type(function).__call__, FunctionType):
        return _signature(MethodType(type(function).__call__, function))
    try:
        signature = python_signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return None
    named = {name: hint for name, hint in _hints(signature).items() if hint is not NOTHING}
    return _retyped(signature, resolve(named, function)) if named else signature


def _hints(signature: inspect.Signature) -> dict[str, Any]:
    named = {each.name: each.annotation for each in signature.parameters.values()}
    return {**named, "return": signature.return_annotation}


def _retyped(signature: inspect.Signature, hints: dict[str, Any]) -> inspect.Signature:
    """Changes the types of a signature; unchanged parts are reused, since copying is slow."""
    changed = [
        each
        if (hint := hints.get(each.name, NOTHING)) is each.annotation
        else each.replace(annotation=hint)
        for each in signature.parameters.values()
    ]
    returns = hints.get("return", NOTHING)
    if returns is signature.return_annotation and all(
        new is old for new, old in zip(changed, signature.parameters.values(), strict=True)
    ):
        return signature
    return signature.replace(parameters=changed, return_annotation=returns)


def _through(own: inspect.Signature, inner: inspect.Signature) -> inspect.Signature:
    """Returns a wrapper's signature: the wrapped function's if it forwards arguments."""
    kinds = {each.kind for each in own.parameters.values()}
    names_pass = inspect.Parameter.VAR_KEYWORD in kinds
    positions_pass = inspect.Parameter.VAR_POSITIONAL in kinds or not any(
        each.kind is each.POSITIONAL_ONLY for each in inner.parameters.values()
    )
    if inspect.Parameter.VAR_POSITIONAL in kinds and not names_pass:
        return _by_place(inner, len(inner.parameters))
    if not (names_pass and positions_pass):
        return own
    added = [
        each.replace(kind=each.KEYWORD_ONLY)
        for each in own.parameters.values()
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        and each.name not in inner.parameters
    ]
    kept = list(inner.parameters.values())
    place = len(kept) - (bool(kept) and kept[-1].kind is inspect.Parameter.VAR_KEYWORD)
    return inner.replace(parameters=[*kept[:place], *added, *kept[place:]])


def _by_place(signature: inspect.Signature, count: int) -> inspect.Signature:
    kept = list(signature.parameters.values())
    for place, each in enumerate(kept[:count]):
        if each.kind is each.POSITIONAL_OR_KEYWORD:
            kept[place] = each.replace(kind=each.POSITIONAL_ONLY)
    by_name = [each for each in kept if each.kind in (each.KEYWORD_ONLY, each.VAR_KEYWORD)]
    if count > 1 and by_name:
        kept = [each for each in kept if each not in by_name]
    return signature.replace(parameters=kept)


def _made_by(function: Any) -> str:
    """Returns the name of a function's own code, whatever its `__name__`; "" if it has none.

    A bound method has the code of its function.
    """
    return str(getattr(getattr(function, "__code__", None), "co_qualname", ""))


def _refuse_unbound(function: Any) -> None:
    called = underlying(function)
    inner = inspect.unwrap(called)
    receiver = _dispatch_receiver(called)
    bound = isinstance(called, MethodType) or (receiver is not None and receiver is not NOTHING)
    if isinstance(function, functools.partial):
        bound = bound or bool(function.args)
    if not bound and (hasattr(inner, "__objclass__") or _wants_its_object(inner, called)):
        raise ToolDefinitionError(
            f"{label(inner)} is a method without its object; convert the method of an instance "
            "(or of the class, for a classmethod) instead."
        )


def _wants_its_object(function: Any, called: Any) -> bool:
    """Returns whether a function was taken from its class, and so expects `self` first.

    A class inside a function cannot be found by name. A static method of such a class is recognized
    by its staticmethod object, which refers to `called`: the function or its decorated form.
    """
    if not isinstance(function, FunctionType) or not function.__code__.co_argcount:
        return False
    holder, _, name = function.__code__.co_qualname.rpartition(".")
    if not holder or holder.endswith("<locals>") or name == "<lambda>":
        return False
    owner: Any = inspect.getmodule(function)
    for part in holder.split("."):
        owner = getattr(owner, part, None)
    if inspect.isclass(owner) and name in vars(owner):
        return not isinstance(vars(owner)[name], staticmethod)
    return not any(isinstance(each, staticmethod) for each in gc.get_referrers(called))


def bound_names(function: Callable[..., Any]) -> set[str]:
    """Returns the parameter names that may already be bound by the object or a partial."""
    inner: Any = inspect.unwrap(underlying(function))
    if inspect.isclass(inner):
        inner = inner.__init__
    elif not inspect.isroutine(inner):
        inner = type(inner).__call__
    code = getattr(inner, "__code__", None)
    if code is None:
        return set()
    last = code.co_argcount + code.co_kwonlyargcount
    return set(code.co_varnames[code.co_posonlyargcount : last])


NAME = re.compile(r"[a-z0-9_]{1,64}")
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""The boundary between two words of a name such as `getUser` or `HTTPGet`."""


def tool_name(function: Any, name: str | None) -> str:
    """Returns the chosen name of a tool, or the callable's own name in snake case."""
    # Pydantic names a generic model `Box[int]`.
    own = _own_name(function).partition("[")[0]
    found = HUMP.sub("_", own).lower().strip("_") if name is None else name
    if not NAME.fullmatch(found):
        raise ToolDefinitionError(
            f"{found!r} cannot be the name of a tool ({function!r}); name it with 1 to 64 "
            "lowercase letters, digits and underscores, as in @tool(name='…')."
        )
    return found


def title_of(name: str) -> str:
    """Returns a readable title made from a name, for tools without a title."""
    return name.replace("_", " ").strip().capitalize()


def _own_name(function: Any) -> str:
    called = function if hasattr(function, "__name__") else underlying(function)
    if getattr(called, "__name__", "") == "__call__":  # obj.__call__ is obj
        called = getattr(called, "__self__", called)
    if inspect.isclass(get_origin(called)):
        called = get_origin(called)
    return str(getattr(called, "__name__", type(called).__name__))


CLASSES = {"Dependant", "Depends", "Dependency"}
"""Class names of dependencies in FastAPI, fast_depends, Toolcrib and FastMCP."""


class Declared(NamedTuple):
    """The dependency that a parameter declares: the function that provides its value."""

    function: Callable[..., Any]
    is_shared: bool  # by all parameters of a call that depend on the function


def declared(annotation: Any, default: Any) -> Declared | None:
    """Returns the `Depends` in a parameter's type or default, or None."""
    marker = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    for each in (*marker, default):
        if not CLASSES.isdisjoint(cls.__name__ for cls in type(each).__mro__):
            return Declared(_function(each, bare(annotation)), getattr(each, "use_cache", True))
    return None


def depended_on(functions: Iterable[Callable[..., Any]]) -> Iterator[Callable[..., Any]]:
    """Yields the functions that any of these depends on directly, unwrapped."""
    for function in functions:
        with contextlib.suppress(ToolDefinitionError):
            for each in callable_signature(_unmanaged(function)).parameters.values():
                if depends := declared(each.annotation, each.default):
                    yield inspect.unwrap(underlying(depends.function))


def _function(marker: Any, annotation: Any) -> Callable[..., Any]:
    """Returns the function that provides the value; FastAPI's `Depends()` means the type itself."""
    function = getattr(marker, "dependency", None) or getattr(marker, "factory", None)
    if function is None and hasattr(marker, "dependency"):
        function = annotation
    if not callable(function):
        raise ToolDefinitionError(
            f"{marker!r} belongs to another framework; use Depends of tools.authoring."
        )
    function = _unmanaged(function)
    bindings = getattr(marker, "bindings", {})
    return functools.partial(function, **bindings) if bindings else function


def _unmanaged(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the generator inside a function decorated as a context manager."""
    is_manager = UNCALLABLE_CODE.get(_made_by(function)) is ENTERED
    return inspect.unwrap(function) if is_manager else function
