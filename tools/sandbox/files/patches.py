"""Parses patches: Codex's form, and unified diffs with or without git's headers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

MOST_FILES = 200  # limit on the files of a patch

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE = "*** Add File: ", "*** Delete File: ", "*** Update File: "
_MOVE, _END_OF_FILE = "*** Move to: ", "*** End of File"
_POSITION = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_NEWLINE = "\\"
_NOWHERE = "/dev/null"
_BINARY = ("GIT binary patch", "Binary files ")
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_ESCAPE = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')


class PatchError(ValueError):
    """A patch that cannot be parsed; the message names the line."""


class PatchLine(NamedTuple):
    """A line of a hunk.

    Attributes:
        mark: " " for context, "-" for a removed line, "+" for an added one.
        text: The line without its line feed.
        ends: Whether a line feed follows; False only for the last line of a file.
    """

    mark: str
    text: str
    ends: bool = True


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that change together.

    Attributes:
        line: Number of the first old line, from 1; None if the patch does not tell.
        section: A line that comes before it in the file; empty if the patch names none.
        at_end: Whether it is at the end of the file.
    """

    lines: Sequence[PatchLine]
    line: int | None = None
    section: str = ""
    at_end: bool = False

    @property
    def old(self) -> list[PatchLine]:
        """Its lines in the old file."""
        return [each for each in self.lines if each.mark != "+"]

    @property
    def new(self) -> list[PatchLine]:
        """Its lines in the new file."""
        return [each for each in self.lines if each.mark != "-"]


@dataclass(slots=True)
class FilePatch:
    """The changes of one file.

    Attributes:
        kind: Whether the file is updated, added or deleted, or a new file is made from it.
        path: The old file, or the new one of an added file.
        target: The new path of a moved or copied file; else the same path.
        mode: The new mode, as in stat(2); None keeps it.
    """

    kind: Literal["update", "add", "delete", "copy"]
    path: str
    target: str = ""
    mode: int | None = None
    hunks: list[Hunk] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.target = self.target or self.path

    @property
    def is_move(self) -> bool:
        """Whether the file gets another path."""
        return self.kind == "update" and self.target != self.path


def parse_patch(text: str) -> list[FilePatch]:
    """Parses a patch of either form.

    Raises:
        PatchError: If it is malformed, or has no changes.
    """
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    heads = [line for line in lines if line.startswith(("--- ", "+++ ", "*** ", "diff --git "))]
    if heads and all(line.endswith("\r") for line in heads):  # the patch itself, not its files
        lines = [line.removesuffix("\r") for line in lines]
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    is_codex = bool(lines) and lines[first].strip() == _BEGIN
    found = list(_Codex(lines, first + 1) if is_codex else _Unified(lines))
    if not found:
        raise PatchError(
            f"It has no changes: it begins neither with '{_BEGIN}' nor with '--- a/FILE' and "
            "'+++ b/FILE'."
        )
    if len(found) > MOST_FILES:
        raise PatchError(f"It changes {len(found)} files; at most {MOST_FILES} are allowed.")
    return found


class _Lines:
    """The lines of a patch, and the next one."""

    def __init__(self, lines: Sequence[str], at: int = 0) -> None:
        self._lines = lines
        self.at = at

    @property
    def next(self) -> str | None:
        return self._lines[self.at] if self.at < len(self._lines) else None

    def take(self) -> str:
        self.at += 1
        return self._lines[self.at - 1]

    def refuse(self, problem: str) -> PatchError:
        line = self.next
        shown = "its end" if line is None else f"{line[:200]!r}"
        return PatchError(f"Line {self.at + 1} of the patch is {shown}: {problem}")


