"""What in a definition is there to deceive whoever reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import mcp_types as types

from tools.conversion.confusables import is_mixed
from tools.core.invisible import codes, hidden

LONGEST_DEFINITION = 100_000
"""Characters of a definition as JSON; the longest of 15,000 public ones has 15,000."""

_AROUND = 40
"""Characters shown on both sides of what was found."""

_NAME = re.compile(
    r"(?<![\w./-])(?:"
    r"[A-Za-z][A-Za-z0-9-]*(?:_+[A-Za-z0-9-]+)+"  # create_issue
    r"|[a-z][a-z0-9]{2,}(?:[A-Z][a-z0-9]*)+"  # createIssue, but no GitHub and no arXiv
    r"|[a-z][a-z0-9]*(?:-[a-z0-9]+){2,}"  # create-new-issue, but no real-time
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
    """One reason to have a person look at a definition.

    Attributes:
        reason: What was found and where, in words of ours: models may read it.
        shown: What it was found in, for people.
    """

    reason: str
    shown: str


def findings(tool: types.Tool, definition: str) -> list[Finding]:
    """What is wrong with a definition, whatever other tools there are.

    Args:
        tool: The tool.
        definition: Its definition as JSON.
    """
    found = list(invisible(_texts(tool)))
    if is_mixed(tool.name):
        found.append(Finding("its name has letters that look like others", tool.name))
    if len(definition) > LONGEST_DEFINITION:
        found.append(Finding(f"its definition has {len(definition):,} characters", ""))
    return found


def invisible(texts: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """What nobody sees in some texts, each behind the part that it is in."""
    for part, text in texts:
        if odd := hidden(text):
            shown = _around(text, text.find(odd[0]), 1)
            yield Finding(f"its {part} has invisible characters ({_codes(odd)})", shown)


def mentions(tool: types.Tool) -> dict[str, str]:
    """The words that may name a tool, in small letters, and the sentence that each stands in.

    Words are such that are written as no others are, and those that are said to be tools; what the
    tool itself calls an argument or a value is not.
    """
    own = {text.casefold() for part, text in _texts(tool) if not _is_prose(part, text)}
    found: dict[str, str] = {}
    for part, text in _texts(tool):
        if _is_prose(part, text):
            for word, start in _named(text):
                if word.casefold() not in own:
                    found.setdefault(word.casefold(), _around(text, start, len(word)))
    return found


def _named(text: str) -> Iterator[tuple[str, int]]:
    """Each word that may name a tool, and where it stands."""
    for found in _NAME.finditer(text):
        yield found[0], found.start()
    for found in _CALLED.finditer(text):
        number = found.lastindex or 0
        yield found[number], found.start(number)


def _texts(tool: types.Tool) -> Iterator[tuple[str, str]]:
    """Each text of a definition, and in which part it is."""
    yield "name", tool.name
    yield "title", tool.title or ""
    yield "description", tool.description or ""
    yield "annotated title", (tool.annotations and tool.annotations.title) or ""
    for part, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
        for text in texts_in(schema):
            yield f"{part} schema", text


def texts_in(value: object) -> Iterator[str]:
    """All texts in what is JSON, names of properties too."""
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
