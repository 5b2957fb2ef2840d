"""Replaces passages or inserts lines in a text, and shows the changes as a short diff.

Line ends are ignored in comparisons but preserved: a passage given with line feeds also matches
lines with other line ends, and its replacement gets the line ends used there.
"""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import NamedTuple

from tools.core.errors import InvalidArgumentsError
from tools.sandbox.files.text_files import (
    count_lines,
    line_ends,
    line_start,
    split_lines,
    usual_end,
)

MOST_COUNTED = 1000  # limit on the matches counted
MOST_COMPARED = 20_000  # limit on the lines compared
MOST_SEARCHED = 2_000_000  # limit on the text from which lines are compared
MOST_CHARACTERS = 300  # limit on the characters compared per line
MOST_SUGGESTED = 3

LEAST_SIMILARITY = 60  # minimum similarity of two lines, of 100 (rapidfuzz.fuzz.ratio)
_BLOCK = 10_000  # parts of a text joined at once: this blocks all other threads


class Change(NamedTuple):
    """A passage and its replacement."""

    start: int
    end: int
    new: str


class Passages:
    """Finds a passage in a text.

    In the passage, which is not empty, all line ends are equal.
    """

    def __init__(self, text: str, passage: str) -> None:
        self._text = text
        self._is_cr = "\r" in text and "\n" not in text
        self._plain = self._with_line_feeds(text)
        self._passage = self._with_line_feeds(passage)
        self._line_end = 0, ""

    @cached_property
    def _shorter(self) -> Sequence[int]:
        """Positions in the plain text where the text has one more character."""
        return () if self._is_cr else _line_feeds(self._text)

    def lines(self) -> list[int]:
        """Returns the numbers, from 1, of the lines in which matches begin, including overlaps."""
        found, line, seen = list[int](), 1, 0
        for start in itertools.islice(self._starts(1), MOST_COUNTED):
            line += self._plain.count("\n", seen, start)
            seen = start
            found.append(line)
        return found

    def is_same(self, other: str) -> bool:
        """Returns whether another passage differs only in line ends."""
        return self._with_line_feeds(other) == self._passage

    def changes(self, new: str) -> Iterator[Change]:
        """Yields the changes that replace each match, from first to last.

        Each line end of the new passage is that of the match at the same position, and further ones
        are like its last; a match without line ends uses that of its line.
        """
        parts = self._with_line_feeds(new).split("\n")
        length = len(self._passage)
        if len(parts) == 1 and not self._shorter:  # the common case: only positions differ
            yield from (Change(at, at + length, new) for at in self._starts(length))
            return
        for start in self._starts(length):
            first, last = self._place(start), self._place(start + length)
            ends: Sequence[str] = [""]
            if len(parts) > 1:
                ends = line_ends(self._text[first:last]) or [self._end_of_line(last)]
            joined = [part + ends[min(i, len(ends) - 1)] for i, part in enumerate(parts[:-1])]
            yield Change(first, last, "".join((*joined, parts[-1])))

    def _starts(self, step: int) -> Iterator[int]:
        start = self._plain.find(self._passage)
        while start >= 0:
            yield start
            start = self._plain.find(self._passage, start + step)

    def _place(self, plain: int) -> int:
        """Converts a position in the plain text to one in the text."""
        return plain + bisect_left(self._shorter, plain)

    def _end_of_line(self, place: int) -> str:
        """Returns the line end at a position; caches it per line."""
        until, end = self._line_end
        if place > until or not end:
            end = usual_end(self._text, near=place)
            found = self._text.find(end, place)
            self._line_end = len(self._text) if found < 0 else found, end
        return end

    def _with_line_feeds(self, text: str) -> str:
        plain = text.replace("\r\n", "\n")
        return plain.replace("\r", "\n") if self._is_cr else plain


