"""`typing.TypedDict` as pydantic can read it on Python 3.11, which does not tell it enough."""

from __future__ import annotations

import sys
import typing
from types import UnionType
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

import typing_extensions

__all__ = ["readable"]


def readable(annotation: Any) -> Any:  # noqa: ANN401  # a type of any form
    """The same type, with each `typing.TypedDict` in it rebuilt as `typing_extensions` has it.

    One that refers to itself, or that stands in a model or dataclass, stays as it is, and pydantic
    says of it what to change.
    """
    return annotation if sys.version_info >= (3, 12) else _rebuilt(annotation, ())


def _rebuilt(annotation: Any, inside: tuple[Any, ...]) -> Any:  # noqa: ANN401  # a type of any form
    if typing.is_typeddict(annotation) and annotation not in inside:
        return _rebuilt_dict(annotation, (*inside, annotation))
    origin, arguments = get_origin(annotation), get_args(annotation)
    if not arguments or origin is Literal:
        return annotation
    if origin is Annotated:
        return Annotated[(_rebuilt(arguments[0], inside), *arguments[1:])]
    changed = tuple(_rebuilt(each, inside) for each in arguments)
    if all(new is old for new, old in zip(changed, arguments, strict=True)):
        return annotation
    if origin is UnionType:
        origin = Union
    return origin[changed[0] if len(changed) == 1 else changed]


def _rebuilt_dict(annotation: Any, inside: tuple[Any, ...]) -> Any:  # noqa: ANN401  # a type of any form
    fields = {}
    for name, hint in typing.get_type_hints(annotation, include_extras=True).items():
        bare, needed = _unqualified(hint, needed=name in annotation.__required_keys__)
        field = _rebuilt(bare, inside)
        fields[name] = field if needed else NotRequired[field]
    make: Any = typing_extensions.TypedDict
    made = make(annotation.__name__, fields)
    made.__doc__, made.__module__ = annotation.__doc__, annotation.__module__
    return made


def _unqualified(hint: Any, *, needed: bool) -> tuple[Any, bool]:  # noqa: ANN401  # a type of any form
    """The type without Required and NotRequired, and what these say.

    `__required_keys__` does not know of those that stand in the text of a postponed annotation.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Required, NotRequired):
        return _unqualified(arguments[0], needed=origin is Required)
    if origin is Annotated:
        bare, needed = _unqualified(arguments[0], needed=needed)
        return Annotated[(bare, *arguments[1:])], needed
    return hint, needed
