r"""What ripgrep is asked: a pattern of bytes that fits wherever the real one does, and more.

Python's `re` decides what matches; ripgrep only says in which files anything can. So its pattern
may fit too much and must not miss anything, whatever the encoding: a character beyond ASCII is any
one to four high bytes (UTF-8, or UTF-16 as ripgrep transcodes it; one in Latin-1); anchors,
lookarounds and lengths of long repetitions are left out; a back-reference is anything.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from re import _parser  # type: ignore[attr-defined]  # typeshed lacks it; the parser of `re` itself
from typing import Any

__all__ = ["narrowed"]

HIGH = r"\x80-\xff"
ONE_HIGH = rf"[{HIGH}]{{1,4}}"
REST_OF_LINE = r"[^\n]*"
LAST_ASCII, LAST_LATIN_1 = 0x7F, 0xFF
REPLACEMENT = "\ufffd"  # what decoders put for what they cannot read, each its own number of times
CASED = frozenset("kKsSiI")
"""ASCII letters that stand for another beyond ASCII when case is ignored, and the other way."""

MOST_CHARACTERS = 8
"""Repetitions of a character that are asked for at most: ripgrep's automaton grows with them."""

MOST_GROUPS = 2
"""The same of a group, which may hold more groups."""

_ASCII = frozenset(map(chr, range(LAST_ASCII + 1))) - {"\n"}
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}
_NOTHING = frozenset({"AT", "ASSERT", "ASSERT_NOT", "FAILURE"})
_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})

Node = tuple[Any, Any]
Characters = tuple[frozenset[str], bool]
"""The characters of ASCII, but for the line feed, and whether any beyond it is meant too."""


def narrowed(pattern: str, *, ignore_case: bool) -> str | None:
    """A pattern for ripgrep that fits in every line in which a pattern of Python fits.

    Args:
        pattern: Of Python's `re`.
        ignore_case: Whether case is ignored.

    Returns:
        The pattern of bytes; None where it would fit in any line, and so be of no use.

    Raises:
        re.error: If the pattern is malformed; `pos` says where.
        RecursionError: If it is nested too deeply.
        OverflowError: If a repetition is too long.
    """
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of nested sets
        tree = _parser.parse(pattern, re.IGNORECASE if ignore_case else 0)
    try:
        found = _sequence(tree, ignore_case=bool(tree.state.flags & re.IGNORECASE))
    except _NeverInALineError:
        return None
    return f"(?-u){found}" if found and tree.getwidth()[0] else None


class _NeverInALineError(Exception):
    """A part of the pattern fits nothing that is in a line."""


def _sequence(nodes: Iterable[Node], *, ignore_case: bool) -> str:
    return "".join(_node(node, ignore_case=ignore_case) for node in nodes)


def _node(node: Node, *, ignore_case: bool) -> str:
    kind, value = str(node[0]), node[1]
    if kind == "LITERAL" and value > LAST_ASCII and not ignore_case:
        return _encoded(value)
    characters = _characters(kind, value, ignore_case=ignore_case)
    if characters is not None:
        return _class(characters)
    if kind in _NOTHING:
        return ""
    if kind in _REPEATS:
        return _repeat(*value, ignore_case=ignore_case)
    return _group(kind, value, ignore_case=ignore_case)


def _group(kind: str, value: Any, *, ignore_case: bool) -> str:  # noqa: ANN401  # what the node holds
    branches: Sequence[Iterable[Node]]
    match kind:
        case "SUBPATTERN":
            _, added, removed, inner = value
            ignore_case = bool(
                (ignore_case and not removed & re.IGNORECASE) or added & re.IGNORECASE
            )
            branches = [inner]
        case "ATOMIC_GROUP":
            branches = [value]
        case "BRANCH":
            branches = value[1]
        case "GROUPREF_EXISTS":
            branches = [value[1], value[2] or ()]
        case _:
            return REST_OF_LINE
    return _grouped(branches, ignore_case=ignore_case)


def _encoded(code: int) -> str:
    """One character beyond ASCII, in UTF-8 or Latin-1."""
    character = chr(code)
    if character == REPLACEMENT or not character.isprintable():
        return ONE_HIGH
    forms = [character.encode()] + ([bytes([code])] if code <= LAST_LATIN_1 else [])
    return "(?:" + "|".join("".join(rf"\x{byte:02x}" for byte in form) for form in forms) + ")"


