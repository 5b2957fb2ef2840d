"""Applies the hunks of a patch to a text, and explains which lines do not fit."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from itertools import accumulate, islice

from tools.core.errors import InvalidArgumentsError
from tools.sandbox.files.patches import Hunk, PatchLine
from tools.sandbox.files.text_edit import similar_lines
from tools.sandbox.files.text_files import usual_end

MOST_LISTED = 5  # limit on the places that an error lists
LONGEST_SHOWN = 200  # limit on the characters of a line that an error shows

MOST_REPEATED = 5  # limit on the repetitions of a line that tells where a hunk may belong


class Sameness(Enum):
    """What must be the same in a line of the file and one of a hunk."""

    ALL = "all"
    TEXT = "text"  # all but the line end
    BEGINNING = "beginning"  # all but the white space at the end

    def key(self, line: str) -> str:
        """Returns what is compared of a line."""
        match self:
            case Sameness.ALL:
                return line.removesuffix("\n") if line.endswith("\n") else f"{line}\0"
            case Sameness.TEXT:
                return line.rstrip("\r\n")
            case Sameness.BEGINNING:
                return line.rstrip()


def apply_hunks(path: str, text: str, hunks: Sequence[Hunk]) -> str:
    """Returns the text with all hunks applied; the lines that they only show stay as they are.

    A hunk must fit at the line that it names, or at one other place alone. Without a line number
    it goes to the first place after the previous hunk, as in Codex.
    """
    patching = _Patching(path, text)
    for hunk in hunks:
        patching.apply(hunk)
    return patching.finish()


class _Patching:
    """A text, changed hunk by hunk from its start."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._text = text
        # As git splits lines: a carriage return alone ends none.
        self._lines = [f"{line}\n" for line in text.split("\n")]
        self._lines[-1] = self._lines[-1][:-1]
        if not self._lines[-1]:
            self._lines.pop()
        self._searched = dict[Sameness, _Searched]()
        self._sections = dict[Callable[[str], str], defaultdict[str, list[int]]]()
        self._parts = list[str]()
        self._seen = 0  # the lines before it are done
        self._drift = 0  # how far the last hunk was from the line that it names
        self._number = 0

    def apply(self, hunk: Hunk) -> None:
        self._number += 1
        start = self._after_section(hunk)
        at, same = self._place(hunk, start)
        if hunk.line is not None:
            self._drift = at - (hunk.line - 1)
        self._parts += self._lines[self._seen : at]
        self._parts += self._replaced(hunk, at, is_exact=same is Sameness.ALL)
        self._seen = at + len(hunk.old)

    def finish(self) -> str:
        return "".join((*self._parts, *self._lines[self._seen :]))

    def _after_section(self, hunk: Hunk) -> int:
        if not hunk.section:
            return self._seen
        for bare in (str.rstrip, str.strip):
            if bare not in self._sections:
                self._sections[bare] = defaultdict(list)
                for at, line in enumerate(self._lines):
                    self._sections[bare][bare(line)].append(at)
            places = self._sections[bare].get(bare(hunk.section), [])
            found = bisect_left(places, self._seen)
            if found < len(places):
                return places[found] + 1
        raise self._misfit(
            f"the line {_quote(hunk.section)} after its '@@' does not occur"
            + f" after line {self._seen}" * bool(self._seen),
            hunk.section,
        )

    def _place(self, hunk: Hunk, start: int) -> tuple[int, Sameness]:
        """Returns where a hunk fits, and how exactly."""
        if not hunk.old:
            return self._place_of_addition(hunk), Sameness.ALL
        if hunk.line is None:
            return self._next_place(hunk, start)
        expected = hunk.line - 1 + self._drift
        for same in (Sameness.ALL, Sameness.TEXT):
            if expected in islice(self._fitting(hunk, max(expected, start), same), 1):
                return expected, same
            found = list(islice(self._fitting(hunk, start, same), MOST_LISTED + 1))
            if len(found) == 1:
                return found[0], same
            if found:
                listed = ", ".join(str(at + 1) for at in found[:MOST_LISTED])
                more = ", …" if len(found) > MOST_LISTED else ""
                raise self._misfit(
                    f"it is not at line {expected + 1}, and fits at lines {listed}{more}",
                    action="Give more of the lines around it.",
                )
        raise self._explained(hunk, expected)

    def _next_place(self, hunk: Hunk, start: int) -> tuple[int, Sameness]:
        """Returns the first place from a line on, or the end of the file if that is meant."""
        last = len(self._lines) - len(hunk.old)
        starts = (max(last, start), start) if hunk.at_end else (start,)
        for same in (Sameness.TEXT, Sameness.BEGINNING):
            for each in starts:
                found = next(self._fitting(hunk, each, same), None)
                if found is not None:
                    return found, same
        raise self._explained(hunk, None)

    def _place_of_addition(self, hunk: Hunk) -> int:
        """Returns where lines go that nothing is shown around: only to the end of the file."""
        total = len(self._lines)
        ends = not hunk.section if hunk.line is None else hunk.line - 1 + self._drift == total
        if not ends:
            raise self._misfit(
                "it only adds lines, and does not show where",
                action="Give lines of the file around it, as they are.",
            )
        return total

    def _fitting(self, hunk: Hunk, start: int, same: Sameness) -> Iterator[int]:
        if same not in self._searched:
            self._searched[same] = _Searched([same.key(line) for line in self._lines])
        wanted = [same.key(line.text + "\n" * line.ends) for line in hunk.old]
        return self._searched[same].find(wanted, start)

    def _replaced(self, hunk: Hunk, at: int, *, is_exact: bool) -> list[str]:
        """Returns the new lines, with the line ends that the file uses there unless exact."""
        made = list[str]()
        for line in hunk.lines:
            if line.mark == "+":
                made.append(line.text + "\n" * line.ends if is_exact else self._new(line, at))
                continue
            if line.mark == " ":
                made.append(self._lines[at])
            at += 1
        if is_exact or at < len(self._lines) or not made:
            return made
        # At the end of the file: it still has, or lacks, its final line end.
        end = usual_end(self._text)
        whole = [line if line.endswith("\n") else line + end for line in made]
        lacks = not self._text.endswith("\n") and bool(self._text)
        if lacks or not hunk.new[-1].ends:
            whole[-1] = whole[-1].removesuffix("\n").removesuffix("\r")
        return whole

    def _new(self, line: PatchLine, at: int) -> str:
        near = self._lines[max(min(at, len(self._lines)) - 1, 0)] if self._lines else "\n"
        end = "\r\n" if near.endswith("\r\n") else "\n"
        if not near.endswith("\n"):
            end = usual_end(self._text)
        return line.text.removesuffix("\r") + (end if end != "\r" else "\n")

    def _explained(self, hunk: Hunk, expected: int | None) -> InvalidArgumentsError:
        """Returns an error with the first line that differs where the hunk fits best."""
        old = hunk.old
        at = self._nearest(old)
        if at is None:
            at = self._seen if expected is None else min(expected, len(self._lines))
        for number, wanted in enumerate(old, at):
            found = self._lines[number] if 0 <= number < len(self._lines) else None
            if found is None or Sameness.TEXT.key(found) != Sameness.TEXT.key(wanted.text):
                is_now = "the end of the file" if found is None else _quote(found)
                what = f"line {number + 1} should be {_quote(wanted.text)}, but is {is_now}"
                return self._misfit(what, "\n".join(each.text for each in old))
        return self._misfit("its lines are before those of the hunk before it, or end differently")

    def _nearest(self, old: Sequence[PatchLine]) -> int | None:
        """Returns the place where most lines of a hunk are the same, if any line is."""
        places = defaultdict[str, list[int]](list)
        for offset, wanted in enumerate(old):
            if wanted.text.strip():
                places[wanted.text.strip()].append(offset)
        telling = {text: at for text, at in places.items() if len(at) <= MOST_REPEATED}
        votes = Counter(
            at - offset
            for at, line in enumerate(self._lines[self._seen :], self._seen)
            for offset in telling.get(line.strip(), ())
        )
        return max(votes.most_common(1)[0][0], 0) if votes else None

    def _misfit(
        self, problem: str, passage: str = "", action: str = "Read the file, and send its lines."
    ) -> InvalidArgumentsError:
        return InvalidArgumentsError(
            f"Hunk {self._number} of {self._path!r} does not fit: {problem}.",
            suggestions=similar_lines(self._text, passage) if passage else (),
            next_actions=[f"{action} Nothing was changed."],
        )


class _Searched:
    """Lines in which runs of lines are searched, all in one text so that it takes linear time."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._text = "\n".join(("", *lines, ""))
        self._starts = list(accumulate((len(line) + 1 for line in lines), initial=0))

    def find(self, lines: Sequence[str], start: int) -> Iterator[int]:
        """Yields the places of a run of lines, from a place on."""
        wanted = "\n".join(("", *lines, ""))
        if start >= len(self._starts):
            return
        found = self._text.find(wanted, self._starts[start])
        while found >= 0:
            yield bisect_left(self._starts, found)
            found = self._text.find(wanted, found + 1)


def _quote(line: str) -> str:
    return repr(line.rstrip("\r\n")[:LONGEST_SHOWN])
