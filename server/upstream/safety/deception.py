"""Finds text in a definition that is meant to deceive its readers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import mcp_types as types

from tools.conversion.confusables import is_mixed
from tools.core.unicode_safety import codes, hidden

LONGEST_DEFINITION = 100_000
"""Maximum length of a definition as JSON; of 15,000 public ones the longest has 15,000."""

_AROUND = 40
"""Characters shown on both sides of a finding."""

_NAME = re.compile(
    r"(?<![\w./-])(?:"
    r"[A-Za-z][A-Za-z0-9-]*(?:_+[A-Za-z0-9-]+)+"  # create_issue
    r"|[a-z][a-z0-9]{2,}(?:[A-Z][a-z0-9]*)+"  # createIssue, but not GitHub or arXiv
    r"|[a-z][a-z0-9]*(?:-[a-z0-9]+){2,}"  # create-new-issue, but not real-time
    r")(?![\w/-])"
    r"|(?<=`)[A-Za-z]\w*-[\w-]*+(?=`)"  # linear, also where no backtick follows
)
_BLANK = re.compile(r"\s")
_CALLED = re.compile(
    r"\b[Tt]he [`\"'“‘]?([A-Za-z]\w*)[`\"'”’]? tools?\b"  # noqa: RUF001  # people's quotation marks
    r"|\b[Tt]ools? [`\"'“‘]([A-Za-z]\w*)[`\"'”’]"  # noqa: RUF001  # the same
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason for review of a definition."""

    reason: str  # in our own words: models may read it
    shown: str  # the surrounding text, for users


def findings(tool: types.Tool, definition: str) -> list[Finding]:
    """Returns the problems of a definition, independent of other tools."""
    found = list(invisible(_texts(tool)))
    if is_mixed(tool.name):
        found.append(Finding("its name has letters that look like others", tool.name))
    if len(definition) > LONGEST_DEFINITION:
        found.append(Finding(f"its definition has {len(definition):,} characters", ""))
    return found


def invisible(texts: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Finds invisible characters in texts, each given with its part of the definition."""
    for part, text in texts:
        if odd := hidden(text):
            shown = _around(text, text.find(odd[0]), 1)
            yield Finding(f"its {part} has invisible characters ({_codes(odd)})", shown)


def mentions(tool: types.Tool) -> dict[str, str]:
    """Returns words that may name a tool, in lower case, with their sentences.

    These are words written like identifiers, and those described as tools, except the tool's own
    arguments and values.
    """
    own = {text.casefold() for part, text in _texts(tool) if not _is_prose(part, text)}
    found: dict[str, str] = {}
    for part, text in _texts(tool):
        if _is_prose(part, text):
            for word, start in _tool_words(text):
                if word.casefold() not in own:
                    found.setdefault(word.casefold(), _around(text, start, len(word)))
    return found


def _tool_words(text: str) -> Iterator[tuple[str, int]]:
    """Yields each word that may name a tool, with its position."""
    for found in _NAME.finditer(text):
        yield found[0], found.start()
    for found in _CALLED.finditer(text):
        number = found.lastindex or 0
        yield found[number], found.start(number)


def _texts(tool: types.Tool) -> Iterator[tuple[str, str]]:
    """Yields each text of a definition with its part."""
    yield "name", tool.name
    yield "title", tool.title or ""
    yield "description", tool.description or ""
    yield "annotated title", (tool.annotations and tool.annotations.title) or ""
    for part, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
        for text in texts_in(schema):
            yield f"{part} schema", text


def texts_in(value: object) -> Iterator[str]:
    """Yields all texts in a JSON value, including property names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield key
            yield from texts_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts_in(each)


def _is_prose(part: str, text: str) -> bool:
    return part == "description" or (part != "name" and bool(_BLANK.search(text)))


def _codes(characters: list[str]) -> str:
    more = ", …" * (len(characters) > 3)  # noqa: PLR2004  # as cut here
    return codes(each[0] for each in characters[:3]) + more


def _around(text: str, start: int, length: int) -> str:
    return text[max(start - _AROUND, 0) : start + length + _AROUND]