def inserted(text: str, line_number: int, content: str) -> Change:
    r"""Returns the change that inserts lines before a line of a text.

    They get the line end of that line. After the last line they become separate lines, and the text
    still has or lacks a final line end.

    `line_number` counts from 1, or from the end if negative; one more than the number of lines
    appends.
    """
    total = count_lines(text)
    number = total + 1 + line_number if line_number < 0 else line_number
    if not content:
        raise InvalidArgumentsError(
            "The content is empty.", next_actions=['For an empty line give "\\n".']
        )
    if line_number == 0 or not 1 <= number <= total + 1:
        raise InvalidArgumentsError(
            f"There is no line {line_number}: the file has {total}, counted from 1 or, if "
            "negative, from the end.",
            next_actions=[
                f"Give the line to put them before: 1 begins the file, {total + 1} ends it."
            ],
        )
    start = line_start(text, number)
    if not text:
        return Change(0, 0, content)
    end = usual_end(text, near=start)
    plain = content.replace("\r\n", "\n")
    lines = (plain.replace("\r", "\n") if end == "\r" else plain).removesuffix("\n")
    new = lines.replace("\n", end)
    if number == total + 1 and not text.endswith(("\n", end)):
        return Change(start, start, end + new)
    return Change(start, start, new + end)


def applied(text: str, changes: Iterable[Change]) -> str:
    """Applies changes, which must be in order and not overlap."""
    made, seen = replaced(text, changes)
    return made + text[seen:]


def replaced(text: str, changes: Iterable[Change], start: int = 0) -> tuple[str, int]:
    """Applies changes to part of a text; returns the text up to the last change, and its end.

    The changes are in order and do not overlap; the part begins at `start`.
    """
    blocks, parts, seen = list[str](), list[str](), start
    for change in changes:
        parts += text[seen : change.start], change.new
        seen = change.end
        if len(parts) > _BLOCK:
            blocks.append("".join(parts))
            parts.clear()
    return "".join((*blocks, *parts)), seen


def similar_lines(text: str, passage: str) -> list[str]:
    """Returns the lines most similar to the first nonblank line of a passage.

    If only trailing white space differs, says so instead.
    """
    wanted = [line.strip() for line in split_lines(passage)]
    while wanted and not wanted[0]:
        wanted.pop(0)
    while wanted and not wanted[-1]:
        wanted.pop()
    if not wanted:
        return []
    lines = split_lines(text[:MOST_SEARCHED])[:MOST_COMPARED]
    plain = [line.strip()[:MOST_CHARACTERS] for line in lines]
    number = _same_but_for_space([line[:MOST_CHARACTERS] for line in wanted], plain)
    if number is not None:
        last = number + len(wanted) - 1
        return [f"lines {number}-{last} differ from it in white space only: {lines[number - 1]!r}"]
    from rapidfuzz import fuzz, process

    found = process.extract(
        wanted[0][:MOST_CHARACTERS],
        plain,
        scorer=fuzz.ratio,
        score_cutoff=LEAST_SIMILARITY,
        limit=MOST_SUGGESTED,
    )
    return [f"line {place + 1}: {plain[place]!r}" for _, _, place in found]


def _line_feeds(text: str) -> Sequence[int]:
    """Returns the positions where two characters became one line feed."""
    places = array("q")
    found = text.find("\r\n")
    while found >= 0:  # a loop, as one long split would block other threads
        places.append(found - len(places))
        found = text.find("\r\n", found + 2)
    return places


def _same_but_for_space(wanted: list[str], lines: list[str]) -> int | None:
    """Returns the first line of a match that ignores surrounding space."""
    joined = "\n".join(("", *lines, ""))
    found = joined.find("\n".join(("", *wanted, "")))
    return None if found < 0 else joined.count("\n", 0, found + 1)


