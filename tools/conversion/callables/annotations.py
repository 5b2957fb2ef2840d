"""Annotations: where the names in them are looked up, and the types in their brackets."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from tools.core.errors import ToolDefinitionError

__all__ = [
    "bare",
    "is_library",
    "label",
    "local_names",
    "resolve",
    "resolve_class",
    "substituted",
    "type_arguments",
    "with_arguments",
]

LIBRARIES = {"abc", "builtins", "enum", "pydantic", "typing"}
"""Packages that people derive classes from, and that say nothing of these."""


def is_library(found: Any) -> bool:
    """Returns whether a class or function is one of Python's or pydantic's foundations."""
    return str(getattr(found, "__module__", "")).partition(".")[0] in LIBRARIES


def resolve(annotations: Mapping[str, Any], owner: Any) -> dict[str, Any]:
    """Returns annotations with every name in their texts found.

    Args:
        annotations: As written: types, texts, or types with texts in them.
        owner: The function or class whose module and surroundings know the names.

    Raises:
        ToolDefinitionError: If a name is nowhere, or an annotation is not a type.
    """
    names = getattr(owner, "__globals__", None)
    if names is None:
        names = dict(vars(inspect.getmodule(owner) or object))
    return _hints(SimpleNamespace(__annotations__=dict(annotations)), owner, names)


def resolve_class(owner: type) -> dict[str, Any]:
    """Returns the annotations of a class and its bases, each found where its class was written.

    Raises:
        ToolDefinitionError: If a name is nowhere, or an annotation is not a type.
    """
    return _hints(owner, owner, None)


def local_names(owner: Any) -> Iterator[Mapping[str, Any]]:
    """Yields the names around a function or class that its module's own names do not hold.

    These are its closure, then the locals of the functions of its module that are running: one
    of them defined it, where it was defined inside a function at all.
    """
    code = getattr(owner, "__code__", None)
    if code is not None:
        yield {
            name: cell.cell_contents
            for name, cell in zip(code.co_freevars, owner.__closure__ or (), strict=True)
            if _filled(cell)
        }
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == owner.__module__:
            yield frame.f_locals
        frame = frame.f_back


def label(owner: Any) -> str:
    """Returns what a callable is called in messages."""
    return str(getattr(owner, "__qualname__", None) or repr(owner))


def _hints(holder: Any, owner: Any, names: dict[str, Any] | None) -> dict[str, Any]:
    found = {each.__name__: each for each in getattr(owner, "__type_params__", ())}
    while True:
        try:
            return get_type_hints(holder, names, found or None, include_extras=True)
        except NameError as error:
            name = error.name or ""
            if name in found or not _find(name, owner, found):
                raise ToolDefinitionError(
                    f"{label(owner)} has an annotation that names {name!r}, which cannot be "
                    "found; import or define it at the top of its module, and not only under "
                    "`if TYPE_CHECKING:`, which is false when the program runs."
                ) from error
        except (AttributeError, SyntaxError, TypeError) as error:
            raise ToolDefinitionError(
                f"{label(owner)} has an annotation that is not a type: {error}."
            ) from error


def _find(name: str, owner: Any, found: dict[str, Any]) -> bool:
    for names in local_names(owner):
        if name in names:
            found[name] = names[name]
            return True
    return False


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # reading an empty cell raises
    except ValueError:
        return False
    return True


def substituted(annotation: Any, types: Mapping[Any, Any]) -> Any:
    """Returns a type with the ones named replaced, wherever they stand in it."""
    try:
        if annotation in types:
            return types[annotation]
    except TypeError:  # Annotated with metadata that has no hash
        pass
    return with_arguments(annotation, lambda part: substituted(part, types))


def bare(annotation: Any) -> Any:
    """Returns a type without what `Annotated` says of it."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def type_arguments(alias: Any) -> dict[Any, Any]:
    """Returns what the type variables of a generic class are in `Class[...]`."""
    variables = getattr(get_origin(alias), "__parameters__", ())
    return dict(zip(variables, get_args(alias), strict=False))


def with_arguments(annotation: Any, change: Any) -> Any:
    """Returns a type with each of its arguments changed; the same one if none does."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if not arguments or origin is Literal:
        return annotation
    if origin is Annotated:
        inner = change(arguments[0])
        return annotation if inner is arguments[0] else Annotated[(inner, *arguments[1:])]
    changed = tuple(part if isinstance(part, list) else change(part) for part in arguments)
    if all(new is old for new, old in zip(changed, arguments, strict=True)):
        return annotation
    if origin is UnionType:
        origin = Union
    if hasattr(annotation, "copy_with"):  # keeps `List`, `Sequence` and the like as they were
        return annotation.copy_with(changed)
    return origin[changed[0] if len(changed) == 1 else changed]
