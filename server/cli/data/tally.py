"""Counts the outcome of each file and chat."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Result = Literal["added", "replaced", "unchanged", "deleted", "skipped"]

RESULTS: tuple[Result, ...] = ("added", "replaced", "unchanged", "deleted", "skipped")

_QUOTED = re.compile(r"""(?<!\w)(['"])(?:\\.|(?!\1)[^\\])*\1(?!\w)""")
_NAMED = re.compile(r"\b(name|path|conversation) it\b")
_UNREADABLE = re.compile(r"^it cannot be read[^.]*\. ")
_DETAIL = re.compile(r" \([^)]*\)|[:;].*", re.DOTALL)
_RULE = re.compile(r"\b[Tt]he rule ('[^']*')")
_NUMBER = re.compile(r"(?<![\w-])\d[\d,.]*(?!\w)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one file or chat.

    Attributes:
        file: The file, or the file that the chat is in.
        name: The displayed name.
        result: The result.
        message: Why it was skipped, or which part could not be read.
    """

    file: Path
    name: str
    result: Result
    message: str = ""

    @property
    def cause(self) -> str:
        """The reason for skipping, worded the same for every such file."""
        if rule := _RULE.search(self.message):
            return f"The rule {rule[1]} denies it"
        words = _NAMED.sub(r"\1", _QUOTED.sub("it", self.message))
        words = _NUMBER.sub("…", _DETAIL.sub("", _UNREADABLE.sub("", words)))
        sentence = words.partition(". ")[0].rstrip(". ")
        return sentence[:1].upper() + sentence[1:]


class Tally:
    """Counts of all outcomes.

    Attributes:
        results: Counts per result.
        causes: Counts per cause of skipping.
        passed_over: Skipped entries of folders, by reason.
        left_out: What was left out of chats, by reason.
        marked: Stored files with some unreadable bytes.
    """

    def __init__(self) -> None:
        self.results: Counter[str] = Counter()
        self.causes: Counter[str] = Counter()
        self.passed_over: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.marked = 0
        self._taken: set[Path] = set()
        self._skipped: set[Path] = set()

    def note(self, outcome: Outcome) -> None:
        """Counts an outcome."""
        self.results[outcome.result] += 1
        if outcome.result == "skipped":
            self.causes[outcome.cause] += 1
            self._skipped.add(outcome.file)
        else:
            self._taken.add(outcome.file)
            self.marked += bool(outcome.message)

    def failed(self, named: Collection[Path]) -> bool:
        """Returns whether nothing was stored, or one of these files was skipped."""
        return not self._taken or not (self._skipped - self._taken).isdisjoint(named)

    def lines(self) -> Iterator[str]:
        """Yields the counts for display; nothing without counts."""
        if counted := _join_counts({result: self.results[result] for result in RESULTS}):
            yield counted
        for cause, count in self.causes.most_common():
            yield f"  {count} skipped: {cause}."
        if self.marked:
            yield f"  {self.marked} with bytes that could not be read, marked in the text."
        if passed_over := _join_counts(self.passed_over):
            yield f"Passed over: {passed_over}"
        if left_out := [f"{what} ({count:,})" for what, count in (+self.left_out).most_common()]:
            yield f"Left out of chats: {', '.join(left_out)}"

    def as_json(self) -> dict[str, Any]:
        """Returns the counts as JSON."""
        return {
            **{result: self.results[result] for result in RESULTS},
            "marked": self.marked,
            "skipped_because": dict(self.causes.most_common()),
            "passed_over": dict(self.passed_over.most_common()),
            "left_out_of_chats": dict((+self.left_out).most_common()),
        }


def _join_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