class _Codex(_Lines):
    """Parses Codex's form (openai/codex, codex-rs/apply-patch)."""

    def __iter__(self) -> Iterator[FilePatch]:
        while (line := self.next) is not None and line.strip() != _END:
            if not line.strip():
                self.take()
                continue
            yield self._file(line)
        if self.next is None:
            raise self.refuse(f"'{_END}' is missing.")

    def _file(self, line: str) -> FilePatch:
        if line.startswith(_ADD):
            added = FilePatch("add", self._path(_ADD))
            lines = []
            while (line := self.next or "").startswith("+"):
                lines.append(PatchLine("+", self.take()[1:]))
            if line and not line.startswith("*** "):
                raise self.refuse("a line of an added file must begin with '+'.")
            added.hunks = [Hunk(lines)] if lines else []
            return added
        if line.startswith(_DELETE):
            return FilePatch("delete", self._path(_DELETE))
        if line.startswith(_UPDATE):
            updated = FilePatch("update", self._path(_UPDATE))
            if (self.next or "").startswith(_MOVE):
                updated.target = self._path(_MOVE)
            while self.next is not None and (
                not self.next.startswith("*** ") or self.next.strip() == _END_OF_FILE
            ):
                updated.hunks.append(self._hunk(is_first=not updated.hunks))
            if not updated.hunks and not updated.is_move:
                raise self.refuse(f"the update of {updated.path!r} changes nothing.")
            return updated
        raise self.refuse(f"expected '{_UPDATE}', '{_ADD}', '{_DELETE}' with a path, or '{_END}'.")

    def _path(self, head: str) -> str:
        path = self.take()[len(head) :].strip()
        if not path:
            self.at -= 1
            raise self.refuse("the path is missing.")
        return path

    def _hunk(self, *, is_first: bool) -> Hunk:
        section, at_end = "", False
        if (self.next or "").startswith("@@"):
            section = self.take()[2:].strip().removesuffix("@@").strip()
            if _POSITION.match(f"@@ {section} @@"):  # line numbers are guesses in this form
                section = ""
        elif not is_first:
            raise self.refuse("expected '@@' before the next hunk, or a file.")
        lines = []
        while (line := self.next) is not None and not line.startswith(("@@", "*** ")):
            self.take()
            if line[:1] not in {" ", "+", "-", ""}:
                self.at -= 1
                raise self.refuse("a line of a hunk must begin with ' ', '-' or '+'.")
            lines.append(PatchLine(line[:1] or " ", line[1:]))
        if (self.next or "").strip() == _END_OF_FILE:
            self.take()
            at_end = True
        if not lines:
            raise self.refuse("the hunk before it is empty.")
        while lines and lines[-1] == PatchLine(" ", "") and self.next is None:
            lines.pop()
        return Hunk(lines, None, section, at_end)


