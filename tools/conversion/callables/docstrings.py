"""Parses docstrings into a description and the texts of parameters, results and exceptions.

Google, NumPy, reST and Epytext styles are recognized section by section, so a docstring may mix
them.
"""

from __future__ import annotations

import inspect
import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_origin

from tools.conversion.callables.annotations import is_library
from tools.conversion.callables.callables import underlying

PARAMETERS = {
    *("args", "arguments", "attributes", "params", "parameters", "other parameters"),
    *("keyword args", "keyword arguments", "keyword parameters"),
}
RAISES = {"exceptions", "except", "raises"}
RETURNS = {"return", "returns", "yield", "yields"}
SECTIONS = PARAMETERS | RAISES | RETURNS
"""Titles of sections that document the signature; other sections are description."""
MARK = re.compile(r"^[ \t]*(?:[:@]\w|[-=]{3,}[ \t]*$)|:[ \t]*$", re.MULTILINE)
"""Matches what a section or field of any style contains; most docstrings have none."""
GOOGLE_TITLE = re.compile(r"(?P<title>[A-Za-z][A-Za-z ]+):")
UNDERLINE = re.compile(r"(-{3,}|={3,})")
HEADING = re.compile(r"[A-Z]\w*( \w+)*")
"""The title of a NumPy section unrelated to the signature, such as `See Also`."""
ITEM = re.compile(
    r"(?P<name>[\\*]*\w+(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+)[\\*]*\w+)*)\s*(?:\((?P<type>.*?)\))?\s*"
    r"(?::(?!:)|\s-{1,2}\s)\s*(?P<text>.*)"
)
"""`name: text`, `name (type): text`, `name - text` and `*name, **other: text`."""
SEVERAL = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")
"""Separates names that share a text."""
RAISED = re.compile(r"(?P<name>[\w.]+)\s*:\s*(?P<text>.*)")
TYPED_RESULT = re.compile(
    r"[\w.]++(?>\[[^:]*\])?+(?>\s*(?:\||,|or)\s*[\w.]++(?>\[[^:]*\])?+)*+\s*:\s+(?=\S)"
)
"""The type before the text of a result: `int: How many.`"""
FIELD = re.compile(r"[:@](?P<kind>[a-z]+)(?:\s+(?P<about>[^:]*))?:(?!`)\s*(?P<text>.*)")
"""`:param name: text` and `@param name: text`, but not the role in ":class:`Name` of …"."""
PARAMETER_FIELDS = {
    *("arg", "argument", "param", "parameter", "key", "keyword", "kwarg"),
    *("attribute", "cvar", "ivar", "var"),
}
RETURN_FIELDS = {"return", "returns", "yield", "yields"}
RAISE_FIELDS = {"except", "exception", "raise", "raises"}
TYPE_FIELDS = {"rtype", "type", "vartype", "ytype"}


