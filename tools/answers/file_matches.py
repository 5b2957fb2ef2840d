"""Answers of the searches of files: paths, lines and ranked files."""

from __future__ import annotations

from datetime import datetime
from itertools import groupby

from pydantic import FiniteFloat

from tools.core.result import OmitNone, ToolModel


class Searched(ToolModel):
    """Common fields of all searches.

    Attributes:
        truncated: Whether there are more results.
        unreadable: Paths that could not be opened, at most 20.
        too_large: Files over 50 MB, which are not searched, at most 20.
    """

    truncated: bool
    unreadable: list[str]
    too_large: list[str]

    def notes(self) -> list[str]:
        """Formats the notes, one line each."""
        lines = []
        if self.truncated:
            lines.append("[There is more: narrow the pattern or the path, or raise max_results.]")
        lines += [f"[Not readable: {_visible(name)}]" for name in self.unreadable]
        lines += [f"[Too large to be searched: {_visible(name)}]" for name in self.too_large]
        return lines


class FoundPath(ToolModel):
    """A file, or a link, which is not followed.

    Attributes:
        path: Relative to the root.
        is_link: Whether it is a symbolic link.
        size: Bytes.
        modified: Time of the last change, UTC.
    """

    path: str
    is_link: bool
    size: int
    modified: datetime


class FilePaths(Searched):
    """Files whose paths match a pattern.

    Attributes:
        files: The newest first, then by path.
    """

    files: list[FoundPath]

    def to_text(self) -> str:
        """Formats one line per file; `@` marks a link."""
        head = f"[{len(self.files)} files, the newest first]"
        lines = [_visible(file.path) + ("@" if file.is_link else "") for file in self.files]
        return "\n".join([head, *lines, *self.notes()])


class LineMatch(ToolModel):
    """A line that matches the pattern.

    Attributes:
        path: The file, relative to the root.
        line: Its number, from 1.
        text: The line without its line end; a long one is cut to the part around the match.
        before: The requested lines before it.
        after: The requested lines after it.
    """

    path: str
    line: int
    text: str
    before: list[str]
    after: list[str]

    def numbered(self) -> list[tuple[int, str]]:
        """Returns the line and its context lines, with their numbers."""
        start = self.line - len(self.before)
        return list(enumerate([*self.before, self.text, *self.after], start))


class FileCount(ToolModel):
    """A file that has matches.

    Attributes:
        path: Relative to the root.
        count: Number of its lines that match.
    """

    path: str
    count: int


class FileMatches(Searched):
    """Lines that match a pattern.

    Attributes:
        matches: By path, then by line; empty if only files are asked for.
        files: The files with their number of matches, if only those are asked for.
        files_searched: Number of files whose name matches.
    """

    matches: list[LineMatch]
    files: OmitNone[list[FileCount]] = None
    files_searched: int

    def to_text(self) -> str:
        """Formats lines below their file names; `:` marks a match, `-` a context line."""
        if self.files is not None:
            lines = [f"[{len(self.files)} of {self.files_searched} files have matches]"]
            lines += [f"{_visible(file.path)}: {file.count}" for file in self.files]
            return "\n".join([*lines, *self.notes()])
        count = len({match.path for match in self.matches})
        lines = [f"[{len(self.matches)} matches in {count} of {self.files_searched} files]"]
        for path, matches in groupby(self.matches, key=lambda match: match.path):
            lines += [_visible(path), *_merge(list(matches))]
        return "\n".join([*lines, *self.notes()])


class FoundLine(ToolModel):
    """A line of a matching file.

    Attributes:
        line: Its number, from 1.
        text: The line, or the part around the first matching word.
    """

    line: int
    text: str


class RankedFile(ToolModel):
    """A matching file.

    Attributes:
        path: Relative to the root.
        score: How well it matches; comparable within one answer only.
        why: Which words match where, and how often.
        lines: Its best lines, at most three.
    """

    path: str
    score: FiniteFloat
    why: str
    lines: list[FoundLine]


class RankedFiles(Searched):
    """Files that match plain words.

    Attributes:
        files: Best first.
        files_searched: Number of files whose name matches.
    """

    files: list[RankedFile]
    files_searched: int

    def to_text(self) -> str:
        """Formats each file with the reason for the match and its best lines."""
        lines = [f"[{len(self.files)} of {self.files_searched} files, the best first]"]
        for file in self.files:
            lines.append(f"{_visible(file.path)} ({file.why})")
            lines += [
                f"  {each.line}: {_visible(each.text.strip(), tabs=True)}" for each in file.lines
            ]
        return "\n".join([*lines, *self.notes()])


def _merge(matches: list[LineMatch]) -> list[str]:
    """Merges the lines of one file in order; `--` marks gaps."""
    shown: dict[int, str] = {}
    for match in matches:
        for number, text in match.numbered():
            if number == match.line or number not in shown:
                mark = ":" if number == match.line else "-"
                shown[number] = f"{number}{mark} {_visible(text, tabs=True)}"
    has_context = any(match.before or match.after for match in matches)
    lines: list[str] = []
    last = None
    for number in sorted(shown):
        if has_context and last is not None and number > last + 1:
            lines.append("--")
        lines.append(shown[number])
        last = number
    return lines


def _visible(text: str, *, tabs: bool = False) -> str:
    """Escapes control characters, so that a text cannot span lines or drive a terminal."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or (tabs and each == "\t") else ascii(each)[1:-1]
        for each in text
    )
