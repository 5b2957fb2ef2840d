r"""Whether a pattern can be tried on a whole text at once instead of on each of its lines.

It can where nothing in it takes a line feed: then it fits in the text if and only if it fits in a
line, with `^` and `$` at every line (MULTILINE), and trying it costs no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from re import _parser  # type: ignore[attr-defined]  # typeshed lacks it; the parser of `re` itself
from typing import Any

__all__ = ["stays_in_line"]

_WITH_LINE_FEED = frozenset({"CATEGORY_SPACE", "CATEGORY_NOT_WORD", "CATEGORY_NOT_DIGIT"})
_OF_WHOLE_TEXT = frozenset({"AT_BEGINNING_STRING", "AT_END_STRING", "AT_NON_BOUNDARY"})
"""Places in a text; `\\B` fits between two line feeds and not in an empty line alone."""
_STAYING = frozenset({"ANY", "GROUPREF", "FAILURE"})
LINE_FEED = ord("\n")

Node = tuple[Any, Any]


def stays_in_line(pattern: str, *, ignore_case: bool) -> bool:
    """Whether no part of a valid pattern takes a line feed, or means the ends of the text."""
    tree = _parser.parse(pattern, re.IGNORECASE if ignore_case else 0)
    return not tree.state.flags & re.DOTALL and _all_stay(tree)


def _all_stay(nodes: Iterable[Node]) -> bool:
    return all(_stays(str(kind), value) for kind, value in nodes)


def _stays(kind: str, value: Any) -> bool:  # noqa: ANN401  # what the node holds
    inner = _inner(kind, value)
    if inner is not None:
        return all(map(_all_stay, inner))
    match kind:
        case "LITERAL":
            return bool(value != LINE_FEED)
        case "NOT_LITERAL":
            return bool(value == LINE_FEED)
        case "AT":
            return str(value) not in _OF_WHOLE_TEXT
        case "IN":
            return not _has_line_feed(value)
    return kind in _STAYING


def _inner(kind: str, value: Any) -> list[Iterable[Node]] | None:  # noqa: ANN401  # what the node holds
    """What a node is made of; None if it is simple, or changes what `.`, `^` and `$` mean."""
    match kind:
        case "SUBPATTERN" if not value[1] & re.DOTALL and not value[2] & re.MULTILINE:
            return [value[3]]
        case "BRANCH":
            return list(value[1])
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [value[2]]
        case "ASSERT" | "ASSERT_NOT":
            return [value[1]]
        case "ATOMIC_GROUP":
            return [value]
    return None


def _has_line_feed(members: Iterable[Node]) -> bool:
    negated = found = False
    for kind, value in members:
        match str(kind):
            case "NEGATE":
                negated = True
            case "LITERAL":
                found |= value == LINE_FEED
            case "RANGE":
                found |= value[0] <= LINE_FEED <= value[1]
            case _:
                found |= str(value) in _WITH_LINE_FEED
    return found is not negated