@dataclass(slots=True)
class Documentation:
    """The parts of a docstring: the texts of parameters, result and exceptions, and the rest."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    returns: str = ""
    raises: dict[str, str] = field(default_factory=dict)


def read_docstring(text: str | None) -> Documentation:
    """Parses a docstring of Google, NumPy, reST or Epytext style.

    Text without marks of any style is description. None and "" give an empty Documentation.
    """
    if not text:
        return Documentation()
    text = inspect.cleandoc(text)
    if not MARK.search(text):
        return Documentation(text)
    parsed = Documentation()
    lines = text.split("\n")
    place = 0
    while place < len(lines):
        place = _read_block(lines, place, parsed)
    parsed.description = re.sub(r"\n{3,}", "\n\n", parsed.description).strip()
    return parsed


def _read_block(lines: Sequence[str], place: int, parsed: Documentation) -> int:
    """Reads a section, a field or a line of description; returns where the next one begins."""
    line = lines[place]
    stripped = line.strip()
    found = FIELD.fullmatch(_joined([line]))
    if found and _read_field(lines, place, found, parsed):
        return _end_of_field(lines, place)
    if _is_underlined(lines, place) and stripped.lower() in SECTIONS:
        end = _end_of_numpy(lines, place + 2)
        _read_numpy(stripped.lower(), lines[place + 2 : end], parsed)
        return end
    title = GOOGLE_TITLE.fullmatch(stripped)
    if title and title["title"].lower() in SECTIONS:
        end = _end_of_google(lines, place)
        if _read_google(title["title"].lower(), lines[place + 1 : end], parsed):
            return end
    is_heading = HEADING.fullmatch(line) and _is_underlined(lines, place)
    if is_heading and len(lines[place + 1].rstrip()) >= len(line):
        parsed.description += f"{line}:\n"
        return place + 2
    parsed.description += f"{line}\n"
    return place + 1


def _read_google(title: str, lines: Sequence[str], parsed: Documentation) -> bool:
    """Reads a Google section; returns False if nothing in it looks like one."""
    if title in RETURNS:
        text = _joined(lines)
        typed = TYPED_RESULT.match(text)
        parsed.returns = text[typed.end() :] if typed else text
        return True
    into = parsed.raises if title in RAISES else parsed.parameters
    pattern = RAISED if title in RAISES else ITEM
    items = [(SEVERAL.split(names), text) for names, text in _items(lines, pattern) if text]
    found = {_bare(name): text for names, text in items for name in names}
    into.update(found)
    return bool(found) or not _joined(lines)


def _items(lines: Sequence[str], pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yields the items of a section; each begins at a line no deeper than the first."""
    depth, name, texts = None, "", list[str]()
    for line in lines:
        indent = len(line) - len(line.lstrip())
        depth = indent if depth is None and line.strip() else depth
        found = pattern.fullmatch(_joined([line])) if indent <= (depth or 0) else None
        if found:
            if name:
                yield name, _joined(texts)
            name, texts = found["name"], [found["text"]]
        else:
            texts.append(line)
    if name:
        yield name, _joined(texts)


def _end_of_google(lines: Sequence[str], title: int) -> int:
    """Returns where a section ends: before a line no deeper than its title that is not an item.

    Items that the author forgot to indent directly follow the title, without an empty line.
    """
    depth = len(lines[title]) - len(lines[title].lstrip())
    after_gap = False
    for place in range(title + 1, len(lines)):
        line = lines[place]
        if not line.strip():
            after_gap = True
        elif len(line) - len(line.lstrip()) <= depth:
            is_title = GOOGLE_TITLE.fullmatch(line.strip())
            if after_gap or is_title or not ITEM.fullmatch(_joined([line])):
                return place
    return len(lines)


def _read_numpy(title: str, lines: Sequence[str], parsed: Documentation) -> None:
    entries: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.strip() and not line[0].isspace():
            entries.append((_joined([line]), []))
        elif entries:
            entries[-1][1].append(line)
    for head, texts in entries:
        text = _joined(texts)
        if title in RETURNS:
            parsed.returns = parsed.returns or text or head
        elif title in RAISES:
            parsed.raises[head] = text
        elif text:
            names = SEVERAL.split(head.partition(" :")[0].partition(": ")[0])
            parsed.parameters.update(dict.fromkeys(map(_bare, names), text))


def _end_of_numpy(lines: Sequence[str], start: int) -> int:
    """Returns where a section ends: at an underlined title, or at text after an empty line."""
    for place in range(start, len(lines)):
        if _is_underlined(lines, place):
            return place
        line = lines[place]
        below = lines[place + 1] if place + 1 < len(lines) else ""
        is_entry = " : " in line or (below[:1].isspace() and below.strip())
        follows_gap = place > start and not lines[place - 1].strip()
        if line.strip() and not line[0].isspace() and follows_gap and not is_entry:
            return place
    return len(lines)


