"""Replaces values inside a value and leaves the rest untouched."""

from __future__ import annotations

import copy
import dataclasses
from collections import deque
from collections.abc import Callable, Collection
from types import NoneType
from typing import Any

from pydantic import BaseModel

LEAVES = frozenset({NoneType, bool, int, float, str, bytes})
"""Types that contain nothing and are never replaced themselves."""

Change = Callable[[Any], Any]


def replaced(value: Any, change: Change, *, objects: bool = True) -> Any:
    """Applies `change` to a value or, where that changes nothing, to everything inside it.

    It looks into builtin collections, named tuples and, if `objects`, dataclasses and models.
    Without a change it returns the same object, otherwise a copy that its class does not validate
    again.

    Raises:
        RecursionError: If it contains itself or is nested too deeply.
    """
    if type(value) in LEAVES:
        return value

    def inside(part: Any) -> Any:
        if type(part) in LEAVES or isinstance(part, type):
            return part
        changed = change(part)
        if changed is not part:
            return changed
        if isinstance(part, dict):
            return _dict(part, inside)
        if isinstance(part, list | tuple | set | frozenset | deque):
            return _collection(part, inside)
        return _object(part, inside) if objects else part

    return inside(value)


def _collection(values: Any, inside: Change) -> Any:
    items = _items(values, inside)
    if items is None:
        return values
    if hasattr(values, "_make"):
        return values._make(items)
    # A subclass may expect other arguments.
    kinds = (list, tuple, set, frozenset, deque)
    return next(kind for kind in kinds if isinstance(values, kind))(items)


def _dict(values: dict[Any, Any], inside: Change) -> dict[Any, Any]:
    keys, items = _items(values, inside), _items(values.values(), inside)
    if keys is None and items is None:
        return values
    return dict(zip(keys or values, items or values.values(), strict=True))


def _items(values: Collection[Any], inside: Change) -> list[Any] | None:
    """Returns the changed items, or None if all stay the same."""
    if LEAVES.issuperset(map(type, values)):
        return None
    items = [inside(value) for value in values]
    return None if all(new is old for new, old in zip(items, values, strict=True)) else items


def _object(value: Any, inside: Change) -> Any:
    if isinstance(value, BaseModel):
        fields = {**value.__dict__, **(value.__pydantic_extra__ or {})}
        changes = _changes(fields, inside)
        return value.model_copy(update=changes) if changes else value
    if not dataclasses.is_dataclass(value):
        return value
    names = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
    changes = _changes({name: getattr(value, name) for name in names}, inside)
    if not changes:
        return value
    copied = copy.copy(value)
    for name, new in changes.items():
        object.__setattr__(copied, name, new)
    return copied


def _changes(fields: dict[str, Any], inside: Change) -> dict[str, Any]:
    changed = {name: inside(field) for name, field in fields.items()}
    return {name: new for name, new in changed.items() if new is not fields[name]}
