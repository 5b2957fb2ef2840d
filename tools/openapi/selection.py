"""Parts of an answer: those that a call names, in the answer's own shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_MISSING = object()
_EVERY = "*"

_Tree = dict[str, "_Tree"]


def selected(value: Any, paths: Sequence[str]) -> Any:  # noqa: ANN401  # any JSON value
    """A JSON value cut to the parts that are named; None where it has none of them.

    Args:
        value: The value.
        paths: Keys joined by dots; * stands for every key or item, and a key of a list's items may
            follow the list itself: `items.name` is `items.*.name`.
    """
    tree: _Tree = {}
    for path in paths:
        node = tree
        for key in path.split("."):
            node = node.setdefault(key, {})
    found = _cut(value, tree)
    return None if found is _MISSING else found


def _cut(value: Any, tree: _Tree) -> Any:  # noqa: ANN401  # any JSON value
    if not tree:
        return value
    if isinstance(value, Mapping):
        return _keys(value, tree)
    if isinstance(value, list):
        return _items(value, tree)
    return _MISSING


def _keys(value: Mapping[str, Any], tree: _Tree) -> Any:  # noqa: ANN401  # any JSON value
    found = {}
    for key, each in value.items():
        branch = _both(tree.get(key), tree.get(_EVERY))
        if branch is not None and (part := _cut(each, branch)) is not _MISSING:
            found[key] = part
    return found or _MISSING


def _items(value: Sequence[Any], tree: _Tree) -> Any:  # noqa: ANN401  # any JSON value
    keys = {key: each for key, each in tree.items() if key != _EVERY and not key.isdecimal()}
    every = _both(tree.get(_EVERY), keys or None)
    found = []
    for position, each in enumerate(value):
        branch = _both(tree.get(str(position)), every)
        if branch is not None and (part := _cut(each, branch)) is not _MISSING:
            found.append(part)
    return found or _MISSING


def _both(first: _Tree | None, second: _Tree | None) -> _Tree | None:
    """What two trees name together; the empty one names all, and None nothing."""
    if first is None or second is None:
        return second if first is None else first
    if not first or not second:
        return {}
    made = {**first, **second}
    for key in first.keys() & second.keys():
        made[key] = _both(first[key], second[key]) or {}
    return made