def _grouped(branches: Sequence[Iterable[Node]], *, ignore_case: bool) -> str:
    return "(?:" + "|".join(_sequence(each, ignore_case=ignore_case) for each in branches) + ")"


def _repeat(least: int, most: int, inner: Sequence[Node], *, ignore_case: bool) -> str:
    """At least some of them; no more than so many where that is exact."""
    if len(inner) == 1:
        kind, value = inner[0]
        characters = _characters(str(kind), value, ignore_case=ignore_case)
        if characters is not None:
            return _repeated(characters, least, most)
    if most == 0:
        return ""
    inside = _grouped([inner], ignore_case=ignore_case)
    return f"{inside}{{{min(least, MOST_GROUPS)},}}"


def _repeated(characters: Characters, least: int, most: int) -> str:
    ascii_part, beyond = characters
    if not least and not (ascii_part or beyond):
        return ""  # as with `\n?`, which a line can only do without
    upto = most if most <= MOST_CHARACTERS and not beyond else ""
    high = HIGH if beyond else ""
    if not ascii_part and not beyond:
        raise _NeverInALineError
    return f"[{_ranges(ascii_part)}{high}]{{{min(least, MOST_CHARACTERS)},{upto}}}"


def _class(characters: Characters) -> str:
    ascii_part, beyond = characters
    if not ascii_part and not beyond:
        raise _NeverInALineError
    if not ascii_part:
        return ONE_HIGH
    plain = f"[{_ranges(ascii_part)}]"
    return f"(?:{plain}|{ONE_HIGH})" if beyond else plain


def _ranges(characters: AbstractSet[str]) -> str:
    """The inside of a class, neighbours taken together."""
    codes = sorted(map(ord, characters))
    starts = [code for code in codes if code == 0 or chr(code - 1) not in characters]
    ends = [code for code in codes if chr(code + 1) not in characters]
    return "".join(rf"\x{one:02x}-\x{other:02x}" for one, other in zip(starts, ends, strict=True))


def _characters(kind: str, value: Any, *, ignore_case: bool) -> Characters | None:  # noqa: ANN401  # what the node holds
    """The characters that a node stands for; None where it stands for something else."""
    match kind:
        case "LITERAL":
            return _literal(value, ignore_case=ignore_case)
        case "NOT_LITERAL":
            return _ASCII - {chr(value)}, True
        case "ANY":
            return _ASCII, True
        case "IN":
            return _set(value, ignore_case=ignore_case)
    return None


def _literal(code: int, *, ignore_case: bool) -> Characters:
    if code > LAST_ASCII:
        return (CASED if ignore_case else frozenset()), True
    character = chr(code)
    if not ignore_case:
        return _ASCII & {character}, False
    return _ASCII & {character.lower(), character.upper()}, character in CASED


def _set(members: Sequence[Node], *, ignore_case: bool) -> Characters:
    negated = str(members[0][0]) == "NEGATE"
    found: frozenset[str] = frozenset()
    beyond = negated
    for kind, value in members[negated:]:
        match str(kind):
            case "LITERAL":
                some, more = _literal(value, ignore_case=ignore_case and not negated)
            case "RANGE":
                some, more = _range(*value, ignore_case=ignore_case and not negated)
            case _:
                some, more = _category(str(value)), True
        found |= some
        beyond |= more
    return (_ASCII - found if negated else found), beyond


def _range(first: int, last: int, *, ignore_case: bool) -> Characters:
    parts = [
        _literal(code, ignore_case=ignore_case) for code in range(first, min(last, LAST_ASCII) + 1)
    ]
    if last > LAST_ASCII:
        parts.append(_literal(last, ignore_case=ignore_case))
    return frozenset().union(*(some for some, _ in parts)), any(more for _, more in parts)


@cache
def _category(name: str) -> frozenset[str]:
    """The characters of ASCII that `re` itself counts to a category."""
    fits = re.compile(_CATEGORIES[name]).match
    return frozenset(filter(fits, _ASCII))
