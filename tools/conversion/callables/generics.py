"""Types that hold other types: type variables, `Self` and what else stands in their brackets."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

__all__ = ["bare", "substituted", "type_arguments", "with_arguments"]


def substituted(annotation: Any, types: Mapping[Any, Any]) -> Any:
    """A type with the ones named replaced, wherever they stand in it."""
    try:
        if annotation in types:
            return types[annotation]
    except TypeError:  # Annotated with metadata that has no hash
        pass
    return with_arguments(annotation, lambda part: substituted(part, types))


def bare(annotation: Any) -> Any:
    """A type without what `Annotated` says of it."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def type_arguments(alias: Any) -> dict[Any, Any]:
    """What the type variables of a generic class are in `Class[...]`."""
    variables = getattr(get_origin(alias), "__parameters__", ())
    return dict(zip(variables, get_args(alias), strict=False))


def with_arguments(annotation: Any, change: Any) -> Any:
    """A type with each of its arguments changed; the same one if none does."""
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
