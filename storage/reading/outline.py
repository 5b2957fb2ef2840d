"""Parses the structure of a text: its headings and blocks, as spans.

It follows CommonMark 0.31 (https://spec.commonmark.org) as far as splitting requires: ATX and
setext headings, fenced code, lists with their continuation, tables. YAML front matter is a block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import takewhile

# Maximum characters of one heading in a path; the text keeps the whole heading.
MAX_HEADING_CHARS = 200
_TITLE_CHARS = 20_000  # a later heading is not a title
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FRONT_MATTER = re.compile(
    r"---[ \t]*\r?\n(?=[\w\"'-]+[ \t]*:).*?\n(?:---|\.\.\.)[ \t]*\r?(?:\n|\Z)", re.DOTALL
)
_ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(?:(=+)|-+)$")
_FENCE = re.compile(r"[ \t]*(`{3,}+(?!.*`)|~{3,})")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$)")
_NOT_PROSE = re.compile(r"[ \t]*[|>]| {4}|\t")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, list, table or fence, with the blank lines after it."""

    start: int  # where it begins in the text
    end: int  # where the next begins
    prose: bool  # whether to split it at sentences rather than at lines


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its text up to the next heading."""

    path: tuple[str, ...]  # the headings above it, outermost first, its own last
    start: int  # where it begins in the text
    end: int  # where the next begins
    blocks: tuple[Block, ...]

    def is_next_to(self, following: Section) -> bool:
        """Returns whether the following section is a sibling, a child or a parent."""
        shared = len(self._shared_path(following))
        return shared >= max(len(self.path), len(following.path)) - 1

    def joined(self, following: Section) -> Section:
        """Joins two sections under the headings that they share."""
        path = self._shared_path(following)
        return Section(path, self.start, following.end, self.blocks + following.blocks)

    def _shared_path(self, other: Section) -> tuple[str, ...]:
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(self.path, other.path, strict=False))
        return tuple(title for title, _ in pairs)


def sections_of(text: str, *, markdown: bool) -> list[Section]:
    """Splits a text into sections without gaps; one section if it has no headings.

    A heading without text belongs to the section after it, and at the end to the one before, so
    that no section is just a heading unless the text is.
    """
    marks = _markdown_marks(text) if markdown else _paragraph_marks(text)
    if not marks:
        return []
    marks[0] = replace(marks[0], start=0)
    sections: list[Section] = []
    path: list[tuple[int, str]] = []
    blocks: list[Block] = []
    start = 0
    heading_start: int | None = None
    for mark, end in zip(marks, [*(mark.start for mark in marks[1:]), len(text)], strict=True):
        if not mark.level:
            first = mark.start if heading_start is None else heading_start
            blocks.append(Block(first, end, mark.prose))
            heading_start = None
            continue
        if blocks:
            sections.append(Section(_titles(path), start, mark.start, tuple(blocks)))
            start, blocks = mark.start, []
        path = [(level, title) for level, title in path if level < mark.level]
        path.append((mark.level, mark.title[:MAX_HEADING_CHARS]))
        heading_start = mark.start if heading_start is None else heading_start
    if heading_start is None:
        sections.append(Section(_titles(path), start, len(text), tuple(blocks)))
    else:
        _append_headings(sections, _titles(path), Block(heading_start, len(text), prose=True))
    return sections


def first_heading(text: str) -> str:
    """Returns the first heading near the beginning of a Markdown text, or nothing."""
    marks = _markdown_marks(text[:_TITLE_CHARS])
    return next((mark.title[:MAX_HEADING_CHARS] for mark in marks if mark.title), "")


def _append_headings(sections: list[Section], path: tuple[str, ...], headings: Block) -> None:
    if sections:
        last = sections.pop()
        sections.append(replace(last, end=headings.end, blocks=(*last.blocks, headings)))
    else:
        sections.append(Section(path, headings.start, headings.end, (headings,)))


def _titles(path: list[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(title for _, title in path if title)


@dataclass(frozen=True, slots=True)
class _Mark:
    """The start of a block or, with a level, of a heading."""

    start: int
    prose: bool = True
    level: int = 0
    title: str = ""


def _paragraph_marks(text: str) -> list[_Mark]:
    marks = []
    after_blank = True
    for match in _LINE.finditer(text):
        blank = match.group().isspace()
        if after_blank and not blank:
            marks.append(_Mark(match.start()))
        after_blank = blank
    return marks


def _markdown_marks(text: str) -> list[_Mark]:
    scanner = _MarkdownScanner()
    begin = 0
    if front_matter := _FRONT_MATTER.match(text):
        scanner.marks.append(_Mark(0, prose=False))
        begin = front_matter.end()
    for match in _LINE.finditer(text, begin):
        scanner.read(match.start(), match.group().rstrip())
    return scanner.marks


class _Kind(Enum):
    """What the previous line belongs to."""

    NOTHING = auto()
    FIRST_LINE = auto()  # of a paragraph: an underline makes it a heading
    LIST = auto()
    OTHER = auto()


class _MarkdownScanner:
    """Reads a Markdown text line by line and marks where its headings and blocks begin."""

    def __init__(self) -> None:
        self.marks: list[_Mark] = []
        self._kind = _Kind.NOTHING
        self._fence = ""  # the marker of the open fence
        self._first_line = ""
        self._after_blank = False

    def read(self, start: int, line: str) -> None:
        if self._fence:
            closing = line.strip()
            if closing.startswith(self._fence) and not closing.strip(self._fence[0]):
                self._fence = ""
        elif not line:
            self._kind = _Kind.LIST if self._kind is _Kind.LIST else _Kind.NOTHING
        elif not self._read_heading(start, line):
            self._read_block_line(start, line)
        self._after_blank = not line

    def _read_heading(self, start: int, line: str) -> bool:
        if atx := _ATX.match(line):
            title = line[atx.end() :].strip()
            unclosed = title.rstrip("#")
            if unclosed[-1:] in {"", " ", "\t"}:
                title = unclosed.rstrip()
            self.marks.append(_Mark(start, level=len(atx[1]), title=title))
        elif self._kind is _Kind.FIRST_LINE and (underline := _UNDERLINE.match(line)):
            level = 1 if underline[1] else 2
            paragraph = self.marks.pop()
            self.marks.append(_Mark(paragraph.start, level=level, title=self._first_line))
        else:
            return False
        self._kind = _Kind.NOTHING
        return True

    def _read_block_line(self, start: int, line: str) -> None:
        opening = _FENCE.match(line)
        if opening:
            self._fence = opening[1]
        item = _ITEM.match(line)
        lazy = not self._after_blank and not opening
        if self._kind is _Kind.LIST and (item or line[0] in " \t" or lazy):
            return
        if self._kind is not _Kind.NOTHING and lazy and not item:
            self._kind = _Kind.OTHER
            return
        prose = not (opening or item or _NOT_PROSE.match(line))
        self.marks.append(_Mark(start, prose=prose))
        self._first_line = line.strip()
        if opening:
            self._kind = _Kind.NOTHING
        elif item:
            self._kind = _Kind.LIST
        else:
            is_rule = _UNDERLINE.match(line) or not prose
            self._kind = _Kind.OTHER if is_rule else _Kind.FIRST_LINE