CONTEXT = 2  # unchanged lines shown on either side
MOST_SHOWN = 60  # limit on the removed and on the added lines shown for a change
LONGEST_LINE = 300  # limit on the characters of a line


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that change together."""

    old_line: int  # number of the first one in the old text, from 1
    new_line: int  # the same in the new text
    old: str
    new: str
    before: str
    after: str

    @property
    def new_last(self) -> int:
        """Number of the last new line; one less than the first if all were removed."""
        return self.new_line + count_lines(self.new) - 1

    def to_text(self) -> str:
        """Formats the lines as in a unified diff."""
        above = count_lines(self.before)
        old = split_lines(self.before + self.old + self.after)[:MOST_SHOWN]
        new = split_lines(self.before + self.new + self.after)[:MOST_SHOWN]
        lines = [f"@@ -{self.old_line - above} +{self.new_line - above} @@"]
        for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if kind == "equal":
                lines += _marked(" ", old[a:b])
            else:
                lines += (*_marked("-", old[a:b]), *_marked("+", new[c:d]))
        return "\n".join(lines)


def hunks(text: str, changes: Iterable[Change]) -> Iterator[Hunk]:
    """Yields the whole lines that changes touch; changes that share a line form one hunk.

    The changes are in order and do not overlap.
    """
    lines = _Lines(text)
    coming = _Coming(lines, changes)
    old_line, grown, counted, above = 1, 0, 0, 0
    while coming.next is not None:
        start = lines.start(coming.next.start)
        new, seen = replaced(text, coming.touching(), start)
        stop = coming.stop
        below = lines.start(coming.next.start) if coming.next is not None else len(text)
        old, new = text[start:stop], new + text[seen:stop]
        old_line += text.count(lines.end, counted, start)
        before = text[max(lines.back(start, CONTEXT), above) : start]
        after = text[stop : min(lines.forth(stop, CONTEXT), below)]
        yield Hunk(old_line, old_line + grown, old, new, before, after)
        grown += count_lines(new) - count_lines(old)
        counted, above = start, stop


def format_hunks(touched: Iterable[Hunk], *, limit: int) -> str:
    """Formats changes as in a unified diff, as many as fit."""
    parts, room = list[str](), limit
    for hunk in touched:
        part = hunk.to_text()
        if len(part) > room:
            parts.append("[Further changes are not shown.]" if parts else part[:room])
            break
        parts.append(part)
        room -= len(part)
    return "\n".join(parts)


class _Lines:
    def __init__(self, text: str) -> None:
        self._text = text
        self.end = "\n" if "\n" in text else "\r"

    def start(self, place: int) -> int:
        return self._text.rfind(self.end, 0, place) + 1

    def stop(self, change: Change) -> int:
        """Returns the end of the last line that a change touches."""
        is_whole = change.end == 0 or self._text[change.end - 1] == self.end
        # A passage that begins or ends within a line includes the rest of that line.
        if is_whole and change.new.endswith(self.end):
            return change.end
        return self.forth(change.end, 1)

    def back(self, place: int, count: int) -> int:
        for _ in range(count):
            place = self.start(max(place - 1, 0))
        return place

    def forth(self, place: int, count: int) -> int:
        for _ in range(count):
            found = self._text.find(self.end, place)
            place = len(self._text) if found < 0 else found + 1
        return place


class _Coming:
    """Changes, with a lookahead of one."""

    def __init__(self, lines: _Lines, changes: Iterable[Change]) -> None:
        self._lines = lines
        self._rest = iter(changes)
        self.next = next(self._rest, None)
        self.stop = 0

    def touching(self) -> Iterator[Change]:
        """Yields the next change and those that share a line with it."""
        taken = None
        while self.next is not None and (taken is None or self.next.start < self.stop):
            taken = self.next
            # If it ends within a line already scanned, that line is not scanned again.
            if taken.end >= self.stop:
                self.stop = self._lines.stop(taken)
            self.next = next(self._rest, None)
            yield taken


def _marked(mark: str, lines: Sequence[str]) -> list[str]:
    return [mark + line.rstrip("\r\n")[:LONGEST_LINE] for line in lines]
