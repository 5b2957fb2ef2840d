"""Reads and edits JSON with comments and trailing commas, keeping every other character."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_STRING = r'"(?:\\.|[^"\\\n])*+"?'  # also matches unterminated ones, to stay linear
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")
_LINE = re.compile(r"[^\n]")

_BLANKS = re.compile(r"[ \t\r\n]*")
_REST_OF_LINE = re.compile(r"(?:[ \t]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_INDENTED = re.compile(r'\n([ \t]+)"')
_DECODER = json.JSONDecoder()

Path = Sequence[str | int]
"""Keys of objects, and positions in lists."""


def without_comments(text: str) -> str:
    """Replaces comments by blanks, so that every position and line stays correct."""
    return _COMMENT.sub(_blank, text)


def without_trailing_commas(text: str) -> str:
    """Replaces trailing commas by blanks in a text without comments."""
    return _TRAILING_COMMA.sub(_blank, text)


def _blank(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else _LINE.sub(" ", found[0])


@dataclass(frozen=True, slots=True)
class _Child:
    """A member of an object or an item of a list: where its key, value and end are."""

    name: str | int
    start: int
    value: int
    end: int


class JsonText:
    """A JSON text with positions; each edit returns a new text. An empty text is an empty object.

    Raises ValueError if it is not JSON.
    """

    def __init__(self, text: str) -> None:
        self.text = text if text.strip() else "{}\n"
        self._with_commas = without_comments(self.text)
        self._plain = without_trailing_commas(self._with_commas)
        self.values: Any = json.loads(self._plain)
        self._newline = "\r\n" if "\r\n" in self.text else "\n"
        indented = _INDENTED.search(self.text)
        self._unit = indented[1] if indented else "  "
        self._is_one_line = "\n" not in self.text.strip() and self.text.strip() != "{}"

    def put(self, keys: Path, value: object) -> str:
        """Sets the value at a path; creates the objects that are missing on the way."""
        at = self._skip(0)
        for depth, key in enumerate(keys):
            child = self._find(at, key)
            if child is None:
                return self._insert(at, key, nested(keys[depth + 1 :], value))
            at, last = child.value, child
        indent = self._indent_of(last.start)
        return self.text[:at] + self._dump(value, indent) + self.text[last.end :]

    def add(self, keys: Path, item: object) -> str:
        """Appends an item to the list at a path; creates what is missing."""
        at = self._skip(0)
        for depth, key in enumerate(keys):
            child = self._find(at, key)
            if child is None:
                return self.put(keys[: depth + 1], nested(keys[depth + 1 :], [item]))
            at = child.value
        return self._insert(at, None, item)

    def remove(self, keys: Path) -> str:
        """Removes the member or item at a path, with its comma."""
        at = self._skip(0)
        for key in keys[:-1]:
            child = self._find(at, key)
            if child is None:
                return self.text
            at = child.value
        children, close = self._children(at)
        index = next(i for i, each in enumerate(children) if each.name == keys[-1])
        child, text = children[index], self.text
        start = child.start
        while text[start - 1] in " \t":
            start -= 1
        if text[start - 1] == "\n":
            start -= 2 if text[start - 2] == "\r" else 1
        after = self._skip_to_comma(child.end)
        following = children[index + 1].start if index + 1 < len(children) else close
        if after < following and self._with_commas[after] == ",":
            return text[:start] + text[after + 1 :]
        if index:
            comma = self._with_commas.index(",", children[index - 1].end)
            return text[:comma] + text[comma + 1 : start] + text[child.end :]
        rest = text[child.end :]
        is_bare = self._plain[start - 1] in "{["  # else a comment may end only at the line
        return text[:start] + (rest.lstrip() if is_bare else rest)

    def _insert(self, at: int, key: str | int | None, value: object) -> str:
        """Inserts a member, or an item without a key, as the last one of a container."""
        children, close = self._children(at)
        text = self.text
        if not children:
            if self._is_one_line:
                return text[:close] + self._member(key, value, None) + text[close:]
            base = self._indent_of(at)
            indent = base + self._unit
            head = text[:close].rstrip()
            inner = f"{self._newline}{indent}{self._member(key, value, indent)}"
            return f"{head}{inner}{self._newline}{base}{text[close:]}"
        last = children[-1]
        comma = self._with_commas.find(",", last.end, close)
        after = comma + 1 if comma >= 0 else last.end
        added = "" if comma >= 0 else ","
        trailing = "," if comma >= 0 else ""
        if "\n" not in text[at : children[0].start]:
            blank = " " if ": " in text or ", " in text else ""
            member = self._member(key, value, None)
            return f"{text[:after]}{added}{blank}{member}{trailing}{text[after:]}"
        end = _end_of_line(text, after)
        indent = self._indent_of(last.start)
        member = f"{self._newline}{indent}{self._member(key, value, indent)}{trailing}"
        return text[: last.end] + added + text[last.end : end] + member + text[end:]

    def _member(self, key: str | int | None, value: object, indent: str | None) -> str:
        name = "" if key is None else json.dumps(key, ensure_ascii=False)
        if indent is None:
            dense = ": " not in self.text
            separators = (",", ":") if dense else (", ", ": ")
            shown = json.dumps(value, ensure_ascii=False, separators=separators)
            return f"{name}{separators[1] if name else ''}{shown}"
        return f"{name}{': ' if name else ''}{self._dump(value, indent)}"

    def _dump(self, value: object, indent: str) -> str:
        if self._is_one_line:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, indent=self._unit, ensure_ascii=False).split("\n")
        return f"{self._newline}{indent}".join(lines)

    def _find(self, at: int, key: str | int) -> _Child | None:
        opened = self._plain[at]
        if opened != ("[" if isinstance(key, int) else "{"):
            raise ValueError(f"its {key!r} cannot be written: what holds it is not an object")
        found = [each for each in self._children(at)[0] if each.name == key]
        if len(found) > 1:
            raise ValueError(f"it contains {key!r} twice")
        return found[0] if found else None

    def _children(self, at: int) -> tuple[list[_Child], int]:
        """Returns what an object or a list holds, and the position of its closing bracket."""
        text, found = self._plain, list[_Child]()
        if text[at] not in "{[":
            raise ValueError("it holds a plain value where an object or a list is expected")
        position = self._skip(at + 1)
        while text[position] not in "}]":
            start = value = position
            name: str | int = len(found)
            if text[at] == "{":
                name, end = _DECODER.raw_decode(text, start)
                value = self._skip(self._skip(end) + 1)
            _, end = _DECODER.raw_decode(text, value)
            found.append(_Child(name, start, value, end))
            position = self._skip(end)
            if text[position] == ",":
                position = self._skip(position + 1)
        return found, position

    def _skip(self, position: int) -> int:
        found = _BLANKS.match(self._plain, position)
        return found.end() if found else position

    def _skip_to_comma(self, position: int) -> int:
        found = _BLANKS.match(self._with_commas, position)
        return found.end() if found else position

    def _indent_of(self, position: int) -> str:
        """Returns the indent of the line that contains a position."""
        line = self.text[self.text.rfind("\n", 0, position) + 1 : position]
        return line[: len(line) - len(line.lstrip(" \t"))]


def nested(keys: Path, value: object) -> Any:  # noqa: ANN401  # the value, without keys
    """Wraps a value in an object for each key."""
    for key in reversed(keys):
        value = {key: value}
    return value


def _end_of_line(text: str, position: int) -> int:
    """Returns the position after the comments that follow on the same line."""
    found = _REST_OF_LINE.match(text, position)
    end = found.end() if found else position
    while end > position and text[end - 1] in " \t":
        end -= 1
    return end
