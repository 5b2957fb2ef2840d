"""What became of each file and chat, and how often."""

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
    """What became of one file or chat.

    Attributes:
        file: The file that it is or comes from.
        name: As it is shown.
        result: What became of it.
        message: Why it was skipped, or what of it could not be read.
    """

    file: Path
    name: str
    result: Result
    message: str = ""

    @property
    def cause(self) -> str:
        """Why it was skipped, in words that are the same for every file of that kind."""
        if rule := _RULE.search(self.message):
            return f"The rule {rule[1]} denies it"
        words = _NAMED.sub(r"\1", _QUOTED.sub("it", self.message))
        words = _NUMBER.sub("…", _DETAIL.sub("", _UNREADABLE.sub("", words)))
        sentence = words.partition(". ")[0].rstrip(". ")
        return sentence[:1].upper() + sentence[1:]


class Tally:
    """Counts of what became of everything.

    Attributes:
        results: How often each result was.
        causes: How often each cause of skipping was.
        passed_over: Entries of folders that were not looked at, by reason.
        left_out: What was left out of chats, by reason.
        marked: Files that were stored though some bytes of theirs could not be read.
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
        """Whether nothing is stored, or nothing of one of these files is."""
        return not self._taken or not (self._skipped - self._taken).isdisjoint(named)

    def lines(self) -> Iterator[str]:
        """The counts for a person; none if there are none."""
        if counted := _listed({result: self.results[result] for result in RESULTS}):
            yield counted
        for cause, count in self.causes.most_common():
            yield f"  {count} skipped: {cause}."
        if self.marked:
            yield f"  {self.marked} with bytes that could not be read, marked in the text."
        if passed_over := _listed(self.passed_over):
            yield f"Passed over: {passed_over}"
        if left_out := [f"{what} ({count:,})" for what, count in (+self.left_out).most_common()]:
            yield f"Left out of chats: {', '.join(left_out)}"

    def as_json(self) -> dict[str, Any]:
        """The counts for a program."""
        return {
            **{result: self.results[result] for result in RESULTS},
            "marked": self.marked,
            "skipped_because": dict(self.causes.most_common()),
            "passed_over": dict(self.passed_over.most_common()),
            "left_out_of_chats": dict((+self.left_out).most_common()),
        }


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
