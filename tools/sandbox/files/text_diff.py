"""Formats the changes in a text as a short diff for a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from tools.sandbox.files.lines import count_lines, split_lines
from tools.sandbox.files.text_edit import Change, replaced

CONTEXT = 2
"""Unchanged lines shown on either side."""

MOST_SHOWN = 60
"""Limit on the removed and on the added lines shown for a change."""

LONGEST_LINE = 300
"""Limit on the characters of a line."""


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
    """Finds the bounds of lines in a text."""

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
    """Changes, with a lookahead of one.

    Attributes:
        stop: End of the last line touched so far.
    """

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