def _read_field(
    lines: Sequence[str], place: int, found: re.Match[str], parsed: Documentation
) -> bool:
    kind, about = found["kind"], (found["about"] or "").split()
    text = _joined([found["text"], *lines[place + 1 : _end_of_field(lines, place)]])
    if kind in PARAMETER_FIELDS and about:
        if text:
            parsed.parameters[_bare(about[-1])] = text
    elif kind in RETURN_FIELDS:
        parsed.returns = text
    elif kind in RAISE_FIELDS:
        parsed.raises[" ".join(about)] = text
    else:
        return kind in TYPE_FIELDS
    return True


def _end_of_field(lines: Sequence[str], start: int) -> int:
    """Returns where a field ends: at the next, or at an unindented line after an empty one."""
    depth = len(lines[start]) - len(lines[start].lstrip())
    gap = False
    for place in range(start + 1, len(lines)):
        line = lines[place]
        if not line.strip():
            gap = True
            continue
        indented = len(line) - len(line.lstrip()) > depth
        if FIELD.fullmatch(_joined([line])) or (gap and not indented):
            return place
    return len(lines)


def _is_underlined(lines: Sequence[str], place: int) -> bool:
    return (
        place + 1 < len(lines)
        and bool(lines[place].strip())
        and UNDERLINE.fullmatch(lines[place + 1].strip()) is not None
    )


def _bare(name: str) -> str:
    return name.strip().lstrip("\\*").strip("`:")


def _joined(lines: Iterable[str]) -> str:
    return " ".join(" ".join(lines).split())


def documentation(function: Any) -> Documentation:
    """Returns the documentation of a function, method, class or object with `__call__`.

    The first description found wins: a class's own before that of its `__init__`, an object's
    `__call__` before its class. Parameter texts are collected from all of them.
    """
    called = underlying(function)
    cls: Any = get_origin(called) or called
    read = [read_docstring(text) for text in _docstrings(called, cls)]
    first = next((each for each in read if each.description), read[0])
    inherited = _inherited(cls) if inspect.isclass(cls) else []
    if len(read) == 1 and not inherited:
        return first
    texts = ChainMap(*(each.parameters for each in read), *inherited)
    return replace(first, parameters=dict(texts))


def inherited_texts(cls: type) -> dict[str, str]:
    """Returns the texts of attributes that the docstrings of base classes have.

    The class's own texts are left out: they count instead.
    """
    inherited = _inherited(cls)
    if not any(inherited):
        return {}
    own = read_docstring(_own_docstring(cls)).parameters
    return {name: text for name, text in ChainMap(*inherited).items() if name not in own}


def _inherited(cls: type) -> list[dict[str, str]]:
    bases = [base for base in cls.__mro__[1:] if not is_library(base)]
    return [read_docstring(_own_docstring(base)).parameters for base in bases]


def description(parsed: Documentation) -> str:
    """Returns a tool's description: what it does, its result, and its exceptions.

    The result's text is also in the output schema, which few clients show to a model.
    """
    parts = [parsed.description]
    if parsed.returns:
        parts.append(f"Returns: {parsed.returns}")
    raised = [f"{name}: {text}".rstrip(". :") for name, text in parsed.raises.items()]
    if raised:
        parts.append(f"Raises: {'; '.join(raised)}")
    return "\n\n".join(filter(None, parts))


def _docstrings(function: Any, cls: Any) -> Iterator[str | None]:
    if inspect.isclass(cls):
        yield _own_docstring(cls)
        if inspect.isfunction(cls.__init__) and not is_library(cls.__init__):
            yield cls.__init__.__doc__
    elif inspect.isroutine(function):
        yield inspect.getdoc(function)
    else:
        yield vars(function).get("__doc__") if hasattr(function, "__dict__") else None
        yield type(function).__call__.__doc__
        yield inspect.getdoc(function)


def _own_docstring(cls: type) -> str | None:
    """Returns a class's docstring, unless Python generated it, such as `Point(x: int, y: int)`."""
    text = vars(cls).get("__doc__")
    written = isinstance(text, str) and text.startswith(f"{cls.__name__}(")
    return None if written or text == "An enumeration." else text