class _Unified(_Lines):
    """Parses unified diffs, and git's extended headers."""

    def __iter__(self) -> Iterator[FilePatch]:
        while (line := self.next) is not None:
            if line.startswith("diff --git "):
                found = self._git()
                if found is not None:
                    yield found
            elif line.startswith("--- ") and self._follows("+++ "):
                yield self._read_plain()
            elif _POSITION.match(line):
                raise self.refuse("the hunk belongs to no file: '--- a/FILE' is missing.")
            else:
                self.take()  # text between files, such as a commit's message

    def _follows(self, head: str) -> bool:
        after = self._lines[self.at + 1 : self.at + 2]
        return bool(after) and after[0].startswith(head)

    def _read_plain(self) -> FilePatch:
        old, new = _name(self.take()[4:]), _name(self.take()[4:])
        if old == _NOWHERE == new:
            raise self.refuse("the file has no name.")
        hunks = self._hunks()
        if old == _NOWHERE:
            return FilePatch("add", new.removeprefix("b/"), hunks=hunks)
        if new == _NOWHERE:
            return FilePatch("delete", old.removeprefix("a/"), hunks=hunks)
        if old.startswith("a/") and new.startswith("b/"):
            old, new = old[2:], new[2:]
        return FilePatch("update", new, hunks=hunks)  # only git's headers move a file

    def _git(self) -> FilePatch | None:
        start, words = self.at, dict[str, str]()
        both = self.take().removeprefix("diff --git ")
        while (line := self.next) is not None and (found := _header(line)):
            words[found[0]] = found[1]
            self.take()
        if line is not None and line.startswith(_BINARY):
            raise self.refuse("binary changes cannot be applied.")
        if line is not None and line.startswith("--- ") and self._follows("+++ "):
            plain = self._read_plain()
            target, hunks = plain.path, plain.hunks
        else:
            target, hunks = _same_name(both), []
        path = _name(words.get("rename from") or words.get("copy from") or "") or target
        target = _name(words.get("rename to") or words.get("copy to") or "") or target
        if not path:
            self.at = start
            raise self.refuse("its two names cannot be told apart.")
        mode = words.get("new file mode") or words.get("new mode")
        if mode not in {None, "100644", "100755"}:
            self.at = start
            raise self.refuse(f"mode {mode} is no plain file, and cannot be applied.")
        if "new file mode" in words:
            made = 0o755 if mode == "100755" else None
            return FilePatch("add", target, mode=made, hunks=hunks)
        if "deleted file mode" in words:
            return FilePatch("delete", path, hunks=hunks or [Hunk((), 1)])  # an empty file
        changed = int(mode, 8) & 0o777 if mode else None
        kind: Literal["copy", "update"] = "copy" if "copy from" in words else "update"
        if kind == "update" and path == target and not hunks and changed is None:
            return None  # git lists some files that do not differ
        return FilePatch(kind, path, target, changed, hunks)

    def _hunks(self) -> list[Hunk]:
        hunks = []
        while (line := self.next) is not None and (found := _POSITION.match(line)):
            hunks.append(self._hunk(found))
        if not hunks:
            raise self.refuse("expected a hunk that begins with '@@ -1,2 +1,2 @@'.")
        return hunks

    def _hunk(self, found: re.Match[str]) -> Hunk:
        self.take()
        first, count, _, new_count = found.groups(default="1")
        old, new, lines = int(count), int(new_count), list[PatchLine]()
        while old > 0 or new > 0:
            line = self.next
            mark = " " if line == "" else (line or "")[:1]  # editors strip a context line's space
            if mark not in {" ", "-", "+"} or line is None:
                if mark == _NO_NEWLINE:
                    self._end_last(lines)
                    continue
                missing = f"{old} old and {new} new lines of the hunk are missing"
                raise self.refuse(f"{missing}: a line must begin with ' ', '-' or '+'.")
            lines.append(PatchLine(mark, self.take()[1:]))
            old -= mark != "+"
            new -= mark != "-"
        if old < 0 or new < 0:
            self.at -= 1
            raise self.refuse("the hunk has more lines than its '@@' line tells.")
        if (self.next or "").startswith(_NO_NEWLINE):
            self._end_last(lines)
        return Hunk(lines, int(first) + (not int(count)))

    def _end_last(self, lines: list[PatchLine]) -> None:
        if not lines:
            raise self.refuse("it follows no line.")
        self.take()
        lines[-1] = lines[-1]._replace(ends=False)


_HEADERS = (
    *("old mode", "new mode", "deleted file mode", "new file mode", "copy from", "copy to"),
    *("rename from", "rename to", "similarity index", "dissimilarity index", "index"),
)


def _header(line: str) -> tuple[str, str] | None:
    return next(
        ((each, line[len(each) + 1 :]) for each in _HEADERS if line.startswith(f"{each} ")), None
    )


def _name(text: str) -> str:
    """Returns the name in a header, without its time and its quotes."""
    text = text.rstrip("\r")
    if text.startswith('"') and text.rstrip().endswith('"'):
        quoted = text.rstrip()[1:-1].encode()
        return _ESCAPE.sub(_unescape, quoted).decode("utf-8", "surrogateescape")
    return text.split("\t")[0].rstrip(" ") if "\t" in text else text


def _unescape(found: re.Match[bytes]) -> bytes:
    code = found[1].decode()
    return bytes([int(code, 8) & 255 if code.isdigit() else _ESCAPES[code]])


def _same_name(both: str) -> str:
    """Returns the name that follows both a/ and b/; empty if they differ."""
    if both.startswith('"'):
        first, _, second = both[1:].partition('" "')
        first, second = _name(f'"{first}"'), _name(f'"{second}')
    else:
        half = len(both) // 2
        first, second = both[:half], both[half + 1 :]
    first, second = first.removeprefix("a/"), second.removeprefix("b/")
    return first if first == second else ""
